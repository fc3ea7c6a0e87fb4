"""Announcing: what an election means for a manager, its log and the events on the lease."""

from __future__ import annotations

import logging
from collections.abc import Callable

from ostinato.controllers.runnable import Recorder
from ostinato.kinds.coordination_v1 import Lease

_logger = logging.getLogger("ostinato.manager")


class Announcer:
    """Hears of an election, on the manager's loop."""

    def __init__(self, recorder: Recorder, identity: str, lead: Callable[[], object]) -> None:
        """`lead` is called when leadership is won."""
        self._recorder = recorder
        self._identity = identity
        self._lead = lead
        self._lease: Lease | None = None  # that was won

    def leader_seen(self, identity: str) -> None:
        _logger.info("the leader is %s", identity or "nobody")

    def elected(self, lease: Lease) -> None:
        self._lease = lease
        self._say("became leader", "BecomeLeader")
        self._lead()

    def ended(self) -> None:
        """It is over. Who never led says nothing."""
        self._say("stopped leading", "StopLeading")

    def _say(self, what: str, action: str) -> None:
        if self._lease is not None:
            self._recorder.event(self._lease, "LeaderElection", f"{self._identity} {what}", action=action)
