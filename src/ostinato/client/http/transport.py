"""HttpTransport: requests to an API server over HTTP/1.1 and TLS.

- Connections are kept and shared; a stream has one to itself. They belong to the event loop that first uses them.
- A request is sent once, and again only as `resending` says, or once more with new credentials after a 401.
- An Authorization header of the request itself beats all credentials, an Impersonate-User header all impersonation.
- Redirects are never followed: credentials go to the configured server alone.
- When certificates change, in a file or by a plugin, connections are made anew.
- Neither time nor memory is without bounds: see `http_pool`, and `max_response_bytes`.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from ostinato.client.config.config import Config
from ostinato.client.config.credentials import Credential, Credentials, credentials_for
from ostinato.client.http.errors import failure
from ostinato.client.http.head import AddedHeaders
from ostinato.client.http.metrics import HttpMetrics
from ostinato.client.http.pool import HttpPools, PoolSettings, Reset
from ostinato.client.http.response import HttpResponse
from ostinato.client.transport import metrics as names
from ostinato.client.transport.headers import fixed_headers, impersonation_headers
from ostinato.client.transport.metrics import ClientMetrics
from ostinato.client.transport.protocol import (
    MAX_RESPONSE_BYTES,
    ConnectionLost,
    Deadline,
    DeadlinePassed,
    Request,
    RequestTimedOut,
    TransportError,
    Unreachable,
    UpgradeRefused,
)
from ostinato.client.transport.rate_limit import Limiter, TokenBucket
from ostinato.client.transport.retry_policy import (
    AFTER_RESET,
    MAX_RETRIES,
    MAX_RETRY_AFTER,
    is_replayable,
    wait_before_retry,
)
from ostinato.world import World

if TYPE_CHECKING:
    from ostinato.client.http.websocket import HttpWebSocket

log = logging.getLogger(__name__)


class HttpTransport:
    def __init__(
        self,
        config: Config,
        world: World,
        *,
        credentials: Credentials | None = None,
        limiter: Limiter | None = None,
        metrics: ClientMetrics | None = None,
        deadline: Deadline | None = None,
        max_response_bytes: int = MAX_RESPONSE_BYTES,
    ) -> None:
        """ConfigError if the configuration cannot be sent. Nothing is opened before the first request.

        `credentials` and `limiter` beat those of the configuration; transports that are given the same share them.
        """
        self.host = urlsplit(config.url).netloc
        self._clock = world.clock
        self._timeout = config.timeout
        self._credentials = credentials or credentials_for(config, world, metrics)
        self._limiter = limiter
        if limiter is None and config.qps is not None:
            self._limiter = TokenBucket(world.clock, config.qps, config.burst)
        self._metrics = HttpMetrics(metrics, self.host)
        self._deadline = deadline
        self._headers = AddedHeaders(fixed_headers(config), impersonation_headers(config))
        check = None if deadline is None else self._check_deadline
        settings = PoolSettings(self.host, world.clock, self._metrics, self._headers, max_response_bytes, check)
        self._pools = HttpPools(config, world, settings)
        if config.tls.insecure and config.secure:
            log.warning(
                "%s: insecure-skip-tls-verify is set: anybody between here and %s can read and change everything, "
                "credentials included",
                config.source,
                self.host,
            )

    async def request(self, request: Request) -> HttpResponse:
        begun = self._clock.monotonic()
        timeout = request.timeout
        if timeout is None and not request.stream:
            timeout = self._timeout
        try:
            if self._limiter is not None:
                await self._throttle(request, self._limiter)
            if timeout is None:
                return await self._send_with_retries(request, None)
            until = self._clock.monotonic() + timeout
            try:
                async with self._clock.deadline(until):
                    return await self._send_with_retries(request, until)
            except TimeoutError as error:
                if isinstance(error, TransportError):
                    raise
                what = self._what(request)
                raise RequestTimedOut(f"{what}: timed out: no answer within {timeout:g} seconds") from None
        finally:
            self._metrics.observe(names.DURATION, self._clock.monotonic() - begun, request.method)

    async def websocket(self, request: Request, protocols: Sequence[str]) -> HttpWebSocket:
        credential = await self._credentials.current()
        try:
            return await self._upgrade(request, protocols, credential)
        except UpgradeRefused as refusal:
            if refusal.status != 401 or not await self._may_renew(request, credential):
                raise
        return await self._upgrade(request, protocols, await self._credentials.current())

    async def close(self) -> None:
        await self._pools.close()

    async def _send_with_retries(self, request: Request, until: float | None) -> HttpResponse:
        retries, resets, previous = 0, 0, ""
        while True:
            answer: HttpResponse | None = None
            try:
                answer = await self._send(request, until, retry=retries > 0)
                if answer.status < 429:
                    return answer
                wait = wait_before_retry(answer.status, answer.headers)
            except Reset as reset:
                lost = reset.lost
                wait = AFTER_RESET if resets else 0.0
                resets += 1
            except TransportError as error:
                raise _with_previous(error, previous) from None
            if wait is None or not self._may_retry(request, retries, wait, until):
                if answer is None:
                    raise _with_previous(lost, previous)
                return answer
            if answer is not None:
                await answer.drain()
            previous = str(lost) if answer is None else f"the server answered {answer.status}, and to come again"
            retries += 1
            log.debug("%s: sent again in %g s, for the %d. time: %s", self._what(request), wait, retries, previous)
            await self._clock.sleep(wait)
            if self._limiter is not None:
                await self._throttle(request, self._limiter)

    def _may_retry(self, request: Request, retries: int, wait: float, until: float | None) -> bool:
        if retries >= MAX_RETRIES or wait > MAX_RETRY_AFTER or not is_replayable(request):
            return False
        return until is None or self._clock.monotonic() + wait < until

    async def _send(self, request: Request, until: float | None, *, retry: bool) -> HttpResponse:
        """One attempt, and a second with other credentials if these are refused."""
        self._check_deadline()
        credential = await self._credentials.current()
        pool = await self._pools.current(credential.certificate)
        answer = await pool.send(request, credential, until, retry=retry)
        if answer.status != 401 or not await self._may_renew(request, credential):
            return answer
        await answer.drain()
        credential = await self._credentials.current()
        pool = await self._pools.current(credential.certificate)
        return await pool.send(request, credential, until, retry=True)

    async def _may_renew(self, request: Request, credential: Credential) -> bool:
        """Whether a request that was refused is worth sending with other credentials."""
        if not is_replayable(request) or any(name.lower() == "authorization" for name, _ in request.headers):
            return False
        return await self._credentials.rejected(credential)

    async def _upgrade(self, request: Request, protocols: Sequence[str], credential: Credential) -> HttpWebSocket:
        self._check_deadline()
        pool = await self._pools.current(credential.certificate)
        timeout = self._timeout if request.timeout is None else request.timeout
        try:
            async with self._clock.timeout(timeout):
                return await pool.websocket(request, credential, protocols)
        except TimeoutError as error:
            raise failure(error, self._what(request)) from None

    async def _throttle(self, request: Request, limiter: Limiter) -> None:
        if not request.stream:
            waited = await limiter.wait(self._what(request))
            self._metrics.observe(names.RATE_LIMITER, waited, request.method)

    def _check_deadline(self) -> None:
        """Called before anything is done for a request, and again at the last moment before it is sent."""
        at = self._deadline() if self._deadline is not None else None
        if at is not None and self._clock.monotonic() > at:
            raise DeadlinePassed(f"{self.host}: not sent: the time in which this process may write is over")

    def _what(self, request: Request) -> str:
        """It in words, without its query: for messages."""
        return f"{request.method} {self.host}{request.path}"


def _with_previous(error: TransportError, previous: str) -> TransportError:
    """An error that came after another: its class, and the words of both. What was sent before was sent."""
    if not previous or str(error) == previous:
        return error
    kind = ConnectionLost if isinstance(error, Unreachable) else type(error)
    return kind(f"{error} - error from a previous attempt: {previous}")
