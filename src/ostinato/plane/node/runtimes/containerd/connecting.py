"""Finding containerd."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import msgspec

from ostinato.plane.node.runtimes.containerd.cri import Cri, RemoteCri
from ostinato.plane.node.runtimes.containerd.grpc import UNIMPLEMENTED, Channel
from ostinato.plane.node.runtimes.containerd.http2 import RpcError
from ostinato.world import World

DEFAULT_SOCKET: Final = Path("/run/containerd/containerd.sock")
_PATIENCE: Final = 10.0


class ContainerdError(Exception):
    """There is no containerd to be used; the message says why, and what to do."""


class Containerd(msgspec.Struct, frozen=True):
    """A containerd that answers."""

    cri: Cri
    version: str


async def connect(world: World, socket: Path = DEFAULT_SOCKET) -> Containerd:
    """The containerd behind a socket."""
    cri = RemoteCri(Channel(socket, world.clock))
    try:
        version = await cri.call("Version", {}, within=_PATIENCE)
    except RpcError as error:
        if error.code == UNIMPLEMENTED:
            raise ContainerdError(f"{socket} does not speak the CRI (runtime.v1): is its plugin disabled?") from None
        raise ContainerdError(f"containerd does not answer: {error}") from None
    return Containerd(cri, version.get("runtime_version", ""))
