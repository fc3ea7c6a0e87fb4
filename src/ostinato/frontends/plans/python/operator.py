"""Plans in Python: an operator as a class, whose plans are generators.

    class Kafka(PlanOperator, group="example.dev"):
        class Params(Struct):
            brokers: Annotated[int, Ge(1), Triggers("scale")] = 3

        def deploy(self, p: Params):
            yield phase("zookeeper", apply(zookeeper(p)))
            yield phase("brokers", parallel(*(apply(broker(p, n)) for n in range(p.brokers))))

        def scale(self, p: Params):
            yield phase("brokers", parallel(*(apply(broker(p, n)) for n in range(p.brokers))))

    kafka = Kafka().controller()          # `ostinato run` finds it; or Manager().add(kafka)

- `Params` is the spec of the kind, with its schema. `Triggers("scale")` names the plan that a change runs; without it
  `update`, else `deploy`. `Immutable()` refuses changes.
- A plan is run from its beginning in each pass, up to the first phase that is not complete. `result = yield phase(...)`
  is a map of the results of its `call` steps, which are recorded: the generator must depend on nothing but the
  parameters, the arguments and these results.
- `self.name`, `self.namespace`, `self.arguments` and `self.client` are those of the run.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Generator, Mapping
from typing import Annotated, Any, ClassVar, get_args, get_origin, get_type_hints

import msgspec

from ostinato.api.gvk import GroupVersionKind
from ostinato.api.markers import Immutable
from ostinato.api.object import KindInfo, plural_of
from ostinato.api.struct import Struct, wire_name
from ostinato.client.client import Client
from ostinato.controllers.options import ControllerOptions
from ostinato.crd.schema.schema import schema_of
from ostinato.frontends.plans.api import OperatorVersionSpec, Parameter, Plan, Reference
from ostinato.frontends.plans.controller import PlanController
from ostinato.frontends.plans.python.steps import PhaseOf
from ostinato.frontends.plans.python.subject import PythonKind

Results = dict[str, Any]
PlanGenerator = Generator[PhaseOf, Results, None]


class Triggers:
    """Marker of a parameter: a change runs this plan."""

    def __init__(self, plan: str) -> None:
        self.plan = plan


class PlanOperator:
    """Base class of operators whose plans are Python.

    Class keywords: `group`, required; `version`, defaults to "v1"; `kind`, defaults to the class name; `release`,
    the version of the operator, whose change upgrades objects; defaults to "0.1.0".
    """

    class Params(Struct):
        """The spec of the kind."""

    __info__: ClassVar[KindInfo]
    __release__: ClassVar[str] = "0.1.0"

    # Of one run:
    name: str = ""
    namespace: str = ""
    arguments: Mapping[str, str] = {}
    client: Client

    def __init_subclass__(
        cls, *, group: str = "", version: str = "v1", kind: str = "", release: str = "", **others: Any
    ) -> None:
        super().__init_subclass__(**others)
        if not group:
            if not hasattr(cls, "__info__"):
                raise TypeError(
                    f"class {cls.__name__}: needs a group; write class {cls.__name__}(PlanOperator, group=...)"
                )
            return
        name = kind or cls.__name__
        gvk = GroupVersionKind(group, version, name)
        cls.__info__ = KindInfo(gvk=gvk, plural=plural_of(name), singular=name.lower(), namespaced=True)
        cls.__release__ = release or cls.__release__
        if "deploy" not in plans_of(cls):
            raise TypeError(f"class {cls.__name__}: needs the plan deploy; write def deploy(self, p): yield phase(...)")

    def controller(
        self, *, name: str = "", repair_drift: bool = True, options: ControllerOptions | None = None
    ) -> PlanController:
        """Return what a manager runs. `name`: defaults to the kind in lower case."""
        info = self.__info__
        kind = PythonKind(type(self), info, version_of(type(self)), spec_schema(type(self)))
        return PlanController(kind, name=name or info.gvk.kind.lower(), repair_drift=repair_drift, options=options)


def plans_of(cls: type[PlanOperator]) -> dict[str, Callable[..., PlanGenerator]]:
    """Return the plans of a class: its generator functions."""
    found = {name: getattr(cls, name) for name in dir(cls) if not name.startswith("_")}
    return {name: each for name, each in found.items() if inspect.isgeneratorfunction(each)}


def version_of(cls: type[PlanOperator]) -> OperatorVersionSpec:
    """Return the operator version that a class stands for."""
    hints = get_type_hints(cls.Params, include_extras=True)
    parameters = [_parameter(field, hints[field.name]) for field in msgspec.structs.fields(cls.Params)]
    plans = {name: Plan(strategy="serial", phases=None) for name in plans_of(cls)}
    for each in parameters:
        if each.trigger and each.trigger not in plans:
            raise TypeError(f"class {cls.__name__}: Params.{each.name} triggers {each.trigger}, which is not a plan")
    return OperatorVersionSpec(
        operator=Reference(name=cls.__info__.gvk.kind.lower()),
        version=cls.__release__,
        parameters=parameters,
        plans=plans,
    )


def _parameter(field: msgspec.structs.FieldInfo, hint: Any) -> Parameter:
    markers = get_args(hint)[1:] if get_origin(hint) is Annotated else ()
    trigger = next((each.plan for each in markers if isinstance(each, Triggers)), "")
    is_immutable = any(isinstance(each, Immutable) or each is Immutable for each in markers)
    return Parameter(name=field.encode_name or wire_name(field.name), trigger=trigger, immutable=is_immutable)


def spec_schema(cls: type[PlanOperator]) -> dict[str, Any]:
    return dict(schema_of(cls.Params))
