"""Three replicas as processes share objects: one is paused for longer than a lease, one is killed."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from ostinato.world import World
from tests.cluster.conftest import Admin
from tests.cluster.running import SECONDS, Running, running

OBJECTS = 6

PROGRAM = """
import os, time
from ostinato import Manager
from ostinato.client import Config, MergePatch
from ostinato.controllers import Result, controller
from ostinato.kinds.core_v1 import ConfigMap
from ostinato.manager import CacheOptions, Sharding
from ostinato.cache import InformerSettings

namespace = os.environ["NAMESPACE"]
log = os.open(os.environ["LOG"], os.O_WRONLY | os.O_APPEND)
sharding = Sharding(
    name="shared", shards=4, lease_duration=3, renew_deadline=2, retry_period=0.5, trust_absence=True,
)
manager = Manager(
    Config.load(namespace=namespace),
    sharding=sharding,
    caches=CacheOptions(defaults=InformerSettings(namespaces=(namespace,))),
)

@controller(ConfigMap, max_concurrent=4, runs_for_own_writes=False, error_events=False)
async def objects(config, ctx):
    if not config.metadata.name.startswith("object-"):
        return
    term = id(manager._shards._terms[sharding.shard_of(ctx.request)])
    for number in range(2):
        sent = time.monotonic()
        change = MergePatch({"data": {"by": f"{os.getpid()} {number}"}})
        written = await ctx.client.patch(ConfigMap, ctx.request, change)
        line = f"{sent} {written.metadata.resource_version} {config.metadata.name} {os.getpid()} {term}\\n"
        os.write(log, line.encode())
    return Result(requeue_after=0.5)

manager.add(objects).run()
"""


class Write(NamedTuple):
    sent: float
    version: int  # of the object that was written: the order in which the server executed the writes
    name: str
    pid: int
    term: str


def writes_in(log: Path) -> list[Write]:
    lines = [line.split() for line in log.read_text().splitlines()]
    return [Write(float(sent), int(version), name, int(pid), term) for sent, version, name, pid, term in lines]


def overlaps(writes: list[Write]) -> Iterator[str]:
    """Writes to an object that the server executed among those of another replica."""
    for name in {each.name for each in writes}:
        spans: dict[tuple[int, str], list[int]] = {}
        for each in writes:
            if each.name == name:
                spans.setdefault((each.pid, each.term), []).append(each.version)
        ordered = sorted((min(versions), max(versions), pid) for (pid, _), versions in spans.items())
        for (_, end, pid), (begin, _, other) in pairwise(ordered):
            if begin <= end and pid != other:
                yield f"{name}: {other} wrote version {begin}, {pid} until {end}"


def test_three_processes_share_objects(kubeconfig: Path, namespace: str, tmp_path: Path) -> None:
    api = Admin(kubeconfig)
    for number in range(OBJECTS):
        document = {"metadata": {"name": f"object-{number}"}}
        assert api("POST", f"/api/v1/namespaces/{namespace}/configmaps", document) == 201
    program, log, clock = tmp_path / "sharded.py", tmp_path / "writes", World.real().clock
    program.write_text(PROGRAM)
    log.touch()
    environment = {"KUBECONFIG": str(kubeconfig), "NAMESPACE": namespace, "LOG": str(log)}

    def wait_until(condition: Callable[[list[Write]], bool], replicas: list[Running]) -> None:
        until = clock.monotonic() + SECONDS
        while not condition(writes_in(log)):
            assert clock.monotonic() < until, [each.log()[-2000:] for each in replicas]
            time.sleep(0.1)

    def all_written_by(pids: set[int]) -> Callable[[list[Write]], bool]:
        """Whether these replicas, and no other, have written all objects from now on."""
        since = clock.monotonic()

        def condition(writes: list[Write]) -> bool:
            later = [each for each in writes if each.sent > since]
            return {each.pid for each in later} >= pids and len({e.name for e in later if e.pid in pids}) == OBJECTS

        return condition

    with ExitStack() as stack:
        replicas = [
            stack.enter_context(running(tmp_path / f"log-{number}", str(program), environment=environment))
            for number in range(3)
        ]
        first, second, third = (each.process.pid for each in replicas)
        wait_until(all_written_by({first, second, third}), replicas)
        os.kill(first, signal.SIGSTOP)
        wait_until(all_written_by({second, third}), replicas)
        os.kill(first, signal.SIGCONT)
        wait_until(all_written_by({first, second, third}), replicas)
        os.kill(second, signal.SIGKILL)
        wait_until(all_written_by({first, third}), replicas)
        for each in (replicas[0], replicas[2]):
            assert each.stop() == 0, each.log()
    assert list(overlaps(writes_in(log))) == []
