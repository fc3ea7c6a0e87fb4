"""The sandbox of a Pod, as the agent sees it: its addresses, and whether its containers can start in it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from ostinato.kinds.core_v1 import Pod
from ostinato.plane.node.runtimes import Runtime

AdmitPod = Callable[[Pod, Sequence[str]], Awaitable[None]]
"""`await admit(pod, addresses)` before its first container starts; `SandboxError` if it must not start."""


class PodSandbox:
    """`ips`, one of each IP family, stay after the sandbox was removed: the status of a terminated Pod keeps them."""

    __slots__ = ("_admit", "_runtime", "host_ips", "ips", "is_ready")

    def __init__(self, host_ips: Sequence[str], runtime: Runtime, admit: AdmitPod | None = None) -> None:
        """`admit`: waits until the network policies apply to the Pod. Defaults to None: there are none."""
        self._admit = admit
        self._runtime = runtime
        self.host_ips = host_ips
        self.ips: Sequence[str] = ()
        self.is_ready = False

    @property
    def address(self) -> str:
        """The address of the Pod's ports: its first own IP, or the node's before it has one."""
        return self.ips[0] if self.ips else self.host_ips[0]

    async def ensure(self, pod: Pod, handler: str = "") -> None:
        """Create the sandbox if it is not ready; `SandboxError` if that fails. `handler`: of its RuntimeClass."""
        if not self.is_ready:
            if pod.spec.host_network and not handler:
                self.ips = self.host_ips
            else:
                addresses = await self._runtime.addresses(pod, handler)
                self.ips = self.host_ips if pod.spec.host_network else addresses
            if self._admit is not None and self.ips[:1] != self.host_ips[:1]:
                await self._admit(pod, self.ips)
            self.is_ready = True

    def mark_removed(self) -> None:
        self.is_ready = False
