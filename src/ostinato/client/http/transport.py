"""HttpTransport: requests to an API server over HTTP/1.1 and TLS.

- Connections are pooled; a stream has a connection of its own. They belong to the event loop that first uses them.
- A request is retried only as `retry_policy` says, or once with renewed credentials after a 401.
- An Authorization header of the request overrides the credentials, an Impersonate-User header the impersonation.
- Redirects are never followed: credentials go to the configured server only.
- When certificates change, in a file or from a plugin, connections are reopened.
- Time and memory are bounded: see `pool` and `max_response_bytes`.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import urlsplit

from ostinato.client.config.config import Config
from ostinato.client.config.credentials import Credential, Credentials, credentials_for
from ostinato.client.http.errors import failure
from ostinato.client.http.head import AddedHeaders
from ostinato.client.http.metrics import HttpMetrics
from ostinato.client.http.pool import HttpPools, PoolSettings, Reset
from ostinato.client.http.response import HttpResponse
from ostinato.client.http.websocket import HttpWebSocket
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
        max_retries: int = MAX_RETRIES,
        unix_socket: Path | None = None,
    ) -> None:
        """Raises ConfigError if the configuration is not usable. No connection is opened before the first request.

        - `credentials`, `limiter`: can be shared between transports. Default to those of the configuration.
        - `metrics`: receives the client's metrics. Defaults to None.
        - `deadline`: the time after which nothing is sent, e.g. the end of a lease. Defaults to None.
        - `max_response_bytes`: bound of `Response.read()`. Defaults to 1 GiB.
        - `max_retries`: retries of a request, see `retry_policy`. Defaults to 10; 0 returns a 429 to the caller.
        - `unix_socket`: of a server of this user, used in place of the address in `config`. Defaults to None.
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
        self._max_retries = max_retries
        self._headers = AddedHeaders(fixed_headers(config), impersonation_headers(config))
        check = None if deadline is None else self._check_deadline
        settings = PoolSettings(
            self.host,
            world.clock,
            self._metrics,
            self._headers,
            max_response_bytes,
            check,
            world.ids.token,
            unix_socket,
        )
        self._pools = HttpPools(config, world, settings)
        if config.tls.insecure and config.secure:
            log.warning(
                "server certificate is not verified, credentials can be intercepted "
                "option=insecure-skip-tls-verify source=%s server=%s",
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
                raise RequestTimedOut(f"{what}: timed out: no response within {timeout:g} seconds") from None
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
            response: HttpResponse | None = None
            try:
                response = await self._send(request, until, retry=retries > 0)
                if response.status < 429:
                    return response
                wait = wait_before_retry(response.status, response.headers)
            except Reset as reset:
                lost = reset.lost
                wait = AFTER_RESET if resets else 0.0
                resets += 1
            except TransportError as error:
                raise _with_previous(error, previous) from None
            if wait is None or not self._may_retry(request, retries, wait, until):
                if response is None:
                    raise _with_previous(lost, previous)
                return response
            if response is not None:
                await response.drain()
            previous = (
                str(lost) if response is None else f"the server responded with status {response.status} and Retry-After"
            )
            retries += 1
            log.debug("retrying request=%s retry=%d delay=%gs error=%s", self._what(request), retries, wait, previous)
            await self._clock.sleep(wait)
            if self._limiter is not None:
                await self._throttle(request, self._limiter)

    def _may_retry(self, request: Request, retries: int, wait: float, until: float | None) -> bool:
        if retries >= self._max_retries or wait > MAX_RETRY_AFTER or not is_replayable(request):
            return False
        return until is None or self._clock.monotonic() + wait < until

    async def _send(self, request: Request, until: float | None, *, retry: bool) -> HttpResponse:
        """Send a request, and once more with renewed credentials after a 401."""
        self._check_deadline()
        credential = await self._credentials.current()
        pool = await self._pools.current(credential.certificate)
        response = await pool.send(request, credential, until, retry=retry)
        if response.status != 401 or not await self._may_renew(request, credential):
            return response
        await response.drain()
        credential = await self._credentials.current()
        pool = await self._pools.current(credential.certificate)
        return await pool.send(request, credential, until, retry=True)

    async def _may_renew(self, request: Request, credential: Credential) -> bool:
        """Whether to retry a request after a 401, with other credentials."""
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
        """Raise `DeadlinePassed` after the deadline; called before a request is prepared and before it is sent."""
        at = self._deadline() if self._deadline is not None else None
        if at is not None and self._clock.monotonic() > at:
            raise DeadlinePassed(f"{self.host}: request not sent: the deadline of this transport has passed")

    def _what(self, request: Request) -> str:
        """Return method, host and path, without the query, for messages."""
        return f"{request.method} {self.host}{request.path}"


def _with_previous(error: TransportError, previous: str) -> TransportError:
    """Return an error that also reports the previous attempt; not `Unreachable`, as that attempt was sent."""
    if not previous or str(error) == previous:
        return error
    kind = ConnectionLost if isinstance(error, Unreachable) else type(error)
    return kind(f"{error} - error from a previous attempt: {previous}")
