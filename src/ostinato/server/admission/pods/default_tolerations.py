"""Lost nodes: a Pod stays on a node that has gone for five minutes, unless it says otherwise."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ostinato.server.admission.chain import Plugin, resources
from ostinato.server.admission.objects import is_of
from ostinato.server.resources.strategy import Json

if TYPE_CHECKING:
    from ostinato.server.verbs.context import Context

_SECONDS = 300
_TAINTS = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")


class DefaultTolerations(Plugin):
    about = resources("pods")

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
        missing = [taint for taint in _TAINTS if taint not in tolerated]
        if missing:
            spec["tolerations"] = [
                *present,
                *(
                    {"key": taint, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": _SECONDS}
                    for taint in missing
                ),
            ]
