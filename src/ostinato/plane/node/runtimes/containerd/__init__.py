"""The containerd runtime: containers managed over the CRI socket of containerd.

    runtime = ContainerdRuntime(world, await connect(world, Path("/run/containerd/containerd.sock")), directory)

- Each Pod has a sandbox with its own network.
- Containers survive restarts of the agent and of containerd, and are recovered by their labels.
- An existing container of the same name is removed before a start: no container runs twice.
- Needs the extra `containerd` (HTTP/2) and access to containerd's socket.

Other runtimes that implement `runtime.v1` of the CRI work as well.
"""

from __future__ import annotations

from ostinato.plane.node.runtimes.containerd.connecting import DEFAULT_SOCKET, Containerd, connect
from ostinato.plane.node.runtimes.containerd.runtime import ContainerdRuntime

__all__ = ["DEFAULT_SOCKET", "Containerd", "ContainerdRuntime", "connect"]
