"""Reconciler of a kind: plays its role or playbook, and writes the conditions.

- A run that fails is retried with backoff. After a run that succeeds, the next one is after the reconcile period.
- With a finalizer, its role or playbook is played when the object is deleted; the finalizer is removed when that run
  has succeeded.
- Nothing is remembered between runs: after a restart every object is reconciled again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from ostinato.api import accessors as access
from ostinato.api.gvk import NamespacedName
from ostinato.api.time import Duration, TimeError
from ostinato.client.patching import MergePatch
from ostinato.client.views import Unstructured
from ostinato.controllers.context import Context
from ostinato.controllers.result import PermanentError, Result
from ostinato.frontends.roles import status
from ostinato.frontends.roles.events import AnsibleEvent, Outcome
from ostinato.frontends.roles.options import MAX_VERBOSITY, Content, RoleOptions
from ostinato.frontends.roles.parameters import parameters_of
from ostinato.frontends.roles.runner import Job, Runner

Json = dict[str, Any]

_PREFIX: Final = "ansible.sdk.operatorframework.io"
PERIOD: Final = f"{_PREFIX}/reconcile-period"
VERBOSITY: Final = f"{_PREFIX}/verbosity"
MAX_ARTIFACTS: Final = f"{_PREFIX}/max-runner-artifacts"
_DEBUG_LENGTH: Final = 10_000  # characters of a task's output in the log


class RoleFailed(Exception):  # noqa: N818
    """A run has failed; the message is that of its failed tasks."""


class RoleReconciler:
    def __init__(
        self, view: Unstructured, content: Content, options: RoleOptions, runner: Callable[[Context], Runner]
    ) -> None:
        self._view = view
        self._content = content
        self._options = options
        self._runner = runner

    async def reconcile(self, request: NamespacedName, ctx: Context) -> Result:
        instance = await ctx.client.get(self._view, request, missing=None)
        if instance is None:
            return Result()
        finalizer = self._options.finalizer
        if finalizer is None:
            return Result() if access.is_being_deleted(instance) else await self._play(instance, ctx, self._content, {})
        if access.is_being_deleted(instance) and not access.has_finalizer(instance, finalizer.name):
            return Result()
        async with ctx.finalizer(instance, finalizer.name) as deleting:
            if not deleting:
                return await self._play(instance, ctx, self._content, {})
            await self._play(instance, ctx, finalizer.content or self._content, finalizer.vars)
        return Result()

    async def _play(self, instance: Json, ctx: Context, content: Content, extra: Any) -> Result:
        period = await self._period(instance, ctx)
        if not isinstance(instance.get("spec"), dict):
            instance["spec"] = {}
        if self._options.manage_status:
            await self._write(instance, ctx, lambda found: status.running(found, ctx.now()))
        job = await self._job(instance, ctx, content, extra)
        ctx.logger.info("run started object=%r job=%s content=%s", str(ctx.request), job.ident, content.path.name)
        outcome = await self._runner(ctx).play(job, lambda event: self._log(event, ctx, job.ident))
        if outcome.has_failed:
            await self._mark(
                instance, ctx, lambda found: status.failed(found, ctx.now(), outcome.message, outcome.counts)
            )
            raise RoleFailed(f"{content.path.name}: {outcome.message}")
        ctx.logger.info("run succeeded object=%r job=%s %s", str(ctx.request), job.ident, _counts(outcome))
        await self._mark(instance, ctx, lambda found: status.succeeded(found, ctx.now(), outcome))
        if outcome.problem:
            ctx.logger.warning("period ignored object=%r job=%s error=%s", str(ctx.request), job.ident, outcome.problem)
        after = period if outcome.requeue_after is None else outcome.requeue_after
        return Result(requeue_after=after) if after else Result()

    async def _job(self, instance: Json, ctx: Context, content: Content, extra: Any) -> Job:
        options = self._options
        variables = parameters_of(
            instance, options.vars, extra, snake_case=options.snake_case, mark_unsafe=options.mark_unsafe
        )
        verbosity = min(_number(instance, VERBOSITY, options.verbosity, ctx), MAX_VERBOSITY)
        return Job(
            content=content,
            owner=instance,
            kind=await ctx.client.live.mapper.kind(self._view.gvk),
            variables=variables,
            ident=ctx.world.ids.suffix(10),
            verbosity=verbosity,
            max_artifacts=_number(instance, MAX_ARTIFACTS, options.max_artifacts, ctx),
            timeout=options.timeout,
        )

    async def _period(self, instance: Json, ctx: Context) -> float:
        given = access.annotations(instance).get(PERIOD)
        if given is None:
            return self._options.reconcile_period
        try:
            return max(Duration.parse(given).seconds, 0.0)
        except TimeError as error:
            message = f"annotation {PERIOD}: {error}; write a duration such as 30s or 1h"
            await self._mark(instance, ctx, lambda found: status.failed(found, ctx.now(), message))
            raise PermanentError(message) from None

    async def _mark(self, instance: Json, ctx: Context, conditions: Callable[[Any], list[Json]]) -> None:
        """Write conditions over those that the server has now: the playbook may have written some."""
        if not self._options.manage_status:
            return

        async def write() -> None:
            latest = await ctx.client.live.get(self._view, access.key(instance), missing=None)
            if latest is not None and access.uid(latest) == access.uid(instance):
                await self._write(latest, ctx, conditions)
                instance["metadata"] = latest["metadata"]  # for the removal of the finalizer

        await ctx.client.retry_on_conflict(write)

    async def _write(self, instance: Json, ctx: Context, conditions: Callable[[Any], list[Json]]) -> None:
        before = instance.get("status")
        after = conditions(before)
        if isinstance(before, dict) and before.get("conditions") == after:
            return
        version = access.resource_version(instance)
        patch = MergePatch({"metadata": {"resourceVersion": version}, "status": {"conditions": after}})
        answer = await ctx.client.patch(
            self._view, access.key(instance), patch, subresource="status", field_manager=ctx.name
        )
        instance["status"] = answer.get("status")
        access.writable_metadata(instance)["resourceVersion"] = access.resource_version(answer)

    def _log(self, event: AnsibleEvent, ctx: Context, ident: str) -> None:
        """Log the begin of tasks, failures, and at debug level what Ansible prints; it hides `no_log` itself."""
        where = str(ctx.request)
        if event.event == "playbook_on_task_start":
            ctx.logger.info("task started object=%r job=%s task=%r", where, ident, event.task)
        elif event.event == "runner_on_failed":
            how = "failed" if event.is_failure else "failed, ignored"
            ctx.logger.warning(
                "task %s object=%r job=%s task=%r message=%r", how, where, ident, event.task, event.message
            )
        if event.stdout:
            ctx.logger.debug("ansible object=%r job=%s output=%r", where, ident, event.stdout[:_DEBUG_LENGTH])


def _number(instance: Json, annotation: str, default: int, ctx: Context) -> int:
    given = access.annotations(instance).get(annotation)
    if given is None:
        return default
    if not given.isdecimal() or len(given) > 9:
        ctx.logger.warning("annotation ignored object=%r annotation=%s value=%r", str(ctx.request), annotation, given)
        return default
    return int(given)


def _counts(outcome: Outcome) -> str:
    return " ".join(f"{name}={value}" for name, value in (outcome.counts or {}).items() if name != "completion")
