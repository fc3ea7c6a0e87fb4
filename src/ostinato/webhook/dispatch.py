"""Dispatcher: from the body of a review to the body of the response, without sockets.

- `/validate-…` and `/mutate-…` handle AdmissionReviews, `/convert` handles ConversionReviews, of version v1.
- Invalid reviews and failing hooks are answered by a review with the error and HTTP status 200, as API servers show its
  message to the user. Other status codes are for requests that cannot be answered by a review.
- Limited: the size of a review, the number of concurrent reviews (others wait before their body is read), and the time
  of each: the limit, or the timeout of the API server if that is shorter.
- Conversions do not wait for admission slots: a hook may send a request that needs a conversion.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable
from typing import NamedTuple

import msgspec

from ostinato.controllers.failures.trace import shorten
from ostinato.webhook.admission import HookFailed, admit
from ostinato.webhook.conversion import CONVERT, ConversionFailed, Conversions, failed_review
from ostinato.webhook.hooks import AdmissionHook, ConversionHook
from ostinato.webhook.metrics import WebhookStatistics
from ostinato.webhook.request import AdmissionRequest, ReviewError, read_review
from ostinato.webhook.response import AdmissionResponse, encode_review, errored
from ostinato.world import World

log = logging.getLogger(__name__)

Hook = AdmissionHook | ConversionHook


class Limits(msgspec.Struct, frozen=True):
    """
    - `body`: bytes of an AdmissionReview. An object has up to 1.5 MiB, and a review up to two. Defaults to 7 MiB.
    - `conversion_body`: bytes of a ConversionReview, which may have a page of a list. Defaults to 128 MiB.
    - `seconds`: time for one review, including reading it. Defaults to 30.
    - `concurrent`: concurrent admission reviews, and as many conversions. Defaults to 100.
    """

    body: int = 7 * 1024 * 1024
    conversion_body: int = 128 * 1024 * 1024
    seconds: float = 30.0
    concurrent: int = 100


class WebhookRequest(NamedTuple):
    """A request to the webhook server. `read(most)` returns the body, or raises `BodyTooLarge`."""

    path: str
    content_type: str
    read: Callable[[int], Awaitable[bytes]]
    seconds: float | None = None  # timeout of the API server


class BodyTooLarge(Exception):  # noqa: N818 - named after the condition
    """The body exceeds the limit."""


class WebhookResponse(NamedTuple):
    status: int
    body: bytes
    content_type: str = "application/json"


def routes(hooks: Iterable[AdmissionHook]) -> dict[str, AdmissionHook]:
    """Return the hooks by path. Raises ValueError if two have the same."""
    found: dict[str, AdmissionHook] = {}
    for hook in hooks:
        taken = found.get(hook.path)
        if taken is not None or hook.path == CONVERT:
            other = taken.callback.name if taken is not None else "conversion"
            raise ValueError(f"{hook.callback.name}: path {hook.path} is used by {other}; set path= on one of them")
        found[hook.path] = hook
    return found


def not_a_hook(found: object) -> TypeError:
    return TypeError(f"{found!r} is not a hook; decorate it with @validator, @defaulter or @converter")


class Dispatcher:
    def __init__(self, world: World, *, limits: Limits | None = None, conversions: Conversions | None = None) -> None:
        self.statistics = WebhookStatistics()
        self.conversions = conversions or Conversions()
        self._world = world
        self._limits = limits or Limits()
        self._hooks: dict[str, AdmissionHook] = {}
        self._slots = asyncio.Semaphore(self._limits.concurrent)
        self._conversion_slots = asyncio.Semaphore(self._limits.concurrent)
        self._converting = world.executor.separate()
        self.add(())

    @property
    def paths(self) -> tuple[str, ...]:
        return (*self._hooks, *((CONVERT,) if self.conversions else ()))

    def add(self, hooks: Iterable[Hook]) -> None:
        """Serve these hooks. Raises ValueError if a path is taken."""
        admission = list(self._hooks.values())
        for hook in hooks:
            if isinstance(hook, ConversionHook):
                self.conversions.add(hook)
            elif isinstance(hook, AdmissionHook):
                admission.append(hook)
            else:
                raise not_a_hook(hook)
        self._hooks = routes(admission)
        for path in self.paths:
            self.statistics.expect(path)

    async def handle(self, request: WebhookRequest) -> WebhookResponse:
        """Handle one request. Raises nothing but CancelledError."""
        if request.path not in self.paths:
            known = ", ".join(self.paths) or "none"
            return WebhookResponse(404, f"no webhook at {request.path}; paths: {known}\n".encode(), "text/plain")
        clock = self._world.clock
        began = clock.monotonic()
        self.statistics.began(request.path)
        reply = WebhookResponse(500, b"cancelled\n", "text/plain")
        try:
            reply = await (self._convert(request) if request.path == CONVERT else self._admit(request))
        finally:
            self.statistics.ended(request.path, reply.status, clock.monotonic() - began)
        return reply

    # Admission

    async def _admit(self, request: WebhookRequest) -> WebhookResponse:
        seconds = self._seconds(request)
        admission: AdmissionRequest | None = None
        try:
            async with self._world.clock.timeout(seconds), self._slots:
                admission = read_review(await self._body(request, self._limits.body))
                answer = await self._call_hook(self._hooks[request.path], admission)
        except ReviewError as error:
            log.warning("invalid review path=%s error=%s", request.path, error)
            return WebhookResponse(
                200, encode_review(errored(error.code, str(error)), error.uid, api_version=error.api_version)
            )
        except TimeoutError:
            message = f"{request.path} timed out after {seconds:g} s"
            log.error("review timed out path=%s seconds=%g request=%s", request.path, seconds, admission or "unread")
            answer = errored(504, message)
        if admission is None:
            return WebhookResponse(200, encode_review(answer, ""))
        return WebhookResponse(200, self._encoded(admission, answer))

    async def _call_hook(self, hook: AdmissionHook, request: AdmissionRequest) -> AdmissionResponse:
        try:
            return await admit(hook, request, self._world.executor)
        except HookFailed as failure:
            self.statistics.panics += 1
            if failure.__cause__ is not None:
                shorten(failure.__cause__)
            log.error("webhook failed request=%s error=%s", request, failure, exc_info=failure.__cause__)
            return errored(500, str(failure))

    def _encoded(self, request: AdmissionRequest, answer: AdmissionResponse) -> bytes:
        try:
            return encode_review(answer, request.uid, warnings=request.warnings, audit=request.audit_annotations)
        except (
            TypeError,
            ValueError,
            AttributeError,
        ) as error:  # a warning or annotation that is not a str
            log.exception("cannot encode the response request=%s", request)
            return encode_review(errored(500, f"cannot encode the response: {error}"), request.uid)

    # Conversion

    async def _convert(self, request: WebhookRequest) -> WebhookResponse:
        seconds = self._seconds(request)
        try:
            async with self._world.clock.timeout(seconds), self._conversion_slots:
                body = await self._body(request, self._limits.conversion_body)
                # In a worker thread: it may be a list of thousands, and converters may block.
                return WebhookResponse(200, await self._converting.run(self.conversions.answer, body))
        except ReviewError as error:
            log.warning("invalid review path=%s error=%s", request.path, error)
            if not error.uid:
                return WebhookResponse(error.code, f"{error}\n".encode(), "text/plain")
            return WebhookResponse(200, failed_review(error.uid, str(error), error.api_version))
        except ConversionFailed as failure:
            self.statistics.conversion_panics += failure.__cause__ is not None
            log.error("conversion failed path=%s error=%s", request.path, failure, exc_info=failure.__cause__)
            return WebhookResponse(200, failed_review(failure.uid, str(failure)))
        except TimeoutError:
            message = f"{request.path} timed out after {seconds:g} s"
            log.error("review timed out path=%s seconds=%g", request.path, seconds)
            return WebhookResponse(200, failed_review("", message))

    def _seconds(self, request: WebhookRequest) -> float:
        return min(self._limits.seconds, request.seconds or self._limits.seconds)

    async def _body(self, request: WebhookRequest, most: int) -> bytes:
        media_type = request.content_type.partition(";")[0].strip().lower()
        if media_type != "application/json":
            raise ReviewError(f"contentType={request.content_type}, expected application/json")
        try:
            return await request.read(most)
        except BodyTooLarge:
            raise ReviewError(f"request entity is too large; limit is {most} bytes", code=413) from None
