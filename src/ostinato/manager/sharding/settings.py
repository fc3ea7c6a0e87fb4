"""Options of sharding, and the shard of a key."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Final
from zlib import crc32

import msgspec

from ostinato.api.validation import names
from ostinato.manager.election.settings import LeaderElection, identity
from ostinato.world import Ids

LABEL: Final = "ostinato.dev/sharding"
COUNT_LABEL: Final = "ostinato.dev/shards"
_MOST_SHARDS: Final = 256


class Sharding(msgspec.Struct, frozen=True, kw_only=True):
    """
    - `name`: of the Leases: `NAME-0` and so on for shards, `NAME-member-ID` for replicas.
    - `shards`: number of shards, the same in all replicas; several times the number of replicas spreads objects
      evenly. Each costs a renewal every `retry_period`. Defaults to 16.
    - `by`: returns the text whose hash selects the shard of a key, such as its namespace. Defaults to the whole key.
    - `namespace`, `identity`, `lease_duration`, `renew_deadline`, `retry_period`, `trust_absence`, `own_thread`: as in
      `LeaderElection`.
    """

    name: str
    shards: int = 16
    by: Callable[[Hashable], str] | None = None
    namespace: str = ""
    identity: str = ""
    lease_duration: int = 15
    renew_deadline: float = 10.0
    retry_period: float = 2.0
    trust_absence: bool = False
    own_thread: bool = True

    def __post_init__(self) -> None:
        if not 1 <= self.shards <= _MOST_SHARDS:
            raise ValueError(f"sharding {self.name}: shards must be between 1 and {_MOST_SHARDS}")
        if problems := names.is_dns1123_label(self.name):
            raise ValueError(f"sharding {self.name!r} is not a valid name: {problems[0]}")
        self.election(0)  # checks the times

    def election(self, shard: int) -> LeaderElection:
        """Return the options of the Lease of a shard."""
        return LeaderElection(
            name=f"{self.name}-{shard}",
            namespace=self.namespace,
            identity=self.identity,
            lease_duration=self.lease_duration,
            renew_deadline=self.renew_deadline,
            retry_period=self.retry_period,
            trust_absence=self.trust_absence,
            labels={LABEL: self.name, COUNT_LABEL: str(self.shards)},
        )

    def shard_of(self, key: Hashable) -> int:
        """Return the shard of a key: the same in all processes."""
        text = str(key) if self.by is None else self.by(key)
        return crc32(text.encode()) % self.shards


def completed_sharding(given: str | Sharding | None, ids: Ids) -> Sharding | None:
    """Return the options with an identity; None without sharding. `given`: a name, or all options."""
    if not given:
        return None
    options = Sharding(name=given) if isinstance(given, str) else given
    return options if options.identity else msgspec.structs.replace(options, identity=identity(ids))
