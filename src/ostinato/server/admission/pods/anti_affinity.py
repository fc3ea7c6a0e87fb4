"""LimitPodHardAntiAffinityTopology: required anti-affinity may only use the topology key kubernetes.io/hostname."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ostinato.api.errors import Forbidden
from ostinato.server.admission.chain import Plugin, resources
from ostinato.server.admission.objects import is_of
from ostinato.server.resources.strategy import Json

if TYPE_CHECKING:
    from ostinato.server.request.context import Context

_HOSTNAME = "kubernetes.io/hostname"


class LimitPodHardAntiAffinityTopology(Plugin):
    covers = resources("pods")

    async def validate(
        self, context: Context, operation: str, obj: Json | None, old: Json | None, options: Any
    ) -> None:
        if operation not in ("CREATE", "UPDATE") or not is_of(context, "", "pods"):
            return
        assert obj is not None
        terms = (obj["spec"].get("affinity") or {}).get("podAntiAffinity") or {}
        for term in terms.get("requiredDuringSchedulingIgnoredDuringExecution") or ():
            key = term.get("topologyKey", "")
            if key != _HOSTNAME:
                why = f"affinity.PodAntiAffinity.RequiredDuringScheduling has TopologyKey {key}"
                name = obj["metadata"].get("name", "")
                raise Forbidden.of(context.resource.group_resource, name, f"{why} but only key {_HOSTNAME} is allowed")
