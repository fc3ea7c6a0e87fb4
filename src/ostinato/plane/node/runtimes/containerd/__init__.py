"""The containerd runtime: real containers, over the socket at which containerd speaks the CRI.

    runtime = ContainerdRuntime(world, await connect(world, Path("/run/containerd/containerd.sock")), directory)

- A Pod is a sandbox with a network of its own; its containers are those of the images that they name.
- Containers outlive the agent and containerd itself, and are found again by their labels.
- Whatever runs under the name of a container when it is to be started is removed first: none runs twice.
- It needs the extra `containerd` (an implementation of HTTP/2), and a containerd that may be spoken to.

Anything else that speaks `runtime.v1` of the CRI will do as well.
"""

from __future__ import annotations

from ostinato.plane.node.runtimes.containerd.connecting import DEFAULT_SOCKET, Containerd, connect
from ostinato.plane.node.runtimes.containerd.runtime import ContainerdRuntime

__all__ = ["DEFAULT_SOCKET", "Containerd", "ContainerdRuntime", "connect"]
