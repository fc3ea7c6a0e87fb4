"""Transport of a test's clients: starts the cluster on first use, injects faults, explains missing permissions."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, NamedTuple, Self

import msgspec

from ostinato.client.transport.protocol import ConnectionLost, Deadline, Request, Response, Transport, WebSocket
from ostinato.testing.permissions import explained

if TYPE_CHECKING:
    from ostinato.testing.faults import Faults

_FORBIDDEN = 403


class Identity(NamedTuple):
    """A user with groups."""

    user: str
    groups: tuple[str, ...] = ()


class Whole:
    """A response that has been received completely."""

    def __init__(
        self, status: int, body: bytes, headers: Mapping[str, str] | None = None, warnings: Sequence[str] = ()
    ) -> None:
        self.status = status
        self.headers = {"content-type": "application/json"} if headers is None else headers
        self.warnings = warnings
        self.body = body

    async def read(self) -> bytes:
        return self.body

    async def chunks(self) -> AsyncIterator[bytes]:
        yield self.body

    def close(self) -> None:
        """Nothing is open."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None: ...


class ClusterTransport:
    """
    - `open_`: opens a transport to the server; called for the first request.
    - `faults`: to inject. Defaults to none.
    - `denied`: receives an explanation of each request that RBAC rejects. Defaults to None.
    """

    def __init__(
        self,
        open_: Callable[[Deadline | None], Awaitable[Transport]],
        *,
        faults: Faults | None = None,
        denied: Callable[[str], object] | None = None,
        deadline: Deadline | None = None,
    ) -> None:
        self.host = "test cluster"
        self._open = open_
        self._faults = faults
        self._denied = denied
        self._deadline = deadline
        self._inner: Transport | None = None
        self._closed = False

    async def request(self, request: Request) -> Response:
        inner = await self._connected()
        if self._faults is None:
            answer = await inner.request(request)
        else:
            answer = await self._faults.send(request, inner.request)
        if answer.status == _FORBIDDEN and self._denied is not None:
            return await self._explain(answer, self._denied)
        return answer

    async def websocket(self, request: Request, protocols: Sequence[str]) -> WebSocket:
        return await (await self._connected()).websocket(request, protocols)

    async def close(self) -> None:
        self._closed = True
        if self._inner is not None:
            await self._inner.close()

    async def _connected(self) -> Transport:
        if self._closed:
            raise ConnectionLost("not sent: the test, and its cluster, have ended")
        if self._inner is None:
            self._inner = await self._open(self._deadline)
        return self._inner

    async def _explain(self, answer: Response, denied: Callable[[str], object]) -> Response:
        """Add to the message of a rejected request how to declare the permission."""
        body = await answer.read()
        text = explained(body)
        if text is None:
            return Whole(answer.status, body, answer.headers, answer.warnings)
        status = msgspec.json.decode(body)
        denied(text)
        status["message"] = text
        return Whole(answer.status, msgspec.json.encode(status), answer.headers, answer.warnings)
