"""TaintNodesByCondition: new Nodes get the not-ready taint."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ostinato.server.admission.chain import Plugin, resources
from ostinato.server.admission.objects import is_of
from ostinato.server.resources.strategy import Json

if TYPE_CHECKING:
    from ostinato.server.request.context import Context

_TAINT = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}


class TaintNodesByCondition(Plugin):
    covers = resources("nodes")

    async def mutate(self, context: Context, operation: str, obj: Json | None, old: Json | None, options: Any) -> None:
        if operation != "CREATE" or not is_of(context, "", "nodes"):
            return
        assert obj is not None
        taints = obj["spec"].get("taints", [])
        if not any(all(taint.get(key) == value for key, value in _TAINT.items()) for taint in taints):
            obj["spec"]["taints"] = [*taints, dict(_TAINT)]
