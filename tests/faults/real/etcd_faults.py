"""Faults of an etcd cluster and of the servers on it: each disturbs them while the clients work, and ends healed."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress

from ostinato.etcd import EtcdClient, EtcdError
from ostinato.world import Rng
from tests.etcd_cluster import EtcdCluster, Member
from tests.faults.real.etcd_truth import EtcdTruth
from tests.faults.real.networks import MemberNetwork
from tests.faults.real.server_process import ServerProcess


class Patient:
    """A cluster, and the servers on it."""

    def __init__(
        self,
        cluster: EtcdCluster,
        networks: Sequence[MemberNetwork],
        servers: Sequence[ServerProcess],
        client: EtcdClient,
        stopped: float = 1.5,
    ) -> None:
        """`stopped`: seconds for which a server is frozen."""
        self.cluster = cluster
        self.networks = networks
        self.servers = servers
        self.client = client
        self.stopped = stopped
        self.truth: EtcdTruth | None = None

    async def leader(self) -> Member:
        return await asyncio.to_thread(self.cluster.leader)

    def network(self, member: Member) -> MemberNetwork:
        return self.networks[self.cluster.members.index(member)]

    async def healed(self) -> None:
        """Start what is down, connect what is cut, and wait until all members are healthy."""
        for network in self.networks:
            network.heal()
        for member in self.cluster.members:
            if not member.is_running:
                member.restart()
        await asyncio.to_thread(self.cluster.wait_healthy)


Fault = Callable[[Patient, Rng], Awaitable[None]]


async def none(patient: Patient, rng: Rng) -> None:
    """Concurrency alone."""


async def leader_kill(patient: Patient, rng: Rng) -> None:
    (await patient.leader()).kill()
    await asyncio.sleep(rng.uniform(0.2, 2.5))


async def member_loss(patient: Patient, rng: Rng) -> None:
    """A member is down for a while."""
    rng.choice(patient.cluster.members).kill()
    await asyncio.sleep(rng.uniform(0.5, 2.0))


async def majority_loss(patient: Patient, rng: Rng) -> None:
    """Nothing can be written for a while."""
    survivor = rng.randrange(3)
    for number, member in enumerate(patient.cluster.members):
        if number != survivor:
            member.kill()
    await asyncio.sleep(rng.uniform(0.2, 1.5))


async def all_kill(patient: Patient, rng: Rng) -> None:
    for member in patient.cluster.members:
        member.kill()


async def leader_stop(patient: Patient, rng: Rng) -> None:
    """The leader is frozen, and wakes as a follower that does not know it."""
    leader = await patient.leader()
    leader.stop()
    try:
        await asyncio.sleep(rng.uniform(0.5, 3.0))
    finally:
        leader.cont()


async def partition_leader(patient: Patient, rng: Rng) -> None:
    """The leader reaches no one; those connected to it get no sign."""
    patient.network(await patient.leader()).cut()
    await asyncio.sleep(rng.uniform(1.0, 3.0))


async def partition_follower(patient: Patient, rng: Rng) -> None:
    leader = await patient.leader()
    follower = rng.choice([each for each in patient.cluster.members if each is not leader])
    patient.network(follower).cut()
    await asyncio.sleep(rng.uniform(1.0, 3.0))


async def partition_peers(patient: Patient, rng: Rng) -> None:
    """A member, the leader in half of the cases, is reached by servers, but not by its peers."""
    members = [await patient.leader(), rng.choice(patient.cluster.members)]
    patient.network(rng.choice(members)).cut(clients=False)
    await asyncio.sleep(rng.uniform(1.0, 3.0))


async def partition_clients(patient: Patient, rng: Rng) -> None:
    """A member that is well is out of the servers' reach."""
    patient.network(rng.choice(patient.cluster.members)).cut(peers=False)
    await asyncio.sleep(rng.uniform(1.0, 3.0))


async def defragmentation(patient: Patient, rng: Rng) -> None:
    for member in patient.cluster.members:
        await asyncio.to_thread(patient.cluster.defragment, member)
        await asyncio.sleep(rng.uniform(0.0, 0.3))


async def compaction(patient: Patient, rng: Rng) -> None:
    """The history is dropped every 100 ms."""
    for _ in range(20):
        await _compact(patient)
        await asyncio.sleep(0.1)


async def _compact(patient: Patient) -> None:
    assert patient.truth is not None
    with suppress(EtcdError):
        await patient.client.compact(patient.truth.revision)


async def server_kill(patient: Patient, rng: Rng) -> None:
    """kill -9 of a server."""
    server = rng.choice(patient.servers)
    await asyncio.sleep(rng.uniform(0.0, 0.5))
    await server.kill()
    await server.start()


async def server_stop(patient: Patient, rng: Rng) -> None:
    """A server is frozen, while others write, and wakes."""
    await _stop(patient, rng, compacting=False)


async def server_stop_and_compaction(patient: Patient, rng: Rng) -> None:
    """It wakes, and etcd no longer has what it has missed."""
    await _stop(patient, rng, compacting=True)


async def _stop(patient: Patient, rng: Rng, *, compacting: bool) -> None:
    server = rng.choice(patient.servers)
    await asyncio.sleep(rng.uniform(0.0, 0.3))
    server.stop()
    try:
        await asyncio.sleep(patient.stopped)
        if compacting:
            await _compact(patient)
    finally:
        server.cont()
    await asyncio.sleep(0.3)


async def server_stop_and_leader_kill(patient: Patient, rng: Rng) -> None:
    """It wakes with connections to a leader that is gone."""
    server = rng.choice(patient.servers)
    server.stop()
    try:
        (await patient.leader()).kill()
        await asyncio.sleep(patient.stopped)
    finally:
        server.cont()
    await asyncio.sleep(0.3)


FAULTS: dict[str, Fault] = {
    "none": none,
    "leader-kill": leader_kill,
    "member-loss": member_loss,
    "majority-loss": majority_loss,
    "all-kill": all_kill,
    "leader-stop": leader_stop,
    "defragmentation": defragmentation,
    "compaction": compaction,
    "server-kill": server_kill,
    "server-stop": server_stop,
    "server-stop-and-compaction": server_stop_and_compaction,
    "server-stop-and-leader-kill": server_stop_and_leader_kill,
}
PARTITIONS: dict[str, Fault] = {
    "partition-leader": partition_leader,
    "partition-follower": partition_follower,
    "partition-peers": partition_peers,
    "partition-clients": partition_clients,
}
