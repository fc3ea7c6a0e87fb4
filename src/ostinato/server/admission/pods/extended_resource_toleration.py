"""ExtendedResourceToleration: adds tolerations for the extended resources that a Pod requests."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ostinato.server.admission.chain import Plugin, resources
from ostinato.server.admission.objects import is_of
from ostinato.server.resources.core.pods.spec.defaults import containers_of
from ostinato.server.resources.strategy import Json
from ostinato.server.resources.validation.quantities import is_extended

if TYPE_CHECKING:
    from ostinato.server.request.context import Context


class ExtendedResourceToleration(Plugin):
    covers = resources("pods")

    async def mutate(self, context: Context, operation: str, obj: Json | None, old: Json | None, options: Any) -> None:
        if operation not in ("CREATE", "UPDATE") or not is_of(context, "", "pods"):
            return
        assert obj is not None
        spec = obj["spec"]
        requested = {
            name
            for container in containers_of(spec, "containers", "initContainers")
            for name in container.get("resources", {}).get("requests", ())
            if is_extended(name)
        }
        for name in sorted(requested):
            _tolerate(spec, {"key": name, "operator": "Exists", "effect": "NoSchedule"})


def _tolerate(spec: Json, toleration: Json) -> None:
    """Add a toleration, replacing those for the same taint."""
    tolerations = spec.get("tolerations", [])
    same = [each for each in tolerations if _taint(each) == _taint(toleration)]
    if toleration in same:
        return
    if same:
        spec["tolerations"] = [toleration if each in same else each for each in tolerations]
    else:
        spec["tolerations"] = [*tolerations, toleration]


def _taint(toleration: Json) -> tuple[str, ...]:
    return tuple(toleration.get(field, "") for field in ("key", "effect", "operator", "value"))
