"""PodResizeValidator and NodeDeclaredFeatureValidator: validate in-place resize against the node.

- A resize needs a Linux node whose allocatable covers the new requests.
- A resize of Pod-level resources, or of an init container that is not a sidecar, needs a node that declares the
  feature in `status.declaredFeatures`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from ostinato.api.errors import Forbidden
from ostinato.api.quantity import Quantity
from ostinato.api.status import StatusCause
from ostinato.api.text.go_format import quote
from ostinato.server.admission.chain import Plugin, resources
from ostinato.server.admission.objects import forbidden
from ostinato.server.resources.core.pods.spec.resources import pod_total
from ostinato.server.resources.lister import Lister
from ostinato.server.resources.strategy import Json

if TYPE_CHECKING:
    from ostinato.server.request.context import Context

_OS = "kubernetes.io/os"


def _node_of(context: Context, nodes: Lister, obj: Json, old: Json | None) -> Json | None:
    """The node of a Pod whose spec changes; None if nothing is to be validated, Forbidden if the node is missing."""
    assert old is not None
    name = obj["spec"].get("nodeName")
    if not name or obj["metadata"].get("generation") == old["metadata"].get("generation"):
        return None
    node = nodes.get(name)
    if node is None:
        raise forbidden(context, obj, f"node {quote(name)} not found")
    return node


class PodResizeValidator(Plugin):
    covers = resources("pods")
    judges_status_by_content = True  # it ignores them

    def __init__(self, nodes: Lister) -> None:
        self._nodes = nodes

    async def validate(
        self, context: Context, operation: str, obj: Json | None, old: Json | None, options: Any
    ) -> None:
        if operation != "UPDATE" or context.route.subresource != "resize":
            return
        assert obj is not None
        node = _node_of(context, self._nodes, obj, old)
        if node is None:
            return
        system = node["metadata"].get("labels", {}).get(_OS, "linux")
        if system != "linux":
            name = quote(node["metadata"]["name"])
            why = f"pod resize is only supported on linux nodes, node {name} is {quote(system)}"
            raise _refused(context, obj, why, "UnsupportedPlatform")
        short = _short(obj, node)
        if short:
            why = f"node didn't have enough allocatable resources: {'; '.join(short)}"
            raise _refused(context, obj, why, "NodeCapacity")


def _short(pod: Json, node: Json) -> list[str]:
    """Descriptions of the requests that exceed the node's allocatable."""
    requests = pod_total(pod["spec"], "requests")
    allocatable = node.get("status", {}).get("allocatable", {})
    found = []
    for name, scale in (("cpu", -3), ("memory", 0)):
        wanted, most = requests.get(name, Quantity()), Quantity.parse(allocatable.get(name, "0"))
        if wanted > most:
            amounts = [amount.scaled_value(scale) for amount in (wanted, most)]
            found.append(f"{name}, requested: {amounts[0]}, allocatable: {amounts[1]}")
    return found


def _refused(context: Context, pod: Json, why: str, reason: str) -> Forbidden:
    error = forbidden(context, pod, why)
    details = msgspec.structs.replace(error.details, causes=(StatusCause(reason, "", ""),))
    return Forbidden(msgspec.structs.replace(error.status, details=details))


class NodeDeclaredFeatureValidator(Plugin):
    covers = resources("pods")
    judges_status_by_content = True  # it ignores them

    def __init__(self, nodes: Lister) -> None:
        self._nodes = nodes

    async def validate(
        self, context: Context, operation: str, obj: Json | None, old: Json | None, options: Any
    ) -> None:
        if operation != "UPDATE" or context.route.subresource not in ("", "resize"):
            return
        assert obj is not None
        assert old is not None
        needed = _needed(obj["spec"], old["spec"])
        node = _node_of(context, self._nodes, obj, old) if needed else None
        if node is None:
            return
        declared = node.get("status", {}).get("declaredFeatures") or ()
        missing = [feature for feature in needed if feature not in declared]
        if missing:
            name = quote(node["metadata"]["name"])
            why = f"pod update requires features {', '.join(missing)} which are not available on node {name}"
            raise forbidden(context, obj, why)


def _needed(new: Json, old: Json) -> list[str]:
    """The declared features that an update needs, sorted."""
    needed = []
    if new.get("resources") != old.get("resources"):
        needed.append("InPlacePodLevelResourcesVerticalScaling")
    pairs = zip(old.get("initContainers") or (), new.get("initContainers") or (), strict=False)
    if any(
        before.get("restartPolicy") != "Always" and before.get("resources") != after.get("resources")
        for before, after in pairs
    ):
        needed.append("InPlacePodVerticalScalingInitContainers")
    return needed
