"""Dispatch: from a posted review to the bytes of its answer. Knows nothing of sockets.

- `/validate-…` and `/mutate-…` answer AdmissionReviews, `/convert` ConversionReviews, of version v1.
- A review that cannot be read, and a hook that fails, are answered by a review that says so, with HTTP status 200: an
  API server shows its words to the user. Only what cannot be answered in that form gets a status of its own.
- Bounded: the size of a review, how many are worked on at once (others wait, before they are read), and the time for
  each: the limit, or less if the API server says that it will not wait so long.
- Conversions wait for no hook: a hook may ask a server, and the server for a conversion.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable
from typing import NamedTuple

import msgspec

from ostinato.controllers.trace import shorten
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
    - `body`: bytes of a review. An object has 1.5 MiB at most, in a review there may be two.
    - `conversion_body`: bytes of a ConversionReview, which may hold a page of a list.
    - `seconds`: for one review, reading it included.
    - `concurrent`: reviews worked on at once, and as many conversions.
    """

    body: int = 7 * 1024 * 1024
    conversion_body: int = 128 * 1024 * 1024
    seconds: float = 30.0
    concurrent: int = 100


class WebhookRequest(NamedTuple):
    """A request to the webhook server. `read(most)` gives the body, or raises `BodyTooLarge`."""

    path: str
    content_type: str
    read: Callable[[int], Awaitable[bytes]]
    seconds: float | None = None  # for which the other side will wait


class BodyTooLarge(Exception):  # noqa: N818 - reads as what happened
    """The body has more bytes than it may have."""


class WebhookResponse(NamedTuple):
    status: int
    body: bytes
    content_type: str = "application/json"


def routes(hooks: Iterable[AdmissionHook]) -> dict[str, AdmissionHook]:
    """The hooks by path. A ValueError if two have the same."""
    found: dict[str, AdmissionHook] = {}
    for hook in hooks:
        taken = found.get(hook.path)
        if taken is not None or hook.path == CONVERT:
            other = taken.callback.name if taken is not None else "conversion"
            raise ValueError(f"{hook.callback.name}: {hook.path} is the path of {other}: give one of them path=")
        found[hook.path] = hook
    return found


def not_a_hook(found: object) -> TypeError:
    return TypeError(f"{found!r} is no hook: declare it with @validator, @defaulter or @converter")


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
        """Serve these hooks. A ValueError if a path is taken."""
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

    async def handle(self, posted: WebhookRequest) -> WebhookResponse:
        """AdmissionResponse one request. Never raises, but when it is cancelled."""
        if posted.path not in self.paths:
            known = ", ".join(self.paths) or "none"
            return WebhookResponse(404, f"no webhook at {posted.path}: there are {known}\n".encode(), "text/plain")
        clock = self._world.clock
        began = clock.monotonic()
        self.statistics.began(posted.path)
        reply = WebhookResponse(500, b"cancelled\n", "text/plain")
        try:
            reply = await (self._convert(posted) if posted.path == CONVERT else self._admit(posted))
        finally:
            self.statistics.ended(posted.path, reply.status, clock.monotonic() - began)
        return reply

    # Admission

    async def _admit(self, posted: WebhookRequest) -> WebhookResponse:
        seconds = self._seconds(posted)
        request: AdmissionRequest | None = None
        try:
            async with self._world.clock.timeout(seconds), self._slots:
                request = read_review(await self._body(posted, self._limits.body))
                answer = await self._call_hook(self._hooks[posted.path], request)
        except ReviewError as error:
            log.warning("%s: %s", posted.path, error)
            return WebhookResponse(
                200, encode_review(errored(error.code, str(error)), error.uid, api_version=error.api_version)
            )
        except TimeoutError:
            message = f"{posted.path} took longer than {seconds:g} s"
            log.error("%s: %s", message, request or "the review was not read")
            answer = errored(504, message)
        if request is None:
            return WebhookResponse(200, encode_review(answer, ""))
        return WebhookResponse(200, self._encoded(request, answer))

    async def _call_hook(self, hook: AdmissionHook, request: AdmissionRequest) -> AdmissionResponse:
        try:
            return await admit(hook, request, self._world.executor)
        except HookFailed as failure:
            self.statistics.panics += 1
            if failure.__cause__ is not None:
                shorten(failure.__cause__)
            log.error("%s: %s", request, failure, exc_info=failure.__cause__)
            return errored(500, str(failure))

    def _encoded(self, request: AdmissionRequest, answer: AdmissionResponse) -> bytes:
        try:
            return encode_review(answer, request.uid, warnings=request.warnings, audit=request.audit_annotations)
        except (TypeError, ValueError, AttributeError) as error:  # what a hook said is no text
            log.exception("%s: the answer cannot be written", request)
            return encode_review(errored(500, f"the answer cannot be written: {error}"), request.uid)

    # Conversion

    async def _convert(self, posted: WebhookRequest) -> WebhookResponse:
        seconds = self._seconds(posted)
        try:
            async with self._world.clock.timeout(seconds), self._conversion_slots:
                body = await self._body(posted, self._limits.conversion_body)
                # In a worker: it may be a list of thousands, and converters may wait for something.
                return WebhookResponse(200, await self._converting.run(self.conversions.answer, body))
        except ReviewError as error:
            log.warning("%s: %s", posted.path, error)
            if not error.uid:
                return WebhookResponse(error.code, f"{error}\n".encode(), "text/plain")
            return WebhookResponse(200, failed_review(error.uid, str(error), error.api_version))
        except ConversionFailed as failure:
            self.statistics.conversion_panics += failure.__cause__ is not None
            log.error("%s: %s", posted.path, failure, exc_info=failure.__cause__)
            return WebhookResponse(200, failed_review(failure.uid, str(failure)))
        except TimeoutError:
            message = f"{posted.path} took longer than {seconds:g} s"
            log.error(message)
            return WebhookResponse(200, failed_review("", message))

    def _seconds(self, posted: WebhookRequest) -> float:
        return min(self._limits.seconds, posted.seconds or self._limits.seconds)

    async def _body(self, posted: WebhookRequest, most: int) -> bytes:
        media_type = posted.content_type.partition(";")[0].strip().lower()
        if media_type != "application/json":
            raise ReviewError(f"contentType={posted.content_type}, expected application/json")
        try:
            return await posted.read(most)
        except BodyTooLarge:
            raise ReviewError(f"request entity is too large; limit is {most} bytes", code=413) from None
