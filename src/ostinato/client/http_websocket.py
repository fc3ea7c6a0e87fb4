"""A WebSocket over HTTP, as the transport protocol has it."""

from __future__ import annotations

import aiohttp

from ostinato.client.transport import ConnectionLost

_ABNORMAL = 1006  # the code of a connection that ended without a good-bye


class HttpWebSocket:
    def __init__(self, socket: aiohttp.ClientWebSocketResponse, what: str) -> None:
        self._socket = socket
        self._what = what
        self.protocol = socket.protocol or ""

    async def send(self, message: bytes) -> None:
        try:
            await self._socket.send_bytes(message)
        except (aiohttp.ClientError, OSError) as error:
            raise ConnectionLost(f"{self._what}: the WebSocket is closed: {type(error).__name__}") from None

    async def receive(self) -> bytes | None:
        message = await self._socket.receive()
        match message.type:
            case aiohttp.WSMsgType.BINARY:
                data: bytes = message.data
                return data
            case aiohttp.WSMsgType.TEXT:
                text: str = message.data
                return text.encode()
            case aiohttp.WSMsgType.ERROR:
                raise ConnectionLost(f"{self._what}: the WebSocket broke: {type(message.data).__name__}")
        if self._socket.close_code == _ABNORMAL:
            raise ConnectionLost(f"{self._what}: the connection of the WebSocket broke")
        return None

    async def close(self) -> None:
        await self._socket.close()
