"""Health of the container runtime: a node reports NotReady while its runtime, or the runtime's network, is not ready.

The runtime is asked every five seconds. As with kubelet, it counts as down only after half a minute without an answer.
"""

from __future__ import annotations

from typing import Final, Protocol, runtime_checkable

from ostinato.controllers import Dependencies
from ostinato.plane.node.registration.readiness import NodeReadiness

_INTERVAL: Final = 5.0  # seconds
_PATIENCE: Final = 30.0  # seconds without an answer
_COMPONENT: Final = "container-runtime"
_DOWN: Final = "container runtime is down"


class RuntimeDown(Exception):  # noqa: N818 - a state, not an error of the caller
    """The runtime does not answer."""


@runtime_checkable
class HasHealth(Protocol):
    """A runtime that can be down while the agent runs."""

    async def health(self) -> str:
        """Return why Pods cannot be run; empty if they can. `RuntimeDown` if it does not answer."""


class RuntimeHealth:
    """A runnable that reports the health of a runtime as a part of the node's readiness."""

    name = "runtime-health"
    needs_leader_election = False

    def __init__(self, runtime: HasHealth, readiness: NodeReadiness) -> None:
        self._runtime = runtime
        self._readiness = readiness

    async def run(self, dependencies: Dependencies) -> None:
        clock = dependencies.world.clock
        answered = clock.monotonic()
        known = ""
        while True:
            try:
                message = await self._runtime.health()
                answered = clock.monotonic()
            except RuntimeDown:
                message = _DOWN if clock.monotonic() - answered >= _PATIENCE else known
            if message != known:
                dependencies.logger.warning("container runtime health changed message=%s", message or "ready")
                known = message
            self._readiness.report(_COMPONENT, message)
            await clock.sleep(_INTERVAL)
