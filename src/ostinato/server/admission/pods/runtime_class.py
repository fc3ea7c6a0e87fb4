"""RuntimeClass: sets overhead and scheduling constraints from a Pod's RuntimeClass."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ostinato.api.errors import Unknown
from ostinato.api.text.go_format import quote
from ostinato.server.admission.chain import Plugin, resources
from ostinato.server.admission.objects import forbidden, is_of
from ostinato.server.admission.pods.tolerations import merged
from ostinato.server.resources.lister import Lister
from ostinato.server.resources.strategy import Json

if TYPE_CHECKING:
    from ostinato.server.request.context import Context

_DIFFERENT = "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead"
_WITHOUT = "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead"


class RuntimeClass(Plugin):
    covers = resources("pods")
    judges_status_by_content = True  # it ignores them

    def __init__(self, classes: Lister) -> None:
        self._classes = classes

    async def mutate(self, context: Context, operation: str, obj: Json | None, old: Json | None, options: Any) -> None:
        if operation != "CREATE" or not is_of(context, "", "pods"):
            return
        assert obj is not None
        runtime = self._class_of(context, obj)
        if runtime is None:
            return
        spec, overhead = obj["spec"], runtime.get("overhead", {}).get("podFixed", {})
        if overhead:
            if spec.get("overhead", overhead) != overhead:
                raise forbidden(context, obj, _DIFFERENT)
            spec["overhead"] = dict(overhead)
        scheduling = runtime.get("scheduling")
        if scheduling is not None:
            _schedule(context, obj, scheduling)

    def _class_of(self, context: Context, pod: Json) -> Json | None:
        name = pod["spec"].get("runtimeClassName")
        if name is None:
            return None
        if not name:
            raise Unknown.of("resource name may not be empty")
        found = self._classes.get(name)
        if found is None:
            raise forbidden(context, pod, f"pod rejected: RuntimeClass {quote(name)} not found")
        return found

    async def validate(
        self, context: Context, operation: str, obj: Json | None, old: Json | None, options: Any
    ) -> None:
        if operation != "CREATE" or not is_of(context, "", "pods"):
            return
        assert obj is not None
        overhead = obj["spec"].get("overhead")
        if overhead is None and "runtimeClassName" not in obj["spec"]:
            return
        runtime = self._class_of(context, obj)
        expected = None if runtime is None else runtime.get("overhead", {}).get("podFixed")
        if expected is None and overhead is not None:
            raise forbidden(context, obj, _WITHOUT)
        if expected is not None and overhead != expected:
            raise forbidden(context, obj, _DIFFERENT)


def _schedule(context: Context, pod: Json, scheduling: Json) -> None:
    spec = pod["spec"]
    selector = dict(spec.get("nodeSelector", {}))
    for key, value in scheduling.get("nodeSelector", {}).items():
        if selector.get(key, value) != value:
            why = (
                f"runtimeClass.scheduling.nodeSelector[{key}] = {value}; pod.spec.nodeSelector[{key}] = {selector[key]}"
            )
            raise forbidden(context, pod, f"conflict: {why}")
        selector[key] = value
    if selector:
        spec["nodeSelector"] = selector
    tolerations = merged([*spec.get("tolerations", ()), *scheduling.get("tolerations", ())])
    if tolerations:
        spec["tolerations"] = tolerations
