"""Watches of a server in the same process."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import msgspec
from tests.stage.api import Answer, Api, Json

from ostinato.api.wire.yaml import decode_yaml
from ostinato.server.request import Request, Stream

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"


class Watch:
    """One watch; events are read on demand."""

    def __init__(self, stream: Stream) -> None:
        self.content_type = stream.content_type
        self._chunks: AsyncIterator[bytes] = stream.chunks
        self._read: list[Json] = []

    async def take(self, count: int) -> list[Json]:
        """The next events; fewer if the watch ends before."""
        while len(self._read) < count:
            chunk = await self.chunk()
            if chunk is None:
                break
            self._read += [msgspec.json.decode(line) for line in chunk.splitlines()]
        taken, self._read = self._read[:count], self._read[count:]
        return taken

    async def rest(self) -> list[Json]:
        """All events to the end."""
        return await self.take(1_000_000)

    async def chunk(self) -> bytes | None:
        """The next chunk, None at the end."""
        return await anext(self._chunks, None)

    async def close(self) -> None:
        await self._chunks.aclose()  # type: ignore[attr-defined]


async def watch(api: Api, path: str, **headers: str) -> Watch:
    answer = await _answer(api, path, headers)
    assert isinstance(answer, Stream), answer.body
    assert answer.status == 200
    return Watch(answer)


async def refused(api: Api, path: str, **headers: str) -> Answer:
    """The response to a watch that is rejected."""
    answer = await _answer(api, path, headers)
    assert not isinstance(answer, Stream)
    return Answer(answer.status, decode_yaml(answer.body), ())


async def _answer(api: Api, path: str, headers: dict[str, str]) -> Any:
    path, _, query = path.partition("?")
    return await api.server.handle(Request("GET", path, query, {"authorization": "Bearer admin", **headers}))


async def config_map(api: Api, name: str, *, namespace: str = "default", **fields: Any) -> Json:
    metadata = {"name": name, **fields.pop("metadata", {})}
    answer = await api.post(f"/api/v1/namespaces/{namespace}/configmaps", {"metadata": metadata, **fields})
    assert answer.code == 201, answer.body
    return answer.body


def told(events: list[Json]) -> list[tuple[str, str]]:
    """Type and name of each event."""
    return [(event["type"], event["object"]["metadata"].get("name", "")) for event in events]


def version(obj: Json) -> int:
    return int(obj["metadata"]["resourceVersion"])
