"""Failures: reports failed reconciles in the log, as Events, and in the Ready condition.

- The first failure of a key is logged with its traceback, reduced to the user's code. Identical ones after it are one
  line each, with the attempt and the delay before the next. A success, or another error, resets this.
- Each failure is a Warning Event about the object; the recorder correlates repeated ones.
- The Ready condition is written with the first failure only.
- Reporting never fails a reconcile.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import msgspec

from ostinato.api.accessors import AnyObject
from ostinato.api.codec import ObjectError
from ostinato.api.errors import APIError, Conflict, TooManyRequests
from ostinato.api.owners import OwnerError
from ostinato.cache.own_writes.expectations import StaleCache
from ostinato.client.transport.protocol import TransportError
from ostinato.client.views import View
from ostinato.controllers.context import Context
from ostinato.controllers.current import Reconcile, running
from ostinato.controllers.failures.messages import fingerprint, one_line, summary, with_hint
from ostinato.controllers.failures.ready import REASON, ReadyCondition, cached_entry
from ostinato.controllers.failures.trace import shorten
from ostinato.controllers.options import ControllerOptions
from ostinato.controllers.result import PermanentError, TemporaryError
from ostinato.controllers.runnable import Dependencies


class ReconcileTimeout(TimeoutError):  # noqa: N818
    """A reconcile exceeded its timeout and was cancelled."""


# Errors that a correct program may meet: without a line of the user's code, the message says enough.
_EXPECTED = (APIError, TransportError, PermanentError, ReconcileTimeout, OwnerError, StaleCache, ObjectError)


class Failure(msgspec.Struct, frozen=True):
    """A failed reconcile."""

    reconcile: Reconcile
    about: str  # controller and object as log details
    error: Exception
    given_up: bool  # not requeued
    is_repeated: bool  # identical to the last failure of the key
    has_trace: bool


class Failures:
    """The failures of one controller."""

    def __init__(
        self, name: str, view: View[Any] | None, options: ControllerOptions, dependencies: Dependencies
    ) -> None:
        self._logger = dependencies.logger
        self._recorder = dependencies.recorder if options.error_events else None
        self._informers = dependencies.informers
        self._ready: ReadyCondition | None = None
        if options.error_conditions and view is not None:
            ready = ReadyCondition(name, view, dependencies.informers)
            self._ready = ready if ready.is_supported else None
        self._last: dict[Hashable, Hashable] = {}  # fingerprint of the last failure of each failing key

    def failed(self, reconcile: Reconcile, about: str, error: Exception, *, given_up: bool) -> Failure:
        """Record a failure of a key, and reduce its traceback."""
        is_plain = isinstance(error, TemporaryError) and error.__cause__ is None  # the message says enough
        has_trace = (shorten(error) or not isinstance(error, _EXPECTED)) and not is_plain
        print_ = fingerprint(error)
        is_repeated = self._last.get(reconcile.request) == print_
        self._last[reconcile.request] = print_
        return Failure(reconcile, about, error, given_up, is_repeated, has_trace)

    async def report(self, failure: Failure, context: Context) -> None:
        """Record the Event, and set the Ready condition for a new failure."""
        message = summary(failure.error)
        if self._recorder is not None:
            subject = self._subject(context)
            if subject is not None:
                self._recorder.event(subject, REASON, message, kind="Warning", action="Reconcile")
        if self._ready is None or failure.is_repeated or isinstance(failure.error, TransportError):
            return
        try:
            await self._ready.mark(context, message)
        except Exception as error:  # noqa: BLE001 - the failure itself is logged
            self._logger.debug("unable to set the Ready condition %s error=%s", failure.about, one_line(error))

    def log(self, failure: Failure, delay: float | None) -> None:
        """Log a failure. `delay`: seconds until the key runs again; None if it is not requeued."""
        how = ", not requeued" if failure.given_up else ""
        with running(failure.reconcile):
            if failure.is_repeated:
                self._logger.error(
                    "reconcile failed again%s %s attempt=%d%s error=%s",
                    how,
                    failure.about,
                    failure.reconcile.attempt,
                    "" if delay is None else f" next_delay={_seconds(delay)}s",
                    one_line(failure.error),
                )
                return
            self._logger.error(
                "reconcile failed%s %s error=%s: %s",
                how,
                failure.about,
                type(failure.error).__name__,
                with_hint(failure.error),
                exc_info=failure.error if failure.has_trace else None,
            )

    def needs_recovery(self, context: Context) -> bool:
        """Return whether `recovered` has to be called after a success; cheap."""
        return context.request in self._last or (self._ready is not None and self._ready.may_be_set(context))

    async def recovered(self, context: Context) -> bool:
        """Forget the failures of a key that succeeded, and remove the Ready condition that was set for them.

        Returns False if the condition is still there for a reason that passes: the key has to run again.
        """
        self._last.pop(context.request, None)
        if self._ready is None or not self._ready.may_be_set(context):
            return True
        try:
            await self._ready.clear(context)
        except Exception as error:  # noqa: BLE001 - the next success tries again
            self._logger.debug(
                "unable to remove the Ready condition controller=%s object=%s error=%s",
                context.name,
                context.request,
                one_line(error),
            )
            return not _passes(error)
        return True

    def _subject(self, context: Context) -> AnyObject | None:
        """Return the reconciled object for an Event: as it was read, else its identity in the cache."""
        if context.object is not None:
            return context.object
        entry = cached_entry(self._informers, context)
        if entry is None:
            return None
        gvk = entry.collection.info.gvk
        metadata = {"name": entry.key.name, "namespace": entry.key.namespace, "uid": entry.uid}
        return {"apiVersion": gvk.api_version, "kind": gvk.kind, "metadata": metadata}


def _seconds(delay: float) -> str:
    return f"{delay:.3f}".rstrip("0").rstrip(".")


def _passes(error: Exception) -> bool:
    """Return whether a request that failed may succeed later: not one that the server refuses for good."""
    if isinstance(error, APIError):
        return error.code >= 500 or isinstance(error, Conflict | TooManyRequests)
    return isinstance(error, TransportError | TimeoutError)
