"""The process runtime: containers are processes of this machine.

- An image names nothing that is pulled: a container needs a `command`, whose programs are this machine's.
- As root, a container has namespaces and a root of its own (`isolation`, `shim.root`), and its securityContext is
  applied; what cannot be is refused (`security`). Without root, containers are processes of the same user.
- Containers outlive the agent, and are found again: each has a keeper (`shim`) that knows how it ended.
- A container ends when its first process does; whatever else it started is killed then.
- Volumes are mounted for the container alone; without root, they are links (`places`). The network is the machine's.
- Limits: memory, processes and processor time by control groups where these may be written, else by what a process may
  be limited to (`limits`).
"""

from __future__ import annotations

from ostinato.plane.node.runtimes.process.runtime import ProcessRuntime

__all__ = ["ProcessRuntime"]
