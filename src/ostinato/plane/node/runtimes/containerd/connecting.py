"""Connect to containerd."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from ostinato.grpc import Channel, Code, RpcError
from ostinato.plane.node.runtimes import UnusableRuntime
from ostinato.plane.node.runtimes.containerd.cri import Cri, RemoteCri
from ostinato.plane.node.runtimes.containerd.watch import ContainerWatch
from ostinato.world import Clock, World

DEFAULT_SOCKET: Final = Path("/run/containerd/containerd.sock")
_TIMEOUT: Final = 10.0


class Containerd:
    """A connection to containerd, shared by all nodes of a process."""

    def __init__(self, channel: Channel, clock: Clock) -> None:
        self.cri: Cri = RemoteCri(channel)
        self.watch = ContainerWatch(self.cri, clock)
        self.version = ""
        self._channel = channel

    async def close(self) -> None:
        """Close the connection; containers keep running."""
        await self.watch.close()
        await self._channel.close()


async def connect(world: World, socket: Path = DEFAULT_SOCKET) -> Containerd:
    """Connect to a socket; `UnusableRuntime` if containerd does not reply."""
    found = Containerd(Channel(socket, world.clock), world.clock)
    try:
        found.version = (await found.cri.call("Version", {}, within=_TIMEOUT)).get("runtime_version", "")
    except RpcError as error:
        await found.close()
        if error.code == Code.UNIMPLEMENTED:
            raise UnusableRuntime(
                f"{socket} does not serve the CRI (runtime.v1); enable containerd's CRI plugin"
            ) from None
        raise UnusableRuntime(
            f"containerd does not reply: {error}; check that it runs and that its socket is accessible"
        ) from None
    return found
