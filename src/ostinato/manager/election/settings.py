"""Options of a leader election.

A leader that cannot renew stops `renew_deadline` seconds after its last renewal; others take over after
`lease_duration` seconds. The difference covers requests in flight and clock skew: with the defaults of 15 and 10
seconds a clock may run 1.5 times as fast as another.
"""

from __future__ import annotations

import socket
from collections.abc import Mapping
from typing import Final

import msgspec

from ostinato.api.validation import names
from ostinato.world import Ids

JITTER: Final = 1.2  # as in client-go: fraction of the retry period that is added at random


class LeaderElection(msgspec.Struct, frozen=True, kw_only=True):
    """
    - `name`: name of the Lease, the same for all candidates.
    - `namespace`: namespace of the Lease. Defaults to that of the client's configuration: in a cluster, the Pod's.
    - `identity`: unique identity of this candidate. Defaults to the host name and a random id.
    - `lease_duration`: whole seconds that candidates wait after the last observed renewal. Defaults to 15.
    - `renew_deadline`: seconds without a renewal after which the leader stops. Defaults to 10.
    - `retry_period`: seconds between renewals, and the minimum between attempts to acquire. Defaults to 2.
    - `release`: release the lease on shutdown, so that the next leader does not wait. Defaults to True.
    - `trust_absence`: lead immediately if there is no lease. Defaults to False: the lease may have been deleted while
      another process leads, so the candidate creates the lease and leads `lease_duration` seconds later.
    - `own_thread`: renew the lease in a thread of its own. Defaults to True. False is for a server in the same process,
      which can be called only on its own loop.
    - `labels`: labels of the Lease. Defaults to none.
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
            raise ValueError("leader election needs a name, that of the Lease")
        if problems := names.is_dns1123_subdomain(self.name):
            raise ValueError(f"leader election {self.name!r} is not a valid name: {problems[0]}")
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
        """Timeout of one request in seconds; leaves time for a second request before the deadline."""
        return max(1.0, self.renew_deadline / 2)


def identity(ids: Ids) -> str:
    """Return a unique identity for this process."""
    return f"{socket.gethostname()}_{ids.uid()}"


def completed(given: str | LeaderElection | None, ids: Ids) -> LeaderElection | None:
    """Return the options with an identity; None without leader election. `given`: a name, or all options."""
    if not given:
        return None
    options = LeaderElection(name=given) if isinstance(given, str) else given
    return options if options.identity else msgspec.structs.replace(options, identity=identity(ids))
