"""Health of a CRI runtime: its conditions RuntimeReady and NetworkReady."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from ostinato.grpc import RpcError
from ostinato.plane.node.registration.runtime_health import RuntimeDown
from ostinato.plane.node.runtimes.containerd.cri import Cri

_TIMEOUT: Final = 10.0  # seconds


async def health_of(cri: Cri) -> str:
    """Return why Pods cannot be run; empty if they can. `RuntimeDown` if the runtime does not answer."""
    try:
        answer = await cri.call("Status", {}, within=_TIMEOUT)
    except RpcError as error:
        raise RuntimeDown(str(error)) from None
    conditions = {each.get("type", ""): each for each in answer.get("status", {}).get("conditions", [])}
    runtime, network = conditions.get("RuntimeReady", {}), conditions.get("NetworkReady", {})
    if not runtime.get("status"):
        return f"container runtime not ready: {_description(runtime)}"
    return "" if network.get("status") else f"container runtime network not ready: {_description(network)}"


def _description(condition: Mapping[str, Any]) -> str:
    kind, reason, message = (condition.get(each, "") for each in ("type", "reason", "message"))
    return f"{kind}=false reason:{reason} message:{message}"
