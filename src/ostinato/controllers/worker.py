"""Worker: runs the reconciler for one key and decides whether the key is requeued.

Every failure of a reconciler is handled and logged here: an error, a programming error, a conflict, a timeout, a
blocked event loop, an invalid result, a hot loop of writes. None of them affects other keys.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Hashable
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec

from ostinato.api import accessors as access
from ostinato.api.errors import Conflict, Invalid, NotFound
from ostinato.api.gvk import NamespacedName
from ostinato.api.object import plural_of
from ostinato.cache.own_writes.recorder import OwnWrite, OwnWrites, own_writes
from ostinato.client.patching import MergePatch
from ostinato.client.views import Unstructured, View
from ostinato.controllers import reasons
from ostinato.controllers.context import Context
from ostinato.controllers.current import Reconcile, current_reconcile, running
from ostinato.controllers.failures.failures import Failure, Failures, ReconcileTimeout
from ostinato.controllers.failures.messages import one_line
from ostinato.controllers.failures.retries import Retries
from ostinato.controllers.guards.hot_loop import HotLoopGuard, Write
from ostinato.controllers.guards.own_events import OwnEvents
from ostinato.controllers.guards.steps import Measured
from ostinato.controllers.namespaces import NamespacedClients
from ostinato.controllers.objects.applying import Applier, StillOwned
from ostinato.controllers.objects.changes import Changes, LastReconciled
from ostinato.controllers.options import ControllerOptions
from ostinato.controllers.reasons import Why
from ostinato.controllers.reports.metrics import ControllerStatistics, Outcome
from ostinato.controllers.reports.observing import Observer, RunOutcome, RunResult
from ostinato.controllers.result import Result, Unsettled, delay_of, is_permanent
from ostinato.controllers.runnable import Dependencies, Span, no_span

if TYPE_CHECKING:
    from ostinato.controllers.controller import Controller

_MAX_QUIET_CONFLICTS = 10  # consecutive conflicts that are logged at debug level

# Programming errors, which would be panics in Go. They are logged with a traceback.
_PANICS = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    BufferError,
    ImportError,
    LookupError,
    MemoryError,
    NameError,
    RecursionError,
    SyntaxError,
    SystemExit,
    TypeError,
)


_CLEAR_AGAIN = 5.0  # seconds until the Ready condition of a failure is removed after all


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of a reconcile: whether and how the key is requeued, and what the reconcile wrote."""

    writes: OwnWrites
    succeeded: bool = False  # resets the backoff
    exhausted: bool = False  # no retries are left; resets the backoff too
    delay: float | None = None  # requeue after so many seconds
    retry: bool = False  # requeue with backoff
    reason: str = ""  # of the requeue
    priority: int | None = None
    failure: Failure | None = None


class Worker:
    def __init__(
        self,
        controller: Controller,
        options: ControllerOptions,
        dependencies: Dependencies,
        statistics: ControllerStatistics,
        applier: Applier,
        guard: HotLoopGuard | None,
    ) -> None:
        self._controller = controller
        self._name = controller.name
        self._view = controller.view
        self._gvk = None if controller.view is None else controller.view.gvk
        self._resource = None if controller.view is None else _resource(controller.view)
        self._timeout = options.reconcile_timeout or None
        self._contain = options.contain_panics is not False
        self._slow_step = options.slow_step or 0.0
        self._measures = self._slow_step > 0 and controller.reconciler.is_async
        self._dependencies = dependencies
        self._world = dependencies.world
        self._logger = dependencies.logger
        self._statistics = statistics
        self._applier = applier
        self.failures = Failures(controller.name, controller.view, options, dependencies)
        self._last = LastReconciled(controller.name, annotation=bool(options.changes_annotation))
        self.retries = Retries(-1 if options.max_retries is None else options.max_retries)
        self._records_own_events = options.runs_for_own_writes is False
        self._clients = NamespacedClients(dependencies.client, controller.view)
        self._guard = guard
        self._span = None if dependencies.span is no_span else dependencies.span
        self._observer = dependencies.observer
        self._series = dependencies.world.ids.uid()[:24]  # common prefix of the reconcile ids
        self._runs = 0

    async def reconcile(self, key: Hashable, why: Why, attempt: int, own_events: OwnEvents | None = None) -> Verdict:
        """Run the reconciler for a key. Raises only errors that must stop the controller."""
        self._runs += 1
        reconcile = Reconcile(
            id=f"{self._series}{self._runs:012x}",
            controller=self._name,
            request=key,
            gvk=self._gvk,
            why=why,
            attempt=attempt,
        )
        changes: list[Write] = []
        changed = Changes(self._last, key)
        client = self._clients.of(key)
        context = Context(reconcile, self._dependencies, self._applier, self._controller.owned, client, changed)
        clock = self._world.clock
        began, waited = clock.monotonic(), self._statistics.queue.last_wait  # nothing was awaited since it was taken
        with (
            running(reconcile),
            self._own_writes(context, changes, own_events) as writes,
        ):
            if self._span is None:
                outcome = await self._run(context)
            else:
                outcome = await self._traced(self._span, reconcile, context, waited)
            verdict = self._judge(reconcile, outcome, writes)
            result, seconds = _label(verdict, outcome), clock.monotonic() - began
            self._statistics.ran(result, seconds, why.reasons)
            if self._logger.isEnabledFor(logging.DEBUG):
                self._log_finished(key, why, seconds, result, verdict)
            self._detect_hot_loop(reconcile, changes)
            if self._observer is None:
                writes.on_write = None if own_events is None else partial(own_events.wrote, key)
            else:
                writes.on_write = self._watch_report(self._observer, reconcile, own_events)
                self._observer.finished(reconcile, _run_outcome(verdict, outcome, seconds, waited))
            return await self._report(context, outcome, verdict, changed)

    async def _report(
        self, context: Context, outcome: Result | Exception, verdict: Verdict, changes: Changes
    ) -> Verdict:
        """Write what a failure or a success leaves in the object. These writes do not run the key again.

        Returns the verdict; with a delay if a Ready condition of an earlier failure could not be removed.
        """
        if verdict.failure is not None:
            await self.failures.report(verdict.failure, context)
        elif _is_settled(outcome) and self.failures.needs_recovery(context):
            removed = await self.failures.recovered(context)
            if not removed and not verdict.retry and (verdict.delay is None or verdict.delay > _CLEAR_AGAIN):
                verdict = msgspec.structs.replace(verdict, delay=_CLEAR_AGAIN)
        if verdict.succeeded and self._last.paths:
            await self._record(context, changes)
        return verdict

    async def _record(self, context: Context, changes: Changes) -> None:
        """Record a successful reconcile for `ctx.changed`."""
        record, instance = changes.succeeded(), changes.instance
        if record is None or instance is None:
            return
        change = MergePatch({"metadata": {"annotations": {self._last.annotation: record}}})
        try:
            view = Unstructured(access.gvk(instance), None if self._view is None else self._view.info)
            await context.client.patch(view, access.key(instance), change, field_manager=self._name)
        except Exception as error:  # noqa: BLE001 - the next success tries again
            self._logger.debug("unable to record changes %s error=%s", self._about(context.request), one_line(error))

    async def _traced(self, span: Span, reconcile: Reconcile, context: Context, waited: float) -> Result | Exception:
        """Run the reconciler in a span. An error is raised through the span, which records it."""
        try:
            with span("reconcile", _attributes(reconcile, waited)):
                outcome = await self._run(context)
                if isinstance(outcome, Exception) and not self._is_quiet(reconcile.request, outcome):
                    raise outcome
                return outcome
        except Exception as error:  # noqa: BLE001 - handled by the caller
            return error

    async def _run(self, context: Context) -> Result | Exception:
        """Return the result or the error. Raises CancelledError only if the worker itself was cancelled."""
        timeout = None if self._timeout is None else self._world.clock.timeout(self._timeout)
        coroutine = self._controller.reconciler.run(context)
        run: Awaitable[Result] = coroutine
        if self._measures:
            run = Measured(coroutine, self._world.clock, self._slow_step, self._slow)
        try:
            if timeout is None:
                return await run
            async with timeout:
                return await run
        except asyncio.CancelledError as error:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            return _caused(RuntimeError("the reconciler was cancelled by something it awaited"), error)
        except TimeoutError as error:
            if timeout is None or not timeout.expired():
                return error
            late = ReconcileTimeout(f"exceeded the reconcile timeout of {self._timeout:g} s and was cancelled")
            return _caused(late, error.__cause__ or error)  # the cancellation, which has the user's line
        except SystemExit as error:
            return _caused(ExitError(f"the reconciler called sys.exit({error.code!r})"), error)
        except BaseExceptionGroup as group:
            if isinstance(group, ExceptionGroup):
                return group
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            return _caused(RuntimeError(f"the reconciler raised {group!r}"), group)
        except Exception as error:  # noqa: BLE001 - handled by the caller
            return error
        finally:
            if timeout is not None and timeout.expired():  # even if the reconciler caught the cancellation
                self._statistics.timeouts += 1

    def _judge(self, reconcile: Reconcile, outcome: Result | Exception, writes: OwnWrites) -> Verdict:
        key, attempt = reconcile.request, reconcile.attempt
        if isinstance(outcome, Result):
            if outcome.requeue_after is not None:
                if outcome.retry:
                    self._logger.warning("result has requeue_after and retry; retry is ignored %s", self._about(key))
                return Verdict(
                    writes=writes,
                    succeeded=_is_settled(outcome),
                    delay=outcome.delay,
                    reason=reasons.REQUEUE_AFTER,
                    priority=outcome.priority,
                )
            if outcome.retry:
                return Verdict(writes=writes, retry=True, reason=reasons.RETRY, priority=outcome.priority)
            return Verdict(writes=writes, succeeded=_is_settled(outcome))
        if self._is_quiet(key, outcome):
            self._statistics.conflicts += 1
            log = self._logger.warning if attempt > _MAX_QUIET_CONFLICTS else self._logger.debug
            what = "object still owned by a deleted owner" if isinstance(outcome, StillOwned) else "conflict"
            log("%s, requeued %s attempt=%d error=%s", what, self._about(key), attempt, outcome)
            return Verdict(writes=writes, retry=True, reason=reasons.CONFLICT)
        return self._failed(reconcile, outcome, writes)

    def _is_quiet(self, key: Hashable, error: Exception) -> bool:
        """Return whether the error is expected under concurrency: a conflict, or the object was deleted."""
        return _is_conflict(error) or self._is_gone(key, error)

    def _is_gone(self, key: Hashable, error: Exception) -> bool:
        """Return whether the reconciled object itself was deleted meanwhile."""
        if self._resource is None or not isinstance(error, NotFound) or not isinstance(key, NamespacedName):
            return False
        about = error.details
        return (about.group or "", about.kind, about.name) == (*self._resource, key.name)

    def _failed(self, reconcile: Reconcile, error: Exception, writes: OwnWrites) -> Verdict:
        self._statistics.errors += 1
        is_panic = isinstance(error, (*_PANICS, ExitError))
        if is_panic:
            self._statistics.panics += 1
            if not self._contain:
                raise error
        permanent = is_permanent(error)
        if permanent:
            self._statistics.terminal_errors += 1
        given_up = self.retries.failed(reconcile.request, permanent=permanent)
        failure = self.failures.failed(reconcile, self._about(reconcile.request), error, given_up=given_up)
        return Verdict(
            writes=writes,
            exhausted=given_up and not permanent,
            retry=not given_up,
            delay=None if given_up else delay_of(error),
            reason=reasons.ERROR,
            failure=failure,
        )

    def _watch(
        self, context: Context, changes: list[Write], own_events: OwnEvents | None
    ) -> Callable[[OwnWrite], None]:
        """Return what is called with each write of the reconcile."""
        guard, key, gvk = self._guard, context.reconcile.request, self._gvk
        recorded = own_events if self._records_own_events else None
        observer, reconcile = self._observer, context.reconcile

        def wrote(each: OwnWrite) -> None:
            if observer is not None:
                observer.wrote(reconcile, each)
            if recorded is not None:
                recorded.wrote(key, each)
            if each.key == key and each.gvk == gvk:
                context.object_writes.append(each.instance)
            write = None if guard is None else guard.wrote(each)
            if write is not None:
                changes.append(write)

        return wrote

    def _own_writes(self, context: Context, changes: list[Write], own_events: OwnEvents | None) -> own_writes:
        on_write, observer, reconcile = self._watch(context, changes, own_events), self._observer, context.reconcile
        if observer is None:
            return own_writes(on_write)
        return own_writes(on_write, partial(observer.deleted, reconcile), partial(observer.wrote, reconcile))

    @staticmethod
    def _watch_report(
        observer: Observer, reconcile: Reconcile, own_events: OwnEvents | None
    ) -> Callable[[OwnWrite], None]:
        """Return what is called with each write of a report on the run."""

        def wrote(each: OwnWrite) -> None:
            observer.wrote(reconcile, each)
            if own_events is not None:
                own_events.wrote(reconcile.request, each)

        return wrote

    def _detect_hot_loop(self, reconcile: Reconcile, changes: list[Write]) -> None:
        if self._guard is None:
            return
        key = reconcile.request
        loop = self._guard.finished(key, reconcile.why, changes)
        if loop is not None:
            if self._observer is not None:
                self._observer.hot_loop(reconcile, loop)
            self._statistics.hot_loops += 1
            self._logger.warning("hot loop detected %s: the reconcile %s", self._about(key), loop)
            self._dependencies.recorder.event(
                loop.write.after, "HotLoop", f"controller {self._name} {loop}", kind="Warning"
            )

    def _slow(self, seconds: float) -> None:
        reconcile = current_reconcile()
        self._logger.warning(
            "reconcile blocked the event loop; await long operations, or make the reconciler a plain def, which runs "
            "in a thread %s seconds=%.1f",
            "" if reconcile is None else self._about(reconcile.request),
            seconds,
        )

    def _log_finished(self, key: Hashable, why: Why, seconds: float, result: Outcome, verdict: Verdict) -> None:
        """Log the one line of a reconcile at debug level."""
        delay = "" if verdict.delay is None else f" delay={verdict.delay:g}s"
        self._logger.debug(
            "reconcile finished %s reason=%r duration=%.3fs result=%s%s",
            self._about(key),
            str(why),
            seconds,
            result,
            delay,
        )

    def _about(self, key: Hashable) -> str:
        """Return controller and object as log details."""
        kind = f"{self._gvk.kind} " if self._gvk is not None and isinstance(key, NamespacedName) else ""
        return f"controller={self._name} object={f'{kind}{key}'!r}"


class ExitError(RuntimeError):
    """A reconciler raised SystemExit."""


def _attributes(reconcile: Reconcile, waited: float) -> dict[str, str]:
    """Return the attributes of the span of a reconcile."""
    return {
        "controller": reconcile.controller,
        "request": str(reconcile.request),
        "reconcile_id": reconcile.id,
        "why": str(reconcile.why),
        "queued_seconds": f"{waited:.6f}",
    }


def _label(verdict: Verdict, outcome: Result | Exception) -> Outcome:
    if isinstance(outcome, Exception) and verdict.reason != reasons.CONFLICT:
        return "error"
    if verdict.delay is not None:
        return "requeue_after"
    return "requeue" if verdict.retry else "success"


def _run_outcome(verdict: Verdict, outcome: Result | Exception, seconds: float, waited: float) -> RunOutcome:
    result: RunResult = "success"
    if isinstance(outcome, Exception):
        result = "conflict" if verdict.reason == reasons.CONFLICT else "error"
    elif verdict.retry or verdict.delay is not None:
        result = "requeue"
    error = one_line(outcome) if isinstance(outcome, Exception) else ""
    return RunOutcome(result=result, seconds=seconds, waited=waited, error=error)


def _is_settled(outcome: Result | Exception) -> bool:
    return isinstance(outcome, Result) and not isinstance(outcome, Unsettled)


def _is_conflict(error: Exception) -> bool:
    """Return whether a retry can resolve the conflict.

    A resourceVersion conflict is resolved by reading the object again, a field manager conflict is not. A conflict with
    another owner is resolved if that owner has been deleted. A patch with the uid of an object that was recreated is
    answered as one that changes the uid.
    """
    if isinstance(error, StillOwned):
        return True
    if isinstance(error, Invalid):
        return any(each.field == "metadata.uid" and "immutable" in each.message for each in error.causes)
    return isinstance(error, Conflict) and not error.has_cause("FieldManagerConflict")


def _resource(view: View[Any]) -> tuple[str, str]:
    """Return group and resource of a kind, as the server's errors name them."""
    return view.gvk.group, view.info.plural if view.info is not None else plural_of(view.gvk.kind)


def _caused(error: Exception, cause: BaseException) -> Exception:
    error.__cause__ = cause
    return error
