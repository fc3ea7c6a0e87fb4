"""HTTP transport: posts a JSON document to a hook and returns its answer.

- A status other than 200 is a `HookError` with the beginning of the body. 429 is `TooManyRequests` with the delay that
  the hook asks for; the caller requeues, so that no worker waits.
- One retry, immediately, if the connection was lost before the answer: an idle connection may have been stale, and a
  hook must be safe to repeat. Redirects are not followed: credentials go to the configured address only.
- Time and memory are bounded: `Endpoint.timeout` covers connection, request and answer.
- With an `EtagCache`, the hook may answer 304 or 412 to reuse its last answer for the same object.
"""

from __future__ import annotations

import base64
from collections import OrderedDict
from collections.abc import Hashable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from math import ceil
from typing import Final, NamedTuple
from urllib.parse import parse_qsl, unquote, urlsplit

from ostinato.client.config.config import Config, Tls
from ostinato.client.config.error import ConfigError
from ostinato.client.config.secret import Secret
from ostinato.client.http.transport import HttpTransport
from ostinato.client.transport.protocol import ConnectionLost, Request, TransportError, Unreachable
from ostinato.http.hosts import join_host_port
from ostinato.world import Clock, World

MAX_ANSWER: Final = 64 << 20  # bytes; far more than a hook's objects can have in a cluster
_MAX_SHOWN: Final = 300  # characters of a body in an error
_MAX_ETAGS: Final = 10_000  # answers that are kept
_MAX_DELAY: Final = 24 * 3600.0  # seconds of a Retry-After that are honoured
_REUSED: Final = (304, 412)


class HookError(Exception):
    """The hook could not be called, or its answer is not usable."""


class TooManyRequests(HookError):  # noqa: N818 - as the status is called
    """The hook answered 429. `delay`: the seconds that it asks for; None without a Retry-After header."""

    def __init__(self, url: str, delay: float | None) -> None:
        later = "" if delay is None else f", retry in {delay:g} s"
        super().__init__(f"POST {url}: status 429 Too Many Requests{later}")
        self.delay = delay


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """
    - `url`: http or https; a user and password in it are sent as basic authentication.
    - `address`: host:port to connect to instead of those of the URL. Defaults to "".
    - `authorization`: value of the Authorization header.
    - `ca`, `certificate`, `key`: PEM. Without `ca`, the system's root certificates verify the server.
    """

    url: str
    address: str = ""
    timeout: float = 10.0
    authorization: Secret | None = None
    ca: bytes = field(default=b"", repr=False)
    certificate: bytes = field(default=b"", repr=False)
    key: Secret | None = None
    max_answer: int = MAX_ANSWER


class HttpHook:
    """Client of one hook. Its connections belong to the event loop that first uses it."""

    def __init__(self, endpoint: Endpoint, world: World, etags: EtagCache | None = None) -> None:
        """Raises ConfigError if the endpoint is not usable."""
        parts = urlsplit(endpoint.url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ConfigError(f"{endpoint.url!r} is not the URL of a hook; use http://HOST:PORT/PATH or https://")
        self.url = parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()  # for messages: no password
        self._timeout = endpoint.timeout
        self._clock = world.clock
        self._etags = etags
        self._path = parts.path or "/"
        self._query = tuple(parse_qsl(parts.query, keep_blank_values=True))
        self._headers = [("Content-Type", "application/json"), ("Accept", "application/json")]
        authorization = endpoint.authorization or _basic(parts.username, parts.password)
        if authorization is not None:
            self._headers.append(("Authorization", authorization.reveal()))
        host = parts.hostname
        authority = endpoint.address or join_host_port(host, parts.port or (443 if parts.scheme == "https" else 80))
        secure = parts.scheme == "https"
        tls = Tls()
        if secure:
            tls = Tls(
                ca_data=endpoint.ca,
                server_name=host if endpoint.address else "",
                certificate_data=endpoint.certificate,
                key_data=endpoint.key,
            )
        config = Config(server=f"{parts.scheme}://{authority}", tls=tls, source=f"hook {self.url}")
        self._transport = HttpTransport(config, world, max_response_bytes=endpoint.max_answer, max_retries=0)

    async def post(self, document: bytes, key: Hashable = None) -> bytes:
        """Post a document and return the body of the answer. `key`: the object, for ETags."""
        known = None if self._etags is None else self._etags.get(key)
        headers = self._headers if known is None else [*self._headers, ("If-None-Match", known.etag)]
        request = Request("POST", self._path, self._query, headers, document, timeout=self._timeout)
        status, answered, body = await self._sent(request)
        if known is not None and status in _REUSED:
            return known.body
        if status == 429:
            raise TooManyRequests(self.url, retry_delay(answered, self._clock))
        if status != 200:
            raise HookError(f"POST {self.url}: status {status}: {_shown(body)}")
        etag = answered.get("etag", "")
        if self._etags is not None and etag:
            self._etags.put(key, etag, body)
        return body

    async def close(self) -> None:
        await self._transport.close()

    async def _sent(self, request: Request) -> tuple[int, Mapping[str, str], bytes]:
        try:
            try:
                return await self._exchange(request)
            except ConnectionLost as lost:
                if isinstance(lost, Unreachable):
                    raise
                return await self._exchange(request)
        except (TransportError, ConfigError) as error:
            raise HookError(f"hook {self.url}: {error}") from None

    async def _exchange(self, request: Request) -> tuple[int, Mapping[str, str], bytes]:
        response = await self._transport.request(request)
        async with response:
            return response.status, response.headers, await response.read()


class Answer(NamedTuple):
    etag: str
    body: bytes
    until: float | None


class EtagCache:
    """The last answer for each object, with its ETag. `timeout`: seconds that it is kept; None is no limit."""

    def __init__(self, clock: Clock, timeout: float | None = None) -> None:
        self._clock = clock
        self._timeout = timeout
        self._answers: OrderedDict[Hashable, Answer] = OrderedDict()

    def get(self, key: Hashable) -> Answer | None:
        found = self._answers.get(key)
        if found is not None and found.until is not None and self._clock.monotonic() >= found.until:
            del self._answers[key]
            return None
        return found

    def put(self, key: Hashable, etag: str, body: bytes) -> None:
        until = None if self._timeout is None else self._clock.monotonic() + self._timeout
        self._answers[key] = Answer(etag, body, until)
        self._answers.move_to_end(key)
        if len(self._answers) > _MAX_ETAGS:
            self._answers.popitem(last=False)


def retry_delay(headers: Mapping[str, str], clock: Clock) -> float | None:
    """Return the seconds of a Retry-After header, in seconds or as a date; None without a usable one."""
    text = headers.get("retry-after", "").strip()
    if text.isascii() and text.isdecimal():
        return min(float(text[:9]), _MAX_DELAY)
    with suppress(ValueError, TypeError):
        return min(max(float(ceil((parsedate_to_datetime(text) - clock.now()).total_seconds())), 0.0), _MAX_DELAY)
    return None


def basic(username: str, password: str) -> Secret:
    """Return the value of an Authorization header of basic authentication."""
    return Secret("Basic " + base64.b64encode(f"{username}:{password}".encode()).decode())


def _basic(username: str | None, password: str | None) -> Secret | None:
    return None if username is None else basic(unquote(username), unquote(password or ""))


def _shown(body: bytes) -> str:
    text = " ".join(body[: 4 * _MAX_SHOWN].decode("utf-8", "replace").split())
    return text if len(text) <= _MAX_SHOWN else f"{text[: _MAX_SHOWN - 1]}…"
