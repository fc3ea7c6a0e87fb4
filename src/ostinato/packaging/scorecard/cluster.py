"""Checks on an API server in this process: the objects, the Pods and the samples of a package.

- Every object of the package is created, in the order of installation.
- A Pod of the Deployment is validated in a namespace that enforces the restricted Pod security standard.
- The controllers run with the permissions of the package, and reconcile the samples.
"""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from typing import Any, Final

from ostinato.api.errors import APIError
from ostinato.api.gvk import GroupKind
from ostinato.client.views import view_of
from ostinato.controllers.kinds.selector import KindsOf
from ostinato.crd.program import controllers_of
from ostinato.packaging.formats.install import concrete_manifests
from ostinato.packaging.package import Package
from ostinato.packaging.scorecard.result import Result

Json = dict[str, Any]

_SUITE: Final = "cluster"
_FOREIGN: Final = ("monitoring.coreos.com/", "cert-manager.io/")  # kinds that a cluster has only with an add-on
_NOT_APPLIED: Final = ("CustomResourceDefinition", "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")
_SECONDS: Final = 20.0  # for the first reconcile of each sample
_RETRY_SECONDS: Final = 2.0  # for a later success after an error
_POLL: Final = 0.02
_MISSING: Final = "needs the server; run pip install 'ostinato[server]'"
_NAMES: Final = (
    "cluster-objects-accepted",
    "cluster-pods-restricted",
    "cluster-samples-valid",
    "cluster-samples-reconciled",
)


async def cluster_results(package: Package, runnables: Sequence[Any]) -> list[Result]:
    """Run the checks. `runnables`: the controllers and webhooks of the program, not started."""
    try:
        import ostinato.server.core  # noqa: F401, PLC0415 - optional: needs ostinato[server]
        from ostinato.testing.cluster import Cluster  # noqa: PLC0415
    except ModuleNotFoundError:
        return [Result(suite=_SUITE, name=name, skipped=_MISSING) for name in _NAMES]
    cluster = Cluster()
    trial = _Trial(package, cluster)
    try:
        await cluster.start()
        return [
            _result(_NAMES[0], await trial.install()),
            _result(_NAMES[1], await trial.create_pod()),
            _result(_NAMES[2], await trial.validate_samples()),
            await trial.reconcile_samples(runnables),
        ]
    finally:
        await trial.close()


def _reconciled(controller: Any) -> set[GroupKind]:
    """Return the kinds that a controller names, without selectors of several kinds."""
    return {view_of(each).gvk.group_kind for each in controller.reconciles if not isinstance(each, KindsOf)}


def _runs(manager: Any) -> dict[str, tuple[int, int]]:
    """Return the number of all reconciles of each controller, and of those that did not fail."""
    found: dict[str, tuple[int, int]] = {}
    for family in manager.metrics.collect():
        for sample in family.samples if family.name == "controller_runtime_reconcile_total" else ():
            total, good = found.get(sample.labels["controller"], (0, 0))
            count = int(sample.value)
            is_good = sample.labels["result"] != "error"
            found[sample.labels["controller"]] = total + count, good + (count if is_good else 0)
    return found


def _has_run(manager: Any, controller: str, count: int) -> bool:
    total, good = _runs(manager).get(controller, (0, 0))
    return total >= count and good > 0


def _place(each: Json) -> tuple[str, str]:
    return each["metadata"].get("namespace", ""), each["metadata"]["name"]


def _without_webhook(definition: Json) -> Json:
    """Return a definition without conversion: no program runs yet."""
    return {**definition, "spec": {name: value for name, value in definition["spec"].items() if name != "conversion"}}


def _result(name: str, errors: list[str]) -> Result:
    return Result(suite=_SUITE, name=name, errors=tuple(errors))


class _Trial:
    def __init__(self, package: Package, cluster: Any) -> None:  # Any: Cluster is imported by the caller
        self._package = package
        self._cluster = cluster
        self._objects = [each.object for each in concrete_manifests(package)]

    async def install(self) -> list[str]:
        """Create every object; webhook configurations are left to the running program."""
        errors: list[str] = []
        await self._ensure_namespaces()
        for each in self._package.operator.definitions:
            await self._attempt(errors, self._cluster.install(_without_webhook(each)))
        for each in self._objects:
            if each["kind"] not in _NOT_APPLIED and not each["apiVersion"].startswith(_FOREIGN):
                await self._attempt(errors, self._apply(each))
        return errors

    async def create_pod(self) -> list[str]:
        """Validate a Pod of the Deployment."""
        (deployment,) = [each for each in self._objects if each["kind"] == "Deployment"]
        template = deployment["spec"]["template"]
        metadata = {**template["metadata"], "name": self._package.name, "namespace": self._package.namespace}
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"]}
        errors: list[str] = []
        await self._attempt(errors, self._cluster.client.create(pod, dry_run=True))
        return errors

    async def validate_samples(self) -> list[str]:
        """Validate the samples, without unknown fields."""
        errors: list[str] = []
        for sample in self._samples():
            checked = self._cluster.client.create(sample, dry_run=True, field_validation="Strict")
            await self._attempt(errors, checked)
        return errors

    async def reconcile_samples(self, runnables: Sequence[Any]) -> Result:
        """Start the program and apply the samples; wait until each of its controllers has reconciled."""
        name = _NAMES[3]
        if not self._samples():
            return Result(suite=_SUITE, name=name, skipped="there are no samples")
        manager = self._cluster.manager()
        errors: list[str] = []
        await self._attempt(errors, manager.start(*runnables))
        for sample in () if errors else self._samples():
            await self._attempt(errors, self._apply(sample))
        if not errors:
            waiting = await self._wait(manager)
            failures = [*dict.fromkeys(manager.unread_errors())]
            errors += failures or [
                f"controller {each}: no successful reconcile within {_SECONDS:g} seconds" for each in waiting
            ]
        manager.errors  # noqa: B018 - reading them tells that they are reported
        return Result(suite=_SUITE, name=name, errors=tuple(errors))

    async def close(self) -> None:
        from ostinato.testing.errors import UnexpectedErrors  # noqa: PLC0415 - optional, as above

        try:
            await self._cluster.close()
        except UnexpectedErrors:
            return  # part of the results

    def _samples(self) -> list[Json]:
        kinds = {
            (f"{each['spec']['group']}/{version['name']}", each["spec"]["names"]["kind"], each["spec"]["scope"])
            for each in self._package.operator.definitions
            for version in each["spec"]["versions"]
        }
        scopes = {(api, kind): scope for api, kind, scope in kinds}
        found = []
        for each in self._package.samples:
            scope = scopes.get((each["apiVersion"], each["kind"]))
            if scope == "Namespaced":
                found.append({**each, "metadata": {"namespace": "default", **each["metadata"]}})
            elif scope is not None:
                found.append(each)
        return found

    async def _wait(self, manager: Any) -> list[str]:
        """Wait until the controllers of the samples' kinds have reconciled as many objects; return the others."""
        objects = {
            (GroupKind(each["apiVersion"].rpartition("/")[0], each["kind"]), _place(each)) for each in self._samples()
        }
        wanted = {
            controller.name: sum(kind in _reconciled(controller) for kind, _ in objects)
            for controller in controllers_of(manager)
        }
        clock = self._cluster.world.clock
        end = clock.monotonic() + _SECONDS
        while left := [name for name, count in wanted.items() if count and not _has_run(manager, name, count)]:
            if manager.unread_errors():
                end = min(end, clock.monotonic() + _RETRY_SECONDS)
            if clock.monotonic() >= end:
                break
            await clock.sleep(_POLL)
        return sorted(left)

    async def _ensure_namespaces(self) -> None:
        present = {each["metadata"]["name"] for each in self._objects if each["kind"] == "Namespace"} | {"default"}
        wanted = {each["metadata"].get("namespace") for each in self._objects} | {
            each["metadata"].get("namespace") for each in self._samples()
        }
        for name in sorted({each for each in wanted if each} - present):
            labels = {"pod-security.kubernetes.io/enforce": "restricted"} if name == self._package.namespace else {}
            await self._apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}})

    async def _apply(self, each: Json) -> None:
        await self._cluster.client.apply(each, field_manager="ostinato-score", force=True)

    async def _attempt(self, errors: list[str], action: Awaitable[object]) -> None:
        try:
            await action
        except (APIError, ValueError, RuntimeError) as error:
            errors.append(str(error))
