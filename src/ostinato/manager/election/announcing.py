"""Reports of an election: logs, Events about the lease, and the start of the leader group."""

from __future__ import annotations

import logging
from collections.abc import Callable

from ostinato.controllers.runnable import Recorder
from ostinato.kinds.coordination_v1 import Lease

_logger = logging.getLogger("ostinato.manager")


class Announcer:
    """Listener of an election, on the manager's loop."""

    def __init__(self, recorder: Recorder, identity: str, lead: Callable[[], object]) -> None:
        """`lead`: called when leadership is acquired."""
        self._recorder = recorder
        self._identity = identity
        self._lead = lead
        self._lease: Lease | None = None  # set when leadership is acquired

    def leader_seen(self, identity: str) -> None:
        _logger.info("new leader elected identity=%s", identity or "none")

    def elected(self, lease: Lease) -> None:
        self._lease = lease
        self._record("became leader", "BecomeLeader")
        self._lead()

    def ended(self) -> None:
        """Record the end of leadership, if this process led."""
        self._record("stopped leading", "StopLeading")

    def _record(self, what: str, action: str) -> None:
        if self._lease is not None:
            self._recorder.event(self._lease, "LeaderElection", f"{self._identity} {what}", action=action)
