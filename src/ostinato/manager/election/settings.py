"""What decides an election: the name of the lease, who stands for election, and the times.

The times must leave a gap: a leader that cannot renew stops `renew_deadline` seconds after its last renewal, others
take over `lease_duration` seconds after it. What lies between covers requests that are under way and clocks that do
not run at the same pace: with the usual 15 and 10 seconds a clock may run 1.5 times as fast as another.
"""

from __future__ import annotations

import socket
from collections.abc import Mapping
from typing import Final

import msgspec

from ostinato.api import names
from ostinato.world import Ids

JITTER: Final = 1.2  # a candidate waits for its retry period, and up to this much of it again


class LeaderElection(msgspec.Struct, frozen=True, kw_only=True):
    """
    - `name`: of the Lease, the same for all candidates.
    - `namespace`: of the Lease. Defaults to that of the client's configuration: in a cluster, the Pod's.
    - `identity`: who this candidate is, unlike all others. Defaults to the host's name and a random id.
    - `lease_duration`: whole seconds for which others leave a lease alone that does not change. Defaults to 15.
    - `renew_deadline`: seconds without a renewal after which the leader gives up. Defaults to 10.
    - `retry_period`: seconds between renewals, and at least so many between attempts. Defaults to 2.
    - `release`: whether a leader that has stopped its work gives the lease back, so that the next one need not wait.
      Defaults to yes.
    - `trust_absence`: whether a candidate that finds no lease leads at once. Defaults to no: the lease may have been
      deleted under a leader that has not noticed; so it takes the lease and begins `lease_duration` seconds later.
    - `own_thread`: whether renewal has a thread and a loop to itself. Defaults to yes. No for a server in the same
      process, which can be asked on its own loop alone.
    - `labels`: of the Lease.
    """

    name: str
    namespace: str = ""
    identity: str = ""
    lease_duration: int = 15
    renew_deadline: float = 10.0
    retry_period: float = 2.0
    release: bool = True
    trust_absence: bool = False
    own_thread: bool = True
    labels: Mapping[str, str] = {}

    def __post_init__(self) -> None:
        if not self.name:
            raise ValueError("leader election needs a name: that of the Lease that all candidates share")
        if problems := names.is_dns1123_subdomain(self.name):
            raise ValueError(f"leader election {self.name!r} cannot be called so: {problems[0]}")
        for field in ("lease_duration", "renew_deadline", "retry_period"):
            if not getattr(self, field) > 0:
                raise ValueError(f"leader election {self.name}: {field} must be greater than zero")
        if self.lease_duration != int(self.lease_duration):
            raise ValueError(f"leader election {self.name}: lease_duration must be in whole seconds")
        if self.lease_duration <= self.renew_deadline:
            raise ValueError(f"leader election {self.name}: lease_duration must be greater than renew_deadline")
        if self.renew_deadline <= JITTER * self.retry_period:
            raise ValueError(
                f"leader election {self.name}: renew_deadline must be greater than {JITTER} times retry_period"
            )

    @property
    def request_timeout(self) -> float:
        """Seconds that one request for the lease may take, so that there is time for a second."""
        return max(1.0, self.renew_deadline / 2)


def identity(ids: Ids) -> str:
    """A name for this process that no other has."""
    return f"{socket.gethostname()}_{ids.uid()}"
