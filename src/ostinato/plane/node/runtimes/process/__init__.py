"""The process runtime: containers are processes of this machine.

- Images are not pulled: a container needs a `command` that names programs of this machine.
- As root, a container gets its own namespaces and root file system (`isolation`, `shim.root`) and its securityContext
  is applied; fields that cannot be applied are rejected (`security`). Without root, containers run as the agent's user.
- Containers survive a restart of the agent and are recovered: each has a keeper (`shim`), a process like
  containerd-shim or conmon that waits for the container and records its exit.
- A container ends when its first process exits; its other processes are killed then.
- Volumes are mounted into the container's mount namespace; without root, they are symbolic links (`mount_links`).
- As root, each Pod has a network namespace with an address of its own; elsewhere Pods use the machine's (`networks`).
- Memory, process and CPU limits use control groups where these are writable, and rlimits elsewhere (`limits`).
"""

from __future__ import annotations

from ostinato.plane.node.runtimes.process.runtime import ProcessRuntime

__all__ = ["ProcessRuntime"]
