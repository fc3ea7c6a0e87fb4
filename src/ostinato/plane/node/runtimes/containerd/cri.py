"""The CRI: what a container runtime can be asked, by the names of its methods.

Requests and answers have the fields of the messages of `runtime.v1`, named as there; what is empty or zero may be
missing. Bytes are base64, as in JSON.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from typing import Any, Final, Protocol

from ostinato.api.protobuf.decoding import read_message
from ostinato.api.protobuf.encoding import write_message
from ostinato.api.protobuf.tables import CRI
from ostinato.api.wire.json import DecodeError
from ostinato.plane.node.runtimes.containerd.grpc import INTERNAL, Channel
from ostinato.plane.node.runtimes.containerd.http2 import RpcError

PATIENCE: Final = 120.0  # seconds that a runtime has for an answer
_IMAGES: Final = frozenset({"ImageStatus", "PullImage"})

Message = Mapping[str, Any]
"""The fields of a message."""


class Cri(Protocol):
    """Whoever answers the methods of the CRI."""

    async def call(self, method: str, request: Message, within: float = PATIENCE) -> dict[str, Any]:
        """One answer; an `RpcError` if there is none."""

    def stream(self, method: str, request: Message) -> AsyncGenerator[dict[str, Any], None]:
        """Answers, until the runtime ends them."""


class RemoteCri:
    """A runtime behind a socket."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel

    async def call(self, method: str, request: Message, within: float = PATIENCE) -> dict[str, Any]:
        answer = await self._channel.call(_path(method), _written(method, request), within)
        return _read(f"{method}Response", answer)

    async def stream(self, method: str, request: Message) -> AsyncGenerator[dict[str, Any], None]:
        asked = _written(method, request)
        async with aclosing(self._channel.stream(_path(method), asked)) as answers:
            async for answer in answers:
                yield _read(_STREAMED[method], answer)


_ASKED: Final = {"GetContainerEvents": "GetEventsRequest"}  # where names do not follow the rule
_STREAMED: Final = {"GetContainerEvents": "ContainerEventResponse"}


def _path(method: str) -> str:
    return f"/{CRI}{'ImageService' if method in _IMAGES else 'RuntimeService'}/{method}"


def _written(method: str, request: Message) -> bytes:
    return write_message(CRI + _ASKED.get(method, f"{method}Request"), request)


def _read(message: str, data: bytes) -> dict[str, Any]:
    try:
        value = read_message(CRI + message, data)
    except DecodeError as error:
        raise RpcError(INTERNAL, f"the answer is no {message}: {error}") from None
    assert isinstance(value, dict)
    return value
