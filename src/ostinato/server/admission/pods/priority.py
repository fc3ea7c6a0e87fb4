"""Priority: resolves a Pod's PriorityClass to its value and preemption policy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ostinato.server.admission.chain import Plugin, resources
from ostinato.server.admission.objects import forbidden, is_of
from ostinato.server.resources.lister import Lister
from ostinato.server.resources.strategy import Json

if TYPE_CHECKING:
    from ostinato.server.request.context import Context

_SYSTEM_CLASSES = ("system-node-critical", "system-cluster-critical")
_COMPUTED = "priority admission controller computed {} from the given PriorityClass name"


class Priority(Plugin):
    covers = resources("pods", "priorityclasses.scheduling.k8s.io")
    judges_status_by_content = True  # it ignores them

    def __init__(self, classes: Lister) -> None:
        self._classes = classes

    async def mutate(self, context: Context, operation: str, obj: Json | None, old: Json | None, options: Any) -> None:
        if not is_of(context, "", "pods") or operation not in ("CREATE", "UPDATE"):
            return
        assert obj is not None
        spec = obj["spec"]
        if operation == "UPDATE":
            assert old is not None
            for field in ("priority", "preemptionPolicy"):
                if field not in spec and field in old["spec"]:
                    spec[field] = old["spec"][field]
            return
        self._set_priority(context, obj, spec)

    def _set_priority(self, context: Context, pod: Json, spec: Json) -> None:
        name = spec.get("priorityClassName", "")
        found = self._classes.get(name) if name else self._default()
        if found is None and name:
            raise forbidden(context, pod, f"no PriorityClass with name {name} was found")
        value = 0 if found is None else found.get("value", 0)
        policy = "PreemptLowerPriority" if found is None else found.get("preemptionPolicy")
        if found is not None:
            spec["priorityClassName"] = found["metadata"]["name"]
        if spec.get("priority", value) != value:
            given = f"the integer value of priority ({spec['priority']}) must not be provided in pod spec"
            raise forbidden(context, pod, f"{given}; {_COMPUTED.format(value)}")
        spec["priority"] = value
        if policy is not None:
            if spec.get("preemptionPolicy", policy) != policy:
                given = f"the string value of PreemptionPolicy ({spec['preemptionPolicy']})"
                why = f"{given} must not be provided in pod spec; {_COMPUTED.format(policy)}"
                raise forbidden(context, pod, why)
            spec["preemptionPolicy"] = policy

    def _default(self) -> Json | None:
        """The default class; the lowest if there are several."""
        defaults = [each for each in self._classes.all() if each.get("globalDefault")]
        return min(defaults, key=lambda each: int(each.get("value", 0)), default=None)

    async def validate(
        self, context: Context, operation: str, obj: Json | None, old: Json | None, options: Any
    ) -> None:
        if not is_of(context, "scheduling.k8s.io", "priorityclasses"):
            return
        if operation == "DELETE" and context.route.name in _SYSTEM_CLASSES:
            raise forbidden(context, old, "this is a system priority class and cannot be deleted")
        if operation not in ("CREATE", "UPDATE"):
            return
        assert obj is not None
        if not obj.get("globalDefault"):
            return
        default = self._default()
        if default is None:
            return
        name = default["metadata"]["name"]
        if operation == "CREATE" or name != obj["metadata"].get("name"):
            why = f"PriorityClass {name} is already marked as default. Only one default can exist"
            raise forbidden(context, obj, why)
