"""The sandbox of a Pod, as the agent sees it: its addresses, and whether its containers can start in it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from ostinato.kinds.core_v1 import Pod
from ostinato.plane.node.runtimes import Runtime

AdmitPod = Callable[[Pod, str], Awaitable[None]]
"""`await admit(pod, address)` before its first container starts; `SandboxError` if it must not start."""


class PodSandbox:
    """`ip` stays after the sandbox was removed: the status of a terminated Pod keeps it."""

    __slots__ = ("_admit", "_runtime", "host_ip", "ip", "is_ready")

    def __init__(self, host_ip: str, runtime: Runtime, admit: AdmitPod | None = None) -> None:
        """`admit`: waits until the network policies apply to the Pod. Defaults to None: there are none."""
        self._admit = admit
        self._runtime = runtime
        self.host_ip = host_ip
        self.ip = ""
        self.is_ready = False

    @property
    def address(self) -> str:
        """The address of the Pod's ports: its own IP, or the node's before it has one."""
        return self.ip or self.host_ip

    async def ensure(self, pod: Pod, handler: str = "") -> None:
        """Create the sandbox if it is not ready; `SandboxError` if that fails. `handler`: of its RuntimeClass."""
        if not self.is_ready:
            if pod.spec.host_network and not handler:
                self.ip = self.host_ip
            else:
                address = await self._runtime.address(pod, handler)
                self.ip = self.host_ip if pod.spec.host_network else address
            if self._admit is not None and self.ip != self.host_ip:
                await self._admit(pod, self.ip)
            self.is_ready = True

    def mark_removed(self) -> None:
        self.is_ready = False
