"""Finding containerd."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import msgspec

from ostinato.plane.node.runtimes import UnusableRuntime
from ostinato.plane.node.runtimes.containerd.cri import Cri, RemoteCri
from ostinato.plane.node.runtimes.containerd.grpc import UNIMPLEMENTED, Channel
from ostinato.plane.node.runtimes.containerd.http2 import RpcError
from ostinato.world import World

DEFAULT_SOCKET: Final = Path("/run/containerd/containerd.sock")
_PATIENCE: Final = 10.0


class Containerd(msgspec.Struct, frozen=True):
    """A containerd that answers."""

    cri: Cri
    version: str


async def connect(world: World, socket: Path = DEFAULT_SOCKET) -> Containerd:
    """The containerd behind a socket; `UnusableRuntime` if there is none."""
    cri = RemoteCri(Channel(socket, world.clock))
    try:
        version = await cri.call("Version", {}, within=_PATIENCE)
    except RpcError as error:
        if error.code == UNIMPLEMENTED:
            raise UnusableRuntime(f"{socket} does not speak the CRI (runtime.v1): is its plugin disabled?") from None
        raise UnusableRuntime(
            f"containerd does not answer: {error}; is it running, and may you use its socket?"
        ) from None
    return Containerd(cri, version.get("runtime_version", ""))
