"""Sandboxes: what the containers of a Pod share. Each Pod has one that is ready, made anew when it died.

A label says which node made them: others may use the same containerd, and what is theirs is left alone.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import msgspec

from ostinato.kinds.core_v1 import Pod
from ostinato.plane.node.runtimes import SandboxError
from ostinato.plane.node.runtimes.containerd.configs import UID, sandbox_config
from ostinato.plane.node.runtimes.containerd.cri import Cri
from ostinato.plane.node.runtimes.containerd.grpc import NOT_FOUND, described
from ostinato.plane.node.runtimes.containerd.http2 import RpcError

_OWNER: Final = "dev.ostinato.node"
_READY: Final = 0
_RESOLV_CONF: Final = Path("/etc/resolv.conf")


class Sandbox(msgspec.Struct, frozen=True):
    id: str
    attempt: int
    address: str


class Sandboxes:
    def __init__(self, cri: Cri, owner: str) -> None:
        """`owner`: of the node; no other on this machine has the same."""
        self._cri = cri
        self._owner = owner

    async def of(self, pod: Pod) -> Sandbox:
        """The sandbox that is ready, new if there is none; a `SandboxError` if that cannot be."""
        if pod.spec.host_users is False:
            raise SandboxError("Failed to create pod sandbox: this node has no user namespaces (hostUsers: false)")
        try:
            every = await self._all(pod.metadata.uid)
            ready = next((each for each in every if each.get("state", _READY) == _READY), None)
            if ready is not None:
                return await self._known(ready["id"], _attempt(ready))
            for each in every:
                await self._remove(each["id"])
            attempt = max((_attempt(each) + 1 for each in every), default=0)
            config = sandbox_config(pod, attempt, resolv_conf())
            config["labels"][_OWNER] = self._owner
            handler = pod.spec.runtime_class_name or ""  # classes are named as what handles them
            made = await self._cri.call("RunPodSandbox", {"config": config, "runtime_handler": handler})
            return await self._known(made["pod_sandbox_id"], attempt)
        except RpcError as error:
            raise SandboxError(f"Failed to create pod sandbox: {described(error)}") from None

    async def find(self, pod: Pod) -> Sandbox | None:
        """The sandbox that is ready, if there is one."""
        for each in await self._all(pod.metadata.uid):
            if each.get("state", _READY) == _READY:
                return await self._known(each["id"], _attempt(each))
        return None

    async def remove(self, uid: str) -> None:
        """All of a Pod, with all that runs in them."""
        for each in await self._all(uid):
            await self._remove(each["id"])

    async def uids(self) -> list[str]:
        """Of all Pods of this node that have one."""
        return sorted({each["labels"][UID] for each in await self._listed({_OWNER: self._owner})})

    async def _all(self, uid: str) -> list[dict[str, Any]]:
        return await self._listed({UID: uid, _OWNER: self._owner})

    async def _listed(self, labels: dict[str, str]) -> list[dict[str, Any]]:
        answer = await self._cri.call("ListPodSandbox", {"filter": {"label_selector": labels}})
        listed: list[dict[str, Any]] = answer.get("items", [])
        return listed

    async def _known(self, key: str, attempt: int) -> Sandbox:
        answer = await self._cri.call("PodSandboxStatus", {"pod_sandbox_id": key})
        network = answer.get("status", {}).get("network") or {}
        return Sandbox(key, attempt, network.get("ip", ""))

    async def _remove(self, key: str) -> None:
        for method in ("StopPodSandbox", "RemovePodSandbox"):
            try:
                await self._cri.call(method, {"pod_sandbox_id": key})
            except RpcError as error:
                if error.code != NOT_FOUND:
                    raise


def resolv_conf() -> str:
    """How this machine finds names."""
    try:
        return _RESOLV_CONF.read_text(errors="replace")
    except OSError:
        return ""


def _attempt(sandbox: dict[str, Any]) -> int:
    attempt: int = (sandbox.get("metadata") or {}).get("attempt", 0)
    return attempt
