"""This server's own requests to extension servers: health checks, discovery and OpenAPI documents."""

from __future__ import annotations

from typing import Final

import msgspec

from ostinato.api.text.go_format import quote
from ostinato.http.encoding import request_head
from ostinato.http.exchange import read_body, read_response
from ostinato.server.aggregation.api_services import ApiService
from ostinato.server.aggregation.backends import Backends, UnresolvedError, UnusableTlsError
from ostinato.server.aggregation.front_proxy import identity_fields
from ostinato.server.backends.forwarding import Backend, connect
from ostinato.server.request import User
from ostinato.world import Clock

_MOST_BODY: Final = 64 << 20  # bytes of a document
_TIMED_OUT: Final = "context deadline exceeded (Client.Timeout exceeded while awaiting headers)"


class FetchError(Exception):
    """There is no response; the message is that of Go's HTTP client.

    `url`: of the endpoint; "" if there is none.
    """

    def __init__(self, message: str, url: str = "") -> None:
        super().__init__(message)
        self.url = url


class Fetched(msgspec.Struct, frozen=True):
    """`url`: of the endpoint that answered."""

    url: str
    status: int
    body: bytes
    content_type: str = ""
    etag: str = ""


class FetchOptions(msgspec.Struct, frozen=True, kw_only=True):
    """
    - `user`: in whose name.
    - `accept`, `etag`: headers. Default to none.
    - `seconds`: until the whole response has arrived.
    """

    user: User
    accept: str = ""
    etag: str = ""
    seconds: float = 5.0


class Fetcher:
    def __init__(self, backends: Backends, clock: Clock) -> None:
        self._backends = backends
        self._clock = clock

    async def get(self, service: ApiService, path: str, options: FetchOptions) -> Fetched:
        """Raises FetchError. Redirects are not followed."""
        try:
            backend = await self._backends.of(service)
        except (UnresolvedError, UnusableTlsError) as error:
            raise FetchError(str(error)) from None
        url = f"https://{backend.authority}{path}"
        try:
            async with self._clock.timeout(options.seconds):
                return await self._exchange(backend, path, url, options)
        except TimeoutError:
            raise _failed(url, _TIMED_OUT) from None
        except (OSError, ValueError) as error:
            raise _failed(url, str(error)) from None

    async def _exchange(self, backend: Backend, path: str, url: str, options: FetchOptions) -> Fetched:
        stream = await connect(backend, self._clock, options.seconds)
        try:
            fields = [("Host", backend.authority), ("User-Agent", "kube-apiserver"), ("Connection", "close")]
            fields += [("Accept", options.accept)] if options.accept else []
            fields += [("If-None-Match", options.etag)] if options.etag else []
            await stream.write(request_head("GET", path, [*fields, *identity_fields(options.user)]))
            head = await read_response(stream)
            body = bytearray()
            async for piece in read_body(stream, head):
                body += piece
                if len(body) > _MOST_BODY:
                    raise OSError(f"the response has more than {_MOST_BODY} bytes")
        finally:
            stream.close()
        headers = head.headers
        return Fetched(url, head.status, bytes(body), headers.get("content-type", ""), headers.get("etag", ""))


def _failed(url: str, why: str) -> FetchError:
    return FetchError(f"Get {quote(url)}: {why}", url)
