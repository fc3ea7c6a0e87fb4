"""Two server processes on an etcd of three members, disturbed under load: no property is violated.

Each round prints its seed; `python -m tests.faults.real.etcd_run --seed N` repeats it. Partitions need root.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.etcd_cluster import needs_etcd
from tests.faults.history.violation import Violation
from tests.faults.real import defects
from tests.faults.real.etcd_run import Round, servers_on_etcd
from tests.faults.real.networks import can_partition

OPERATIONS = 120
FAULTS = (  # the others are in the soak
    "leader-kill",
    "member-loss",
    "leader-stop",
    "defragmentation",
    "compaction",
    "server-kill",
    "server-stop-and-compaction",
)
pytestmark = needs_etcd
needs_networks = pytest.mark.skipif(not can_partition(), reason="network namespaces need root")


async def _rounds(
    place: Path, faults: Sequence[str], first: int, *, partitions: bool = False, defect: str = ""
) -> None:
    """One cluster, a round for each fault."""
    async with servers_on_etcd(
        place, partitions=partitions, stopped=1.0, environment={defects.VARIABLE: defect}
    ) as patient:
        for seed, fault in enumerate(faults, first):
            one = Round(seed, patient, fault)
            print(one)
            await one.run(OPERATIONS)
            assert one.acknowledged >= OPERATIONS // 5
            assert one.history.is_exact
            await one.clean()


def test_faults_of_members_and_servers_violate_nothing(tmp_path: Path) -> None:
    asyncio.run(_rounds(tmp_path, FAULTS, 0))


@needs_networks
def test_partitions_violate_nothing(tmp_path: Path) -> None:
    asyncio.run(_rounds(tmp_path, ["partition-leader", "partition-peers", "partition-clients"], 100, partitions=True))


@needs_networks
def test_a_server_that_reads_without_asking_etcd_is_caught(tmp_path: Path) -> None:
    with pytest.raises(Violation) as found:
        asyncio.run(_rounds(tmp_path, ["partition-peers"] * 50, 200, partitions=True, defect="stale-read"))
    assert found.value.name in ("S2", "S7"), str(found.value)
