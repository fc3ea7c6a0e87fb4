"""What the commands do in a cluster: install, update, upgrade, uninstall, and requests about plans.

Every change is checked by the rules of `triggers` before it is sent, so that a command is refused at once and with the
reason. The functions report what they do by `tell`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from ostinato.api.meta import ObjectMeta
from ostinato.client.client import Client
from ostinato.client.patching import MergePatch
from ostinato.client.waiting import WaitTimedOut
from ostinato.frontends.plans.api import Instance, InstanceStatus, Operator, OperatorVersion
from ostinato.frontends.plans.decisions.requests import Request, annotation_of
from ostinato.frontends.plans.decisions.triggers import Change, Refused, fixed_values, plan_of
from ostinato.frontends.plans.engine import states
from ostinato.frontends.plans.package.resources import Package
from ostinato.frontends.plans.package.versions import is_semantic, order
from ostinato.kinds.core_v1 import Namespace

Json = dict[str, Any]
Tell = Callable[[str], object]

ANSWER: Final = 10.0  # seconds in which a controller answers a request


class PlanError(Exception):
    """A command cannot do what it was asked to."""


class Plans:
    """The operators and instances of one namespace."""

    def __init__(self, client: Client, namespace: str, tell: Tell) -> None:
        self.client = client.in_namespace(namespace)
        self.namespace = namespace
        self._tell = tell

    # Reads

    async def instance(self, name: str) -> Instance:
        found = await self.client.get(Instance, name, missing=None)
        if found is None:
            raise PlanError(f"instance {name} in namespace {self.namespace} does not exist in the cluster")
        return found

    async def version(self, instance: Instance, name: str = "") -> OperatorVersion:
        wanted = name or instance.spec.operator_version.name
        namespace = instance.spec.operator_version.namespace or self.namespace
        found = await self.client.get(OperatorVersion, wanted, namespace=namespace, missing=None)
        if found is None:
            raise PlanError(
                f"OperatorVersion {wanted} from instance {self.namespace}/{instance.metadata.name} does not exist"
            )
        return found

    # Install

    async def install(
        self,
        package: Package,
        dependencies: Sequence[Package] = (),
        *,
        name: str = "",
        parameters: Mapping[str, str] | None = None,
        skip_instance: bool = False,
        annotations: Mapping[str, str] | None = None,
    ) -> str:
        """Create operator, version and instance, and return the name of the instance."""
        instance = package.instance(name, dict(parameters or {}))
        title = instance.metadata.name
        if not skip_instance:
            _check_required(package, parameters or {})
            if await self.client.get(Instance, title, missing=None) is not None:
                raise PlanError(
                    f"cannot install instance '{title}' because an instance of that name already exists in namespace "
                    f"{self.namespace}"
                )
        await self.install_version(package, dependencies)
        if skip_instance:
            return ""
        if annotations:
            instance.metadata.annotations = dict(annotations)
        await self.client.create(instance)
        self._tell(f"instance {self.namespace}/{title} created")
        return title

    async def install_version(self, package: Package, dependencies: Sequence[Package]) -> None:
        await self._create_operator(package)
        if await self._has_version(package):
            self._tell(f"operatorversion {self._place(package.version)} already installed")
            return
        for each in dependencies:
            await self._create_operator(each)
            if not await self._has_version(each):
                await self._create_version(each)
        await self._create_version(package)

    async def _create_operator(self, package: Package) -> None:
        if await self.client.get(Operator, package.name, missing=None) is None:
            metadata = ObjectMeta(name=package.name)
            await self.client.create(Operator(metadata=metadata, spec=package.operator.spec))
            self._tell(f"operator {self._place(package.operator)} created")

    async def _create_version(self, package: Package) -> None:
        metadata = ObjectMeta(name=package.version.metadata.name)
        await self.client.create(OperatorVersion(metadata=metadata, spec=package.version.spec))
        self._tell(f"operatorversion {self._place(package.version)} created")

    async def _has_version(self, package: Package) -> bool:
        return await self.client.get(OperatorVersion, package.version.metadata.name, missing=None) is not None

    def _place(self, instance: Operator | OperatorVersion) -> str:
        return f"{self.namespace}/{instance.metadata.name}"

    async def create_namespace(self, manifest: str = "") -> None:
        """Create the namespace; with the labels and annotations of a manifest. An error if it exists."""
        from ostinato.frontends.plans.parameters import load_yaml  # noqa: PLC0415

        metadata = ObjectMeta(name=self.namespace)
        if manifest:
            found = (load_yaml(manifest) or {}).get("metadata") or {}
            metadata.labels, metadata.annotations = found.get("labels") or {}, found.get("annotations") or {}
        await self.client.create(Namespace(metadata=metadata))
        self._tell(f"namespace {self.namespace} created")

    # Change

    async def update(self, name: str, parameters: Mapping[str, str]) -> Instance:
        """Change parameters. Returns the instance as it was before."""
        before = await self.instance(name)
        version = await self.version(before)
        self._check(before, version, version, {**before.spec.parameters, **parameters})
        await self._patch(name, {"spec": {"parameters": dict(parameters)}})
        self._tell(f"Instance {name} was updated.")
        return before

    async def upgrade(
        self, name: str, package: Package, dependencies: Sequence[Package], parameters: Mapping[str, str]
    ) -> Instance:
        """Change the version of an instance. Returns the instance as it was before."""
        before = await self.instance(name)
        current = await self.version(before)
        old, new = current.spec.version, package.version.spec.version
        for each in (old, new):
            if not is_semantic(each):
                raise PlanError(f"failed to parse {each} as semver")
        if order(new) <= order(old):
            raise PlanError(f"upgraded version {new} is the same or smaller as current version {old} -> not upgrading")
        self._check(before, current, package.version, {**before.spec.parameters, **parameters})
        await self.install_version(package, dependencies)
        reference: Json = {"name": package.version.metadata.name}
        await self._patch(name, {"spec": {"operatorVersion": reference, "parameters": dict(parameters)}})
        self._tell(f"instance {self.namespace}/{name} updated")
        return before

    def _check(
        self, before: Instance, old: OperatorVersion, new: OperatorVersion, parameters: Mapping[str, str]
    ) -> None:
        execution = before.status.execution if before.status is not None else None
        recorded = fixed_values(old.spec, before.spec.parameters)
        if execution is not None and execution.parameters is not None:
            recorded = execution.parameters
        fixed = {
            each.name: recorded[each.name]
            for each in new.spec.parameters
            if each.is_immutable and each.name in recorded and each.name not in parameters
        }
        try:
            plan_of(
                Change(
                    old=old.spec,
                    new=new.spec,
                    old_parameters=recorded,
                    new_parameters={**fixed, **parameters},
                    is_upgrade=old.metadata.name != new.metadata.name,
                    new_name=new.metadata.name,
                    running="" if execution is None else execution.plan,
                )
            )
        except Refused as refused:
            raise PlanError(f"failed to update Instance {self.namespace}/{before.metadata.name}: {refused}") from None

    async def uninstall(self, name: str, seconds: float | None = None) -> None:
        """Delete an instance. `seconds`: wait so long until it is gone. Defaults to not waiting."""
        await self.instance(name)
        await self.client.delete(Instance, name)
        if seconds is not None:
            try:
                await self.client.wait_for(Instance, name, lambda each: each is None, timeout=seconds)
            except WaitTimedOut:
                raise PlanError(f"instance {self.namespace}/{name} is not deleted after {seconds:g} s") from None
        self._tell(f"instance.kudo.dev/v1beta1/{name} deleted")

    async def _patch(self, name: str, change: Json) -> None:
        await self.client.patch(Instance, name, MergePatch(change))

    # Requests

    async def request(self, name: str, verb: str, seconds: float = ANSWER, **fields: Any) -> bool:
        """Ask the controller for something about the plans of an instance. Returns whether it has answered.

        Raises PlanError if it refuses.
        """
        await self.instance(name)
        request = Request(id=self.client.world.ids.uid(), verb=verb, **fields)
        await self._patch(name, {"metadata": {"annotations": annotation_of(request)}})

        def is_answered(each: Instance | None) -> bool:
            execution = None if each is None or each.status is None else each.status.execution
            return execution is not None and execution.request is not None and execution.request.id == request.id

        try:
            found = await self.client.wait_for(Instance, name, is_answered, timeout=seconds)
        except WaitTimedOut:
            return False
        execution = None if found is None or found.status is None else found.status.execution
        answer = None if execution is None else execution.request
        if answer is not None and not answer.accepted:
            raise PlanError(f"{verb} of instance {self.namespace}/{name} was refused: {answer.message}")
        return True

    # Wait

    async def wait(self, name: str, seconds: float, before: Instance | None = None) -> None:
        """Wait until the plan that runs is complete. Raises PlanError if it fails, or on timeout.

        `before`: the instance before the change that triggers a plan. Defaults to None: the plan runs, or has run.
        """

        def is_done(each: Instance | None) -> bool:
            if each is None:
                raise PlanError(f"instance {self.namespace}/{name} was deleted")
            return outcome(each, before) is not None

        try:
            found = await self.client.wait_for(Instance, name, is_done, timeout=seconds)
        except WaitTimedOut:
            raise PlanError(f"timeout waiting for instance {self.namespace}/{name}") from None
        assert found is not None
        problem = outcome(found, before)
        if problem:
            raise PlanError(f"instance {self.namespace}/{name}: {problem}")


def outcome(instance: Instance, before: Instance | None = None) -> str | None:
    """Return None while a plan is due or runs, "" if the last one is complete, or what went wrong."""
    status = instance.status or InstanceStatus()
    execution = status.execution
    if execution is None or execution.observed_generation < (instance.metadata.generation or 0):
        return None
    if execution.refused:
        return execution.refused
    if before is not None and before.status is not None:
        uids = {name: each.uid for name, each in before.status.plan_status.items()}
        if all(uids.get(name, "") == each.uid for name, each in status.plan_status.items()):
            return None
    last = states.last_run(status.plan_status, execution.last_uid)
    if last is None or execution.plan or execution.pending:
        return None
    if last.status == states.COMPLETE:
        return ""
    steps = [step for phase in last.phases for step in phase.steps if step.status == last.status]
    message = last.message or next((each.message for each in steps if each.message), "")
    return f"plan {last.name} is {last.status}" + (f": {message}" if message else "")


def _check_required(package: Package, parameters: Mapping[str, str]) -> None:
    missing = [
        each.name
        for each in package.version.spec.parameters
        if each.is_required and each.default is None and each.name not in parameters
    ]
    if missing:
        raise PlanError(f"missing required parameters during installation: {','.join(missing)}")
