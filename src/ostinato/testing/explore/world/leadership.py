"""Leadership in a world: who holds the lease, and who writes without it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from ostinato.manager import LeadershipLost
from ostinato.server.faults import Operation
from ostinato.server.store.records import Write
from ostinato.testing.explore.world.outcome import Trespass

if TYPE_CHECKING:
    from ostinato.testing.explore.world.replica import Replica
    from ostinato.testing.explore.world.run import Run


class Leadership:
    def __init__(self, run: Run) -> None:
        self._run = run
        self.holders: dict[str, str] = {}  # by lease
        self.trespasses: list[Trespass] = []

    def written(self, write: Write) -> None:
        """Read the holder from a write of the lease."""
        spec = {} if write.data is None else msgspec.json.decode(write.data).get("spec", {})
        self.holders[write.key.rpartition("/")[2]] = spec.get("holderIdentity", "")

    def wrote(self, replica: Replica, operation: Operation, status: int) -> None:
        """Register a write of a replica that the server has accepted."""
        holder = self.holders.get(replica.lease, "") if replica.lease else ""
        if status < 300 and holder not in ("", replica.name):
            self.trespasses.append(Trespass(self._run.now, replica.name, str(operation), holder))

    def explains(self, error: BaseException) -> bool:
        """Whether a process that ended with this error did as it should."""
        return isinstance(error, LeadershipLost)
