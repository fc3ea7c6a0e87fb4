"""PodTopologyLabels: copies the zone and region labels of the node to the Pod, at binding or creation with nodeName."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ostinato.server.admission.chain import Plugin, resources
from ostinato.server.resources.lister import Lister
from ostinato.server.resources.strategy import Json

if TYPE_CHECKING:
    from ostinato.server.request.context import Context

_LABELS = ("topology.kubernetes.io/zone", "topology.kubernetes.io/region")


class PodTopologyLabels(Plugin):
    covers = resources("pods")
    mutates = frozenset({"CREATE"})

    def __init__(self, nodes: Lister) -> None:
        self._nodes = nodes

    async def mutate(self, context: Context, operation: str, obj: Json | None, old: Json | None, options: Any) -> None:
        assert obj is not None
        match context.route.subresource:
            case "":
                node = obj["spec"].get("nodeName", "")
            case "binding":
                target = obj.get("target") or {}
                node = target.get("name", "") if target.get("kind") == "Node" else ""
            case _:
                return
        entry = self._nodes.collection.newest(node) if node else None
        if entry is None:
            return
        copied = {label: entry.labels[label] for label in _LABELS if label in entry.labels}
        if copied:
            obj["metadata"]["labels"] = {**obj["metadata"].get("labels", {}), **copied}
