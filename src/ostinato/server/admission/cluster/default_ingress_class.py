"""DefaultIngressClass: sets the default class of Ingresses without one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ostinato.server.admission.chain import Plugin, resources
from ostinato.server.admission.objects import is_of
from ostinato.server.resources.lister import Lister
from ostinato.server.resources.strategy import Json

if TYPE_CHECKING:
    from ostinato.server.request.context import Context

_OLD_CLASS = "kubernetes.io/ingress.class"
_DEFAULT = "ingressclass.kubernetes.io/is-default-class"


class DefaultIngressClass(Plugin):
    covers = resources("ingresses.networking.k8s.io")

    def __init__(self, classes: Lister) -> None:
        self._classes = classes

    async def mutate(self, context: Context, operation: str, obj: Json | None, old: Json | None, options: Any) -> None:
        if operation != "CREATE" or not is_of(context, "networking.k8s.io", "ingresses"):
            return
        assert obj is not None
        if "ingressClassName" in obj.get("spec", {}) or _OLD_CLASS in obj["metadata"].get("annotations", {}):
            return
        classes = [each["metadata"] for each in self._classes.all()]
        defaults = [metadata for metadata in classes if metadata.get("annotations", {}).get(_DEFAULT) == "true"]
        if defaults:  # the newest; equally old ones by name
            newest = max(metadata["creationTimestamp"] for metadata in defaults)
            names = [metadata["name"] for metadata in defaults if metadata["creationTimestamp"] == newest]
            obj.setdefault("spec", {})["ingressClassName"] = min(names)
