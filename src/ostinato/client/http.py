"""HttpTransport: requests to an API server over HTTP/1.1 and TLS, on aiohttp and, for writes, by `http_direct`.

- Connections are kept and shared; a stream has one to itself. They belong to the event loop that first uses them.
- A request is sent once, and again only as `resending` says, or once more with new credentials after a 401.
- An Authorization header of the request itself beats all credentials, an Impersonate-User header all impersonation.
- Redirects are never followed: credentials go to the configured server alone.
- When certificates change, in a file or by a plugin, connections are made anew.
- Neither time nor memory is without bounds: see `http_pool`, and `longest_answer`.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from urllib.parse import urlsplit

import aiohttp
from multidict import CIMultiDict

from ostinato.client import metrics as names
from ostinato.client.config import Config
from ostinato.client.credentials import Credential, Credentials, credentials_for
from ostinato.client.headers import fixed_headers, impersonation_headers
from ostinato.client.http_answer import Bounds, HttpAnswer, OnClose, failure, is_reset
from ostinato.client.http_direct import DirectAnswer
from ostinato.client.http_pool import Broken, HttpPool, HttpPools
from ostinato.client.http_websocket import HttpWebSocket
from ostinato.client.limits import Limiter, TokenBucket
from ostinato.client.metrics import ClientMetrics
from ostinato.client.resending import AFTER_RESET, LONGEST_WAIT, MOST_RETRIES, can_be_sent_again, wait_before_retry
from ostinato.client.transport import (
    LONGEST_ANSWER,
    Deadline,
    DeadlinePassed,
    Request,
    RequestTimedOut,
    TransportError,
    UpgradeRefused,
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
        longest_answer: int = LONGEST_ANSWER,
    ) -> None:
        """ConfigError if the configuration cannot be sent. Nothing is opened before the first request.

        `credentials` and `limiter` beat those of the configuration; transports that are given the same share them.
        """
        self.host = urlsplit(config.url).netloc
        self._base = config.url
        self._clock = world.clock
        self._timeout = config.timeout
        self._credentials = credentials or credentials_for(config, world, metrics)
        self._limiter = limiter
        if limiter is None and config.qps is not None:
            self._limiter = TokenBucket(world.clock, config.qps, config.burst)
        self._metrics = metrics
        self._deadline = deadline
        self._longest_answer = longest_answer
        self._fixed = fixed_headers(config)
        self._impersonation = impersonation_headers(config)
        self._pools = HttpPools(config, world, self._check_deadline, metrics)
        if config.tls.insecure and config.secure:
            log.warning(
                "%s: insecure-skip-tls-verify is set: anybody between here and %s can read and change everything, "
                "credentials included",
                config.source,
                self.host,
            )

    async def request(self, request: Request) -> HttpAnswer | DirectAnswer:
        what = f"{request.method} {self.host}{request.path}"
        begun = self._clock.monotonic()
        try:
            await self._throttle(request, what)
            timeout = self._timeout if request.timeout is None and not request.stream else request.timeout
            until = None if timeout is None else self._clock.monotonic() + timeout
            try:
                if until is None:
                    answer = await self._send_until_answered(request, what, until)
                else:
                    async with self._clock.deadline(until):
                        answer = await self._send_until_answered(request, what, until)
            except TimeoutError as error:
                if isinstance(error, TransportError):
                    raise
                raise RequestTimedOut(f"{what}: timed out: no answer within {timeout:g} seconds") from None
        finally:
            self._observe(names.DURATION, self._clock.monotonic() - begun, request.method)
        answer.bounds = Bounds(None if request.stream else until, self._longest_answer)
        return answer

    async def websocket(self, request: Request, protocols: Sequence[str]) -> HttpWebSocket:
        what = f"{request.method} {self.host}{request.path}"
        credential = await self._credentials.current()
        try:
            return await self._upgrade(request, tuple(protocols), credential, what)
        except UpgradeRefused as refusal:
            if refusal.status != 401 or not await self._may_renew(request, credential):
                raise
        return await self._upgrade(request, tuple(protocols), await self._credentials.current(), what)

    async def close(self) -> None:
        await self._pools.close()

    async def _send_until_answered(self, request: Request, what: str, until: float | None) -> HttpAnswer | DirectAnswer:
        retries, resets, previous = 0, 0, ""
        while True:
            answer: HttpAnswer | DirectAnswer | None = None
            try:
                answer = await self._send(request, what, retry=retries > 0)
                wait = wait_before_retry(answer.status, answer.headers)
            except _Reset as reset:
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
            log.debug("%s: sent again in %g s, for the %d. time: %s", what, wait, retries, previous)
            await self._clock.sleep(wait)
            await self._throttle(request, what)

    def _may_retry(self, request: Request, retries: int, wait: float, until: float | None) -> bool:
        if retries >= MOST_RETRIES or wait > LONGEST_WAIT or not can_be_sent_again(request):
            return False
        return until is None or self._clock.monotonic() + wait < until

    async def _send(self, request: Request, what: str, *, retry: bool) -> HttpAnswer | DirectAnswer:
        """One attempt, and a second with other credentials if these are refused."""
        self._check_deadline()
        credential = await self._credentials.current()
        answer = await self._attempt(request, credential, what, retry=retry)
        if answer.status != 401 or not await self._may_renew(request, credential):
            return answer
        await answer.drain()
        return await self._attempt(request, await self._credentials.current(), what, retry=True)

    async def _may_renew(self, request: Request, credential: Credential) -> bool:
        """Whether a request that was refused is worth sending with other credentials."""
        if not can_be_sent_again(request) or any(name.lower() == "authorization" for name, _ in request.headers):
            return False
        return await self._credentials.rejected(credential)

    async def _attempt(
        self, request: Request, credential: Credential, what: str, *, retry: bool
    ) -> HttpAnswer | DirectAnswer:
        pool = await self._pools.current(credential.certificate)
        silence_ends = request.timeout is None and self._timeout is None and not request.stream
        code = names.NO_ANSWER
        direct = pool.direct(request)
        try:
            if direct is not None:
                headers = self._headers(request, credential)
                message = await direct.send(
                    request, headers, what, silence_ends=silence_ends, longest=self._longest_answer
                )
                code = str(message.status)
                return DirectAnswer(message, lambda size: self._observe(names.RESPONSE_SIZE, size, request.method))
            answer = await pool.send(
                request,
                self._base + request.target,
                self._headers(request, credential),
                silence_ends=silence_ends,
            )
            code = str(answer.status)
            return HttpAnswer(answer, what, self._clock, self._on_close(request, answer, pool))
        except (Broken, aiohttp.ClientError, OSError) as error:
            failed = error.error if isinstance(error, Broken) else error
        finally:
            self._count(request, code, retry=retry)
        # Raised here and not above, so that it does not drag aiohttp's error along, whose request has the headers.
        lost = failure(failed, what)
        raise _Reset(lost) if request.method == "GET" and is_reset(failed) else lost

    async def _upgrade(
        self, request: Request, protocols: tuple[str, ...], credential: Credential, what: str
    ) -> HttpWebSocket:
        self._check_deadline()
        pool = await self._pools.current(credential.certificate)
        headers = self._headers(request, credential)
        timeout = self._timeout if request.timeout is None else request.timeout
        try:
            async with self._clock.timeout(timeout):
                socket = await pool.websocket(self._base + request.target, headers, protocols)
            return HttpWebSocket(socket, what)
        except UpgradeRefused as error:
            message = f"{what}: the server answered {error.status} instead of opening a WebSocket"
            raise UpgradeRefused(message, error.status, error.headers, error.body) from None
        except (Broken, aiohttp.ClientError, OSError) as error:
            failed = error.error if isinstance(error, Broken) else error
        raise failure(failed, what)  # here and not above, for the same reason as in _attempt

    def _headers(self, request: Request, credential: Credential) -> CIMultiDict[str]:
        headers = CIMultiDict(request.headers)
        for name, value in self._fixed:
            headers.setdefault(name, value)
        if credential.authorization is not None:
            headers.setdefault("Authorization", credential.authorization.reveal())
        if self._impersonation and "Impersonate-User" not in headers:
            headers.extend(self._impersonation)
        return headers

    async def _throttle(self, request: Request, what: str) -> None:
        if self._limiter is not None and not request.stream:
            self._observe(names.RATE_LIMITER, await self._limiter.wait(what), request.method)

    def _check_deadline(self) -> None:
        """Called before anything is done for a request, and again at the last moment before it is sent."""
        at = self._deadline() if self._deadline is not None else None
        if at is not None and self._clock.monotonic() > at:
            raise DeadlinePassed(f"{self.host}: not sent: the time in which this process may write is over")

    def _on_close(self, request: Request, answer: aiohttp.ClientResponse, pool: HttpPool) -> OnClose:
        def closed(size: int | None) -> None:
            pool.release(answer)
            if size is not None:
                self._observe(names.RESPONSE_SIZE, size, request.method)

        return closed

    def _count(self, request: Request, code: str, *, retry: bool) -> None:
        if self._metrics is None:
            return
        self._metrics.count(names.REQUESTS, {"code": code, "method": request.method, "host": self.host})
        if retry:
            self._metrics.count(names.RETRIES, {"code": code, "verb": request.method, "host": self.host})
        if isinstance(request.body, bytes) and request.body:
            self._observe(names.REQUEST_SIZE, len(request.body), request.method)

    def _observe(self, name: str, value: float, method: str) -> None:
        if self._metrics is not None:
            self._metrics.observe(name, value, {"verb": method, "host": self.host})


class _Reset(Exception):  # noqa: N818 - no error of ours: the request may be sent again
    def __init__(self, lost: TransportError) -> None:
        super().__init__()
        self.lost = lost


def _with_previous(error: TransportError, previous: str) -> TransportError:
    """An error that came after another: its class, and the words of both."""
    if not previous or str(error) == previous:
        return error
    return type(error)(f"{error} - error from a previous attempt: {previous}")
