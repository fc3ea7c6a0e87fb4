"""Pod sandboxes of the CRI: one ready sandbox per Pod, recreated when it has died.

A label names the node that owns a sandbox: other nodes and kubelets may use the same containerd.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from ostinato.grpc import Code, RpcError, go_error
from ostinato.kinds.core_v1 import Pod
from ostinato.plane.network.dns.settings import ClusterDns, machine_resolv_conf
from ostinato.plane.node.runtimes import SandboxError
from ostinato.plane.node.runtimes.containerd.configs import UID, SandboxNames, sandbox_config
from ostinato.plane.node.runtimes.containerd.cri import Cri

_OWNER: Final = "dev.ostinato.node"
_READY: Final = 0


class Sandbox(msgspec.Struct, frozen=True):
    id: str
    attempt: int
    addresses: tuple[str, ...]


class SandboxManager:
    def __init__(self, cri: Cri, owner: str, dns: ClusterDns | None = None) -> None:
        """`owner`: unique id of the node on this machine. `dns`: the cluster DNS; None if there is none."""
        self._cri = cri
        self._dns = dns
        self._owner = owner

    async def of(self, pod: Pod, handler: str | None = None) -> Sandbox:
        """Return the ready sandbox, created if needed; `SandboxError` if that fails.

        `handler`: the runtime handler, "" for containerd's default. Defaults to that of the Pod's last sandbox.
        """
        if pod.spec.host_users is False:
            raise SandboxError("Failed to create pod sandbox: hostUsers: false is not supported by this runtime")
        try:
            every = await self._all(pod.metadata.uid)
            ready = next((each for each in every if each.get("state", _READY) == _READY), None)
            if ready is not None:
                return await self._known(ready["id"], _attempt(ready))
            for each in every:
                await self._remove(each["id"])
            attempt = max((_attempt(each) + 1 for each in every), default=0)
            config = sandbox_config(pod, attempt, self.names)
            config["labels"][_OWNER] = self._owner
            if handler is None:
                handler = max(every, key=_attempt).get("runtime_handler", "") if every else ""
            made = await self._cri.call("RunPodSandbox", {"config": config, "runtime_handler": handler})
            return await self._known(made["pod_sandbox_id"], attempt)
        except RpcError as error:
            raise SandboxError(f"Failed to create pod sandbox: {go_error(error)}") from None

    @property
    def names(self) -> SandboxNames:
        return SandboxNames(machine_resolv_conf(), self._dns)

    async def find(self, pod: Pod) -> Sandbox | None:
        """Return the ready sandbox; None if there is none."""
        for each in await self._all(pod.metadata.uid):
            if each.get("state", _READY) == _READY:
                return await self._known(each["id"], _attempt(each))
        return None

    async def remove(self, uid: str) -> None:
        """Remove all sandboxes of a Pod with their containers."""
        for each in await self._all(uid):
            await self._remove(each["id"])

    async def uids(self) -> list[str]:
        """Return the uids of all Pods of this node with a sandbox."""
        return sorted({each["labels"][UID] for each in await self._list({_OWNER: self._owner})})

    async def _all(self, uid: str) -> list[dict[str, Any]]:
        return await self._list({UID: uid, _OWNER: self._owner})

    async def _list(self, labels: dict[str, str]) -> list[dict[str, Any]]:
        answer = await self._cri.call("ListPodSandbox", {"filter": {"label_selector": labels}})
        listed: list[dict[str, Any]] = answer.get("items", [])
        return listed

    async def _known(self, key: str, attempt: int) -> Sandbox:
        answer = await self._cri.call("PodSandboxStatus", {"pod_sandbox_id": key})
        network = answer.get("status", {}).get("network") or {}
        found = [network.get("ip", ""), *(each.get("ip", "") for each in network.get("additional_ips", ()))]
        return Sandbox(key, attempt, tuple(filter(None, found)))

    async def _remove(self, key: str) -> None:
        for method in ("StopPodSandbox", "RemovePodSandbox"):
            try:
                await self._cri.call(method, {"pod_sandbox_id": key})
            except RpcError as error:
                if error.code != Code.NOT_FOUND:
                    raise


def _attempt(sandbox: dict[str, Any]) -> int:
    attempt: int = (sandbox.get("metadata") or {}).get("attempt", 0)
    return attempt
