"""HTTP: the adapter between aiohttp and the core."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from typing import Any

from aiohttp import web

from ostinato.api.errors import RequestEntityTooLarge
from ostinato.server.core import Server
from ostinato.server.request import Request, Stream, error_response

MOST_BODY = 3 * 1024 * 1024


class _Headers(Mapping[str, str]):
    """aiohttp's headers, which do not care about case."""

    __slots__ = ("_headers",)

    def __init__(self, headers: Any) -> None:
        self._headers = headers

    def __getitem__(self, name: str) -> str:
        value: str = self._headers[name]
        return value

    def get(self, name: str, default: Any = None) -> Any:
        return self._headers.get(name, default)

    def __iter__(self) -> Any:
        return iter(name.lower() for name in self._headers)

    def __len__(self) -> int:
        return len(self._headers)


class HttpServer:
    """Serves a core over HTTPS."""

    def __init__(self, server: Server, context: ssl.SSLContext | None) -> None:
        self._server = server
        self._ssl = context
        self._runner: web.ServerRunner | None = None
        self.port = 0

    async def start(self, host: str, port: int) -> None:
        handler = web.Server(self._handle, access_log=None)
        self._runner = web.ServerRunner(handler, handle_signals=False, shutdown_timeout=2.0)
        await self._runner.setup()
        site = web.TCPSite(self._runner, host, port, ssl_context=self._ssl, backlog=1024)
        await site.start()
        self.port = self._runner.addresses[0][1]

    async def stop(self) -> None:
        if self._runner is not None:
            await self._runner.cleanup()

    async def _handle(self, incoming: web.BaseRequest) -> web.StreamResponse:
        path, _, query = incoming.raw_path.partition("?")

        async def read() -> bytes:
            if (incoming.content_length or 0) > MOST_BODY:
                raise RequestEntityTooLarge.of(f"limit is {MOST_BODY}")
            data = bytearray()
            async for chunk in incoming.content.iter_any():
                data += chunk
                if len(data) > MOST_BODY:
                    raise RequestEntityTooLarge.of(f"limit is {MOST_BODY}")
            return bytes(data)

        request = Request(incoming.method, path, query, _Headers(incoming.headers), read)
        answer = await self._server.handle(request)
        headers = {"Content-Type": answer.content_type, "Cache-Control": "no-cache, private"}
        if isinstance(answer, Stream):
            return await self._stream(incoming, answer, headers)
        response = web.Response(status=answer.status, body=answer.body, headers=headers)
        for name, value in answer.headers:
            response.headers.add(name, value)
        return response

    async def _stream(self, incoming: web.BaseRequest, answer: Stream, headers: dict[str, str]) -> web.StreamResponse:
        response = web.StreamResponse(status=answer.status, headers=headers)
        for name, value in answer.headers:
            response.headers.add(name, value)
        await response.prepare(incoming)
        try:
            async for chunk in answer.chunks:
                await response.write(chunk)
            await response.write_eof()
        except (ConnectionResetError, ConnectionAbortedError):
            pass  # the client went away
        finally:
            await answer.chunks.aclose()  # type: ignore[attr-defined]
        return response


__all__ = ["HttpServer", "error_response"]
