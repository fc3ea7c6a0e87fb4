"""The process runtime: containers are groups of processes on this machine, each in a directory of its own.

- An image names nothing that is pulled: a container needs a `command`, whose programs are this machine's.
- Containers outlive the agent, and are found again: each has a keeper (`shim`) that knows how it ended.
- A container ends when its first process does; whatever else it started is killed then.
- Volumes are seen at their places by the container alone where that can be, see `places`; the network is the machine's.
- Limits: memory, processes and processor time by control groups where these may be written, else by what a process may
  be limited to, see `limits`.
"""

from __future__ import annotations

from ostinato.plane.node.runtimes.process.runtime import ProcessRuntime

__all__ = ["ProcessRuntime"]
