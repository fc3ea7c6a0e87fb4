"""Reconciler of a kind whose objects are releases of a chart.

| the release | action |
|---|---|
| does not exist, or its installation failed or was interrupted | install |
| chart or values differ from the deployed revision | upgrade; if that fails, roll back |
| its last action was interrupted, and nothing differs | roll back |
| is as deployed | repair: apply the manifest of the deployed revision |
| its custom resource is being deleted | uninstall, then remove the finalizer |

A failure is a condition and is retried with backoff.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

from ostinato.api import accessors as access
from ostinato.api.gvk import NamespacedName
from ostinato.api.time import Duration, TimeError
from ostinato.charts import ChartError
from ostinato.client.patching import MergePatch
from ostinato.client.views import Unstructured
from ostinato.controllers.context import Context
from ostinato.controllers.objects.applying import Applier
from ostinato.controllers.result import PermanentError, Result, Unsettled
from ostinato.frontends.charts.actions.objects import ReleaseError, ReleaseObjects
from ostinato.frontends.charts.actions.release import FAILURES, Content, Release, Waiting, deployed_of
from ostinato.frontends.charts.attempts import Attempts
from ostinato.frontends.charts.deciding import ChartDecider, request_of
from ostinato.frontends.charts.manifests import objects_of
from ostinato.frontends.charts.options import ChartOptions
from ostinato.frontends.charts.releases.record import RecordError, ReleaseRecord
from ostinato.frontends.charts.releases.storage import ForeignRelease, ReleaseStorage
from ostinato.frontends.charts.rendering import LoadedChart, capabilities_of, values_of
from ostinato.frontends.charts.status import ReleaseStatus
from ostinato.frontends.kernel.recording import DIRECTORY, recorded
from ostinato.frontends.watches.dependents import Dependents

Json = dict[str, Any]

FINALIZER: Final = "helm.sdk.operatorframework.io/uninstall-release"
LEGACY_FINALIZER: Final = "uninstall-helm-release"
_PREFIX: Final = "helm.sdk.operatorframework.io"
PERIOD: Final = f"{_PREFIX}/reconcile-period"
UPGRADE_FORCE: Final = f"{_PREFIX}/upgrade-force"
ROLLBACK_FORCE: Final = f"{_PREFIX}/rollback-force"
UNINSTALL_WAIT: Final = f"{_PREFIX}/uninstall-wait"
_UNINSTALL_POLL: Final = 5.0  # seconds between looks at objects that are being deleted
_BROKEN: Final = (*FAILURES, ChartError)


class _Subject(NamedTuple):
    """What one reconcile works on."""

    instance: Json
    status: ReleaseStatus
    storage: ReleaseStorage
    release: Release
    history: Sequence[ReleaseRecord]


class _Later(Exception):  # noqa: N818
    """A failed action is tried again after a delay."""

    def __init__(self, delay: float) -> None:
        super().__init__()
        self.delay = delay


class ChartReconciler:
    def __init__(
        self, view: Unstructured, chart: LoadedChart, options: ChartOptions, dependents: Callable[[], Dependents]
    ) -> None:
        self._view = view
        self._chart = chart
        self._options = options
        self._dependents = dependents
        self._decider = recorded(ChartDecider(chart))  # called only to be recorded
        self._attempts = Attempts()
        self._applier: Applier | None = None  # remembers what it has applied, for all objects of the kind

    async def reconcile(self, request: NamespacedName, ctx: Context) -> Result:
        instance = await ctx.client.get(self._view, request, missing=None)
        if instance is None:
            self._attempts.forget(request)
            return Result()
        finalizers = access.finalizers(instance)
        if access.is_being_deleted(instance) and not {FINALIZER, LEGACY_FINALIZER}.intersection(finalizers):
            return Result()
        if not access.is_being_deleted(instance) and not {FINALIZER, LEGACY_FINALIZER}.intersection(finalizers):
            await self._write_finalizers(instance, ctx, [*finalizers, FINALIZER])
        status = ReleaseStatus(instance.get("status"), ctx.now())
        try:
            subject = await self._subject(instance, status, ctx)
        except (RecordError, ReleaseError) as error:
            status.irreconcilable(str(error))
            await self._write_status(instance, status, ctx)
            raise
        if access.is_being_deleted(instance):
            return await self._uninstall(subject, ctx)
        status.initialized()
        period = await self._period(subject, ctx)
        try:
            record = await self._deployed(subject, ctx)
        except _Later as later:
            await self._write_status(instance, status, ctx)
            return Unsettled(requeue_after=later.delay)
        except Exception:
            await self._write_status(instance, status, ctx)
            raise
        self._attempts.forget(request)
        status.deployed(record)
        await self._write_status(instance, status, ctx)
        await self._watch(record, ctx)
        return Result(requeue_after=period) if period else Result()

    async def _subject(self, instance: Json, status: ReleaseStatus, ctx: Context) -> _Subject:
        kind = await ctx.client.live.mapper.kind(self._view.gvk)
        if not kind.namespaced:
            raise PermanentError(
                f"{kind.gvk.kind} is cluster-scoped; a release needs a namespace, use a namespaced kind"
            )
        storage = ReleaseStorage(ctx.client.live, instance, max_history=self._options.max_history)
        try:
            history = await storage.history()
        except ForeignRelease:
            if not access.is_being_deleted(instance):
                raise
            history = []  # there is nothing to uninstall
        others = {each.chart_name for each in history} - {self._chart.name}
        if others and access.is_being_deleted(instance):
            history = []
        elif others:
            raise ReleaseError(
                f"release {access.name(instance)} exists and is of chart {min(others)}; use another name"
            )
        if self._applier is None:
            self._applier = Applier(ctx.client, ctx.name)
        objects = ReleaseObjects(ctx.client, self._applier, instance, kind, self._chart.name)
        waiting = Waiting(ready=self._options.wait, hooks=self._options.hook_timeout)
        release = Release(ctx.client, storage, objects, instance, waiting)
        return _Subject(instance, status, storage, release, history)

    # Installed releases

    async def _deployed(self, subject: _Subject, ctx: Context) -> ReleaseRecord:
        """Make the release as the custom resource says, and return its record."""
        deployed = deployed_of(subject.history)
        try:
            values = values_of(self._spec(subject.instance), self._options.overrides)
        except ChartError as error:
            subject.status.irreconcilable(str(error))
            raise
        if deployed is None:
            return await self._install(subject, values, ctx)
        was_interrupted = await subject.release.settle(subject.history)
        try:
            content = await self._changed(subject, deployed, values, ctx)
        except _BROKEN as error:
            subject.status.irreconcilable(str(error))
            raise
        if content is not None:
            await self._settled(subject, deployed, ctx, was_interrupted=was_interrupted)
            return await self._upgrade(subject, content, ctx)
        try:
            if was_interrupted:
                return await subject.release.roll_back(subject.history, force=self._force_rollback(subject))
            await subject.release.repair(deployed)
        except _BROKEN as error:
            subject.status.irreconcilable(str(error))
            raise
        return deployed

    async def _install(self, subject: _Subject, values: Json, ctx: Context) -> ReleaseRecord:
        self._check_attempts(subject, ctx)
        self._report_overrides(subject.instance, ctx)
        try:
            content = await self._render(subject.instance, values, 1, ctx)
            if subject.history:
                await subject.release.discard(subject.history, content)
            record = await subject.release.install(content)
        except _BROKEN as error:
            subject.status.failed("InstallError", f"failed to install release: {error}")
            self._attempts.failed(ctx.request, _request(subject.instance), ctx.world.clock)
            raise
        ctx.logger.info("release installed object=%r revision=%s", str(ctx.request), record.version)
        return record

    async def _upgrade(self, subject: _Subject, content: Content, ctx: Context) -> ReleaseRecord:
        self._report_overrides(subject.instance, ctx)
        force = self._flag(subject.instance, UPGRADE_FORCE, default=False, ctx=ctx)
        try:
            record = await subject.release.upgrade(content, subject.history, force=force)
        except _BROKEN as error:
            subject.status.failed("UpgradeError", f"failed to upgrade release: {error}")
            self._attempts.failed(ctx.request, _request(subject.instance), ctx.world.clock)
            await self._roll_back(subject, ctx)
            raise
        ctx.logger.info("release upgraded object=%r revision=%s", str(ctx.request), record.version)
        return record

    async def _settled(
        self, subject: _Subject, deployed: ReleaseRecord, ctx: Context, *, was_interrupted: bool
    ) -> None:
        """Before an upgrade that has failed shortly before: repair what is deployed, and raise `_Later`."""
        try:
            self._check_attempts(subject, ctx)
        except _Later:
            if not was_interrupted:
                await subject.release.repair(deployed)
            raise

    def _check_attempts(self, subject: _Subject, ctx: Context) -> None:
        delay = self._attempts.delay(ctx.request, _request(subject.instance), ctx.world.clock)
        if delay:
            raise _Later(delay)

    async def _roll_back(self, subject: _Subject, ctx: Context) -> None:
        history = await subject.storage.history()
        try:
            record = await subject.release.roll_back(history, force=self._force_rollback(subject))
        except _BROKEN as error:
            ctx.logger.error("rollback failed object=%r error=%s", str(ctx.request), error)
        else:
            ctx.logger.info("release rolled back object=%r revision=%s", str(ctx.request), record.version)

    async def _changed(self, subject: _Subject, deployed: ReleaseRecord, values: Json, ctx: Context) -> Content | None:
        """Return the content of an upgrade; None if none is due."""
        is_same = deployed.digest == self._chart.digest and (deployed.config or {}) == values
        if is_same and self._options.dry_run == "client":
            return None
        revision = subject.history[-1].version + 1
        if deployed.digest and not is_same:
            return await self._render(subject.instance, values, revision, ctx)
        # Recorded by Helm or by operator-sdk, without a digest; or asked to compare.
        candidate = await self._render(subject.instance, values, deployed.version, ctx)
        if candidate.manifest == deployed.manifest:
            return None
        return await self._render(subject.instance, values, revision, ctx)

    async def _render(self, instance: Json, values: Json, revision: int, ctx: Context) -> Content:
        if os.environ.get(DIRECTORY):
            capabilities = await capabilities_of(ctx.client)
            await self._decider(request_of(ctx.name, instance, values, revision, capabilities))
        return await self._chart.render(instance, values, revision, ctx.client)

    # Deletion

    async def _uninstall(self, subject: _Subject, ctx: Context) -> Result:
        wait = self._flag(subject.instance, UNINSTALL_WAIT, default=False, ctx=ctx)
        left: list[Json] = []
        if subject.history:
            try:
                left = await subject.release.uninstall(subject.history, wait=wait)
            except _BROKEN as error:
                subject.status.failed("UninstallError", str(error))
                await self._write_status(subject.instance, subject.status, ctx)
                raise
        waiting = wait and bool(left)
        subject.status.uninstalled(waiting=waiting)
        await self._write_status(subject.instance, subject.status, ctx)
        if waiting:
            ctx.logger.info("waiting for deletion object=%r left=%s", str(ctx.request), len(left))
            return Result(requeue_after=_UNINSTALL_POLL)
        kept = [each for each in access.finalizers(subject.instance) if each not in (FINALIZER, LEGACY_FINALIZER)]
        await self._write_finalizers(subject.instance, ctx, kept)
        ctx.logger.info("release uninstalled object=%r", str(ctx.request))
        return Result()

    # Helpers

    async def _watch(self, record: ReleaseRecord, ctx: Context) -> None:
        """Watch the kinds of the release."""
        if not self._options.watch_dependents:
            return
        mapper = ctx.client.live.mapper
        for gvk in {access.gvk(each) for each in objects_of(record.manifest)}:
            self._dependents().watch(await mapper.kind(gvk), namespaced_owner=True)

    def _spec(self, instance: Json) -> Json:
        spec = instance.get("spec")
        return spec if isinstance(spec, dict) else {}

    async def _period(self, subject: _Subject, ctx: Context) -> float:
        given = access.annotations(subject.instance).get(PERIOD)
        if given is None:
            return self._options.reconcile_period
        try:
            return max(Duration.parse(given).seconds, 0.0)
        except TimeError as error:
            message = f"annotation {PERIOD}: {error}; write a duration such as 30s or 1h"
            subject.status.irreconcilable(message)
            await self._write_status(subject.instance, subject.status, ctx)
            raise PermanentError(message) from None

    def _force_rollback(self, subject: _Subject) -> bool:
        given = access.annotations(subject.instance).get(ROLLBACK_FORCE, "true")
        return given.lower() not in ("false", "0", "f")

    def _flag(self, instance: Json, annotation: str, *, default: bool, ctx: Context) -> bool:
        given = access.annotations(instance).get(annotation)
        if given is None or given == "":
            return default
        if given.lower() in ("1", "t", "true"):
            return True
        if given.lower() not in ("0", "f", "false"):
            text = "annotation ignored object=%r annotation=%s value=%r"
            ctx.logger.warning(text, str(ctx.request), annotation, given)
        return False

    def _report_overrides(self, instance: Json, ctx: Context) -> None:
        """Record which values are overridden; not what they are set to, which may be a secret."""
        for name in self._options.overrides:
            note = f"Chart value {name!r} overridden by the operator"
            ctx.event(instance, "OverrideValuesInUse", note, kind="Warning")

    async def _write_finalizers(self, instance: Json, ctx: Context, wanted: list[str]) -> None:
        metadata = {"finalizers": wanted or None, "resourceVersion": access.resource_version(instance)}
        answer = await ctx.client.patch(
            self._view, access.key(instance), MergePatch({"metadata": metadata}), field_manager=ctx.name
        )
        instance["metadata"] = answer["metadata"]

    async def _write_status(self, instance: Json, status: ReleaseStatus, ctx: Context) -> None:
        """Write the status over changes since the object was read, but not to another object of the same name."""
        change = status.change()
        if change is None:
            return
        latest: Json | None = instance

        async def write() -> None:
            nonlocal latest
            if latest is None:
                latest = await ctx.client.live.get(self._view, access.key(instance), missing=None)
            if latest is None or access.uid(latest) != access.uid(instance):
                return
            version, latest = access.resource_version(latest), None
            answer = await ctx.client.patch(
                self._view,
                access.key(instance),
                MergePatch({"metadata": {"resourceVersion": version}, "status": change}),
                subresource="status",
                field_manager=ctx.name,
            )
            instance["metadata"] = answer["metadata"]

        await ctx.client.retry_on_conflict(write)


def _request(instance: Json) -> tuple[str, int, tuple[tuple[str, str], ...]]:
    """Return what an action on the release depends on: another value is tried at once."""
    annotations = access.annotations(instance)
    flags = tuple((name, annotations.get(name, "")) for name in (UPGRADE_FORCE, ROLLBACK_FORCE))
    return access.uid(instance), access.generation(instance), flags
