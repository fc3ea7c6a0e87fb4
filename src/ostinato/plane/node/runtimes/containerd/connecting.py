"""Finding containerd."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from ostinato.plane.node.runtimes import UnusableRuntime
from ostinato.plane.node.runtimes.containerd.cri import Cri, RemoteCri
from ostinato.plane.node.runtimes.containerd.grpc import UNIMPLEMENTED, Channel
from ostinato.plane.node.runtimes.containerd.http2 import RpcError
from ostinato.plane.node.runtimes.containerd.watch import Watch
from ostinato.world import Clock, World

DEFAULT_SOCKET: Final = Path("/run/containerd/containerd.sock")
_PATIENCE: Final = 10.0


class Containerd:
    """A containerd that answers, for all nodes of a process."""

    def __init__(self, channel: Channel, clock: Clock) -> None:
        self.cri: Cri = RemoteCri(channel)
        self.watch = Watch(self.cri, clock)
        self.version = ""
        self._channel = channel

    async def close(self) -> None:
        """Speak to it no more; containers go on."""
        await self.watch.close()
        await self._channel.close()


async def connect(world: World, socket: Path = DEFAULT_SOCKET) -> Containerd:
    """The containerd behind a socket; `UnusableRuntime` if there is none."""
    found = Containerd(Channel(socket, world.clock), world.clock)
    try:
        found.version = (await found.cri.call("Version", {}, within=_PATIENCE)).get("runtime_version", "")
    except RpcError as error:
        await found.close()
        if error.code == UNIMPLEMENTED:
            raise UnusableRuntime(f"{socket} does not speak the CRI (runtime.v1): is its plugin disabled?") from None
        raise UnusableRuntime(
            f"containerd does not answer: {error}; is it running, and may you use its socket?"
        ) from None
    return found
