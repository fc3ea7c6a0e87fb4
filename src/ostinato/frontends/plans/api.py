"""Operator, OperatorVersion and Instance: the kinds of KUDO's API, kudo.dev/v1beta1.

- An OperatorVersion holds a package: parameters, templates, tasks and plans. An Instance runs it with values.
- `Instance.status.planStatus` has KUDO's form. `Instance.status.execution` is an addition: the run in progress, and the
  parameters and version that the last run was decided from. `spec.planExecution` requests a plan, and is emptied when
  the plan ends; the state of a run is never kept in it.
"""

from __future__ import annotations

from typing import Annotated, Any, Final

import msgspec

from ostinato.api.markers import Column, Doc, ListMap, Nullable, PreserveUnknown, marked
from ostinato.api.meta import Condition
from ostinato.api.object import CustomResource
from ostinato.api.struct import Struct
from ostinato.api.time import Time

GROUP: Final = "kudo.dev"
VERSION: Final = "v1beta1"
API_VERSION: Final = f"{GROUP}/{VERSION}"

DEPLOY: Final = "deploy"
UPDATE: Final = "update"
UPGRADE: Final = "upgrade"
CLEANUP: Final = "cleanup"
FINALIZER: Final = "kudo.dev.instance.cleanup"

OPERATOR_LABEL: Final = "kudo.dev/operator"
INSTANCE_LABEL: Final = "kudo.dev/instance"
HERITAGE_LABEL: Final = "heritage"

REQUEST: Final = "plans.ostinato.dev/request"  # annotation: a verb for the controller; see `requests`
REPAIR: Final = "plans.ostinato.dev/repair-drift"  # annotation: "true" or "false"


class Reference(Struct):
    api_version: str | None = None
    kind: str | None = None
    name: str = ""
    namespace: str = ""
    uid: str | None = None
    field_path: str | None = None
    resource_version: str | None = None


class Maintainer(Struct):
    name: str = ""
    email: str = ""


class OperatorSpec(Struct):
    description: str = ""
    kudo_version: str = ""
    kubernetes_version: str = ""
    maintainers: list[Maintainer] = []
    url: str = ""
    namespace_manifest: str = ""


class Operator(CustomResource, group=GROUP, version=VERSION):
    """The name of an operator, and who maintains it."""

    spec: OperatorSpec = msgspec.field(default_factory=OperatorSpec)


class Parameter(Struct):
    name: str = ""
    display_name: str = ""
    description: str = ""
    required: bool | None = None
    default: str | None = None
    trigger: str = ""
    type: str = msgspec.field(name="value-type", default="")
    immutable: bool | None = None
    enum: list[str] | None = None

    @property
    def is_required(self) -> bool:
        return bool(self.required)

    @property
    def is_immutable(self) -> bool:
        return bool(self.immutable)


class Pipe(Struct):
    file: str = ""
    env_file: str = ""
    kind: str = ""
    key: str = ""


class TaskSpec(Struct):
    """The fields of all kinds of tasks."""

    resources: Annotated[list[str] | None, Nullable()] = None  # Apply, Delete, Toggle
    parameter: str = ""  # Toggle
    pod: str = ""  # Pipe
    pipe: Annotated[list[Pipe] | None, Nullable()] = None  # Pipe
    package: str = ""  # KudoOperator
    instance_name: str = ""
    app_version: str = ""
    operator_version: str = ""
    parameter_file: str = ""
    want_err: bool = False  # Dummy
    fatal: bool = False
    done: bool = False


class Task(Struct):
    name: str = ""
    kind: str = ""
    spec: TaskSpec = msgspec.field(default_factory=TaskSpec)


class Step(Struct):
    name: str = ""
    tasks: list[str] = []


class Phase(Struct):
    name: str = ""
    strategy: str = ""
    steps: list[Step] = []


class Plan(Struct):
    strategy: str = ""
    phases: Annotated[list[Phase] | None, Nullable()] = None


class OperatorVersionSpec(Struct):
    operator: Reference = msgspec.field(default_factory=Reference)
    version: str = ""
    app_version: str = ""
    templates: dict[str, str] = {}
    tasks: list[Task] = []
    parameters: list[Parameter] = []
    plans: Annotated[dict[str, Plan] | None, Nullable()] = None
    connection_string: str = ""
    upgradable_from: list[Reference] = []


class OperatorVersion(CustomResource, group=GROUP, version=VERSION):
    """A version of an operator: parameters, templates, tasks and plans."""

    spec: OperatorVersionSpec = msgspec.field(default_factory=OperatorVersionSpec)


class PlanExecution(Struct):
    plan_name: str = ""
    uid: str = ""
    status: str = ""
    arguments: Annotated[dict[str, str], Doc("Values for this run only, `.Args` in templates.")] = {}


class InstanceSpec(Struct):
    operator_version: Reference = msgspec.field(default_factory=Reference)
    parameters: dict[str, str] = {}
    plan_execution: PlanExecution = msgspec.field(default_factory=PlanExecution)


class StepStatus(Struct):
    name: str = ""
    status: str = ""
    message: str = ""


class PhaseStatus(Struct):
    name: str = ""
    status: str = ""
    message: str = ""
    steps: list[StepStatus] = []


class PlanStatus(Struct):
    name: str = ""
    status: str = ""
    message: str = ""
    last_updated_timestamp: Annotated[Time | None, Nullable()] = None
    uid: str = ""
    phases: list[PhaseStatus] = []


class HandledRequest(Struct):
    """The last request that the controller has handled, and the answer."""

    id: str = ""
    verb: str = ""
    accepted: bool = False
    message: str = ""


class CompletedPlan(Struct):
    """A plan that has completed, and what its objects were rendered with."""

    plan: str = ""
    uid: str = ""
    parameters: dict[str, str] = {}
    arguments: dict[str, str] = {}
    results: Annotated[dict[str, Any], PreserveUnknown()] = {}


class Execution(Struct):
    """What the controller has decided: the run in progress, and what the last run was decided from."""

    plan: Annotated[str, Doc("The plan that runs now.")] = ""
    uid: str = ""
    arguments: dict[str, str] = {}
    reason: Annotated[str, Doc("Why the plan runs.")] = ""
    operator_version: str = ""
    namespace: Annotated[str, Doc("Namespace of the operator version.")] = ""
    parameters: Annotated[dict[str, str] | None, Doc("The parameters of the last run.")] = None
    last_uid: Annotated[str, Doc("uid of the last run.")] = ""
    observed_generation: Annotated[int, Doc("The generation of the object that was last looked at.")] = 0
    completed: Annotated[list[CompletedPlan], Doc("Plans whose objects are there, newest last; for drift repair.")] = []
    results: Annotated[dict[str, Any], PreserveUnknown(), Doc("Results of the steps of plans in Python.")] = {}
    kinds: Annotated[list[str], Doc("Kinds of the objects that the plans have applied.")] = []
    refused: Annotated[str, Doc("Why the last change of the object has no effect; empty if it has.")] = ""
    pending: Annotated[str, Doc("The plan that runs next.")] = ""
    request: HandledRequest | None = None
    execution: Annotated[str, Doc("uid of the last spec.planExecution that was handled.")] = ""


class InstanceStatus(Struct):
    plan_status: dict[str, PlanStatus] = {}
    conditions: Annotated[list[Condition], ListMap("type")] = []
    execution: Execution | None = None


@marked(
    Column("Operator-Version", path=".spec.operatorVersion.name"),
    Column("Plan", path=".status.execution.plan"),
    Column("Ready", path='.status.conditions[?(@.type=="Ready")].status'),
    Column("Age", path=".metadata.creationTimestamp", type="date"),
)
class Instance(CustomResource, group=GROUP, version=VERSION):
    """An operator version with values for its parameters."""

    spec: InstanceSpec = msgspec.field(default_factory=InstanceSpec)
    status: InstanceStatus | None = None


KINDS: Final = (Operator, OperatorVersion, Instance)


def operator_version_name(operator: str, app_version: str, version: str) -> str:
    """Return the name of an OperatorVersion: `kafka-2.4.0-1.2.0`."""
    return "-".join(part for part in (operator, app_version, version) if part)
