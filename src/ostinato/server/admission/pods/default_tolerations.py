"""Lost nodes: a Pod stays on a node that has gone for five minutes, unless it says otherwise."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ostinato.server.admission.chain import Plugin, resources
from ostinato.server.admission.objects import is_of
from ostinato.server.resources.strategy import Json

if TYPE_CHECKING:
    from ostinato.server.request.context import Context


class DefaultTolerationSeconds(Plugin):
    about = resources("pods")

    def __init__(self, not_ready: int, unreachable: int) -> None:
        """Seconds for which a Pod stays on a node that is not ready, and on one that is unreachable."""
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
