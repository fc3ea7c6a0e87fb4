"""Client of the CRI (`runtime.v1`), by method name.

Requests and responses are dictionaries with the message's field names. Empty and zero fields may be missing. Bytes are
base64, as in JSON.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from typing import Any, Final, Protocol

from ostinato.api.protobuf.decoding import read_message
from ostinato.api.protobuf.encoding import write_message
from ostinato.api.protobuf.tables import CRI
from ostinato.api.wire.json import DecodeError
from ostinato.grpc import Channel, Code, RpcError

CALL_TIMEOUT: Final = 120.0  # seconds
_IMAGES: Final = frozenset({"ImageStatus", "PullImage"})

Message = Mapping[str, Any]
"""The fields of a message."""


class Cri(Protocol):
    """An implementation of the CRI."""

    async def call(self, method: str, request: Message, within: float = CALL_TIMEOUT) -> dict[str, Any]:
        """Call a unary method; `RpcError` on failure."""

    def stream(self, method: str, request: Message) -> AsyncGenerator[dict[str, Any], None]:
        """Yield the responses of a streaming method."""


class RemoteCri:
    """The CRI over a gRPC channel."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel

    async def call(self, method: str, request: Message, within: float = CALL_TIMEOUT) -> dict[str, Any]:
        answer = await self._channel.call(_path(method), _written(method, request), within)
        return _read(f"{method}Response", answer)

    async def stream(self, method: str, request: Message) -> AsyncGenerator[dict[str, Any], None]:
        asked = _written(method, request)
        async with aclosing(self._channel.stream(_path(method), asked)) as answers:
            async for answer in answers:
                yield _read(_STREAMED[method], answer)


_ASKED: Final = {"GetContainerEvents": "GetEventsRequest"}  # request types that are not named METHODRequest
_STREAMED: Final = {"GetContainerEvents": "ContainerEventResponse"}


def _path(method: str) -> str:
    return f"/{CRI}{'ImageService' if method in _IMAGES else 'RuntimeService'}/{method}"


def _written(method: str, request: Message) -> bytes:
    return write_message(CRI + _ASKED.get(method, f"{method}Request"), request)


def _read(message: str, data: bytes) -> dict[str, Any]:
    try:
        value = read_message(CRI + message, data)
    except DecodeError as error:
        raise RpcError(Code.INTERNAL, f"invalid {message}: {error}") from None
    assert isinstance(value, dict)
    return value
