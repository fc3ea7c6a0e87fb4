"""DefaultTolerationSeconds: Pods tolerate not-ready and unreachable nodes for five minutes by default."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ostinato.server.admission.chain import Plugin, resources
from ostinato.server.admission.objects import is_of
from ostinato.server.resources.strategy import Json

if TYPE_CHECKING:
    from ostinato.server.request.context import Context


class DefaultTolerationSeconds(Plugin):
    covers = resources("pods")
    judges_status_by_content = True  # it ignores them

    def __init__(self, not_ready: int, unreachable: int) -> None:
        """`not_ready`, `unreachable`: tolerationSeconds of the taints."""
        self._seconds = {"node.kubernetes.io/not-ready": not_ready, "node.kubernetes.io/unreachable": unreachable}

    async def mutate(self, context: Context, operation: str, obj: Json | None, old: Json | None, options: Any) -> None:
        if operation not in ("CREATE", "UPDATE") or not is_of(context, "", "pods"):
            return
        assert obj is not None
        spec = obj["spec"]
        present = spec.get("tolerations", [])
        tolerated = {
            toleration.get("key", "") for toleration in present if toleration.get("effect", "NoExecute") == "NoExecute"
        }
        if "" in tolerated:
            return
        missing = [taint for taint in self._seconds if taint not in tolerated]
        if missing:
            spec["tolerations"] = [*present, *map(self._toleration, missing)]

    def _toleration(self, taint: str) -> Json:
        seconds = self._seconds[taint]
        return {"key": taint, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": seconds}
