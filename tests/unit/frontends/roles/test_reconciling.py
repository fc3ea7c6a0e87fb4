"""Reconciles of roles in virtual time, with Python functions in place of playbooks."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest
from tests.unit.frontends.roles.stage import MEMCACHED, PythonRunner, conditions, install, make_role, memcached

from ostinato.client import Client, MergePatch
from ostinato.frontends.roles import Job, Role, RoleController, RoleFinalizer
from ostinato.frontends.roles.reconciler import MAX_ARTIFACTS, PERIOD, VERBOSITY
from ostinato.testing import ClusterManager, VirtualClock


async def _nothing(job: Job) -> None: ...


@pytest.fixture
def runner() -> PythonRunner:
    return PythonRunner(_nothing)


@pytest.fixture
def role(tmp_path: Path) -> Path:
    return make_role(tmp_path, "[]")


def controller(role: Path, runner: PythonRunner, **options: object) -> RoleController:
    return Role(role).for_kind("Memcached", group="cache.example.com", version="v1alpha1", runner=runner, **options)


async def test_an_object_is_reconciled_again_after_the_period(
    role: Path, runner: PythonRunner, clock: VirtualClock, manager: ClusterManager, client: Client
) -> None:
    await install(client)
    await manager.start(controller(role, runner, reconcile_period=600))
    await client.create(memcached())
    await clock.advance(1)
    assert len(runner.jobs) == 1
    await clock.advance(600)
    assert len(runner.jobs) == 2
    await client.patch(MEMCACHED, "a", MergePatch({"metadata": {"annotations": {PERIOD: "1h30m", VERBOSITY: "9"}}}))
    await clock.advance(600)
    assert len(runner.jobs) == 3  # annotations alone do not cause a run
    await clock.advance(5_300)
    assert len(runner.jobs) == 3
    await clock.advance(200)
    assert len(runner.jobs) == 4
    assert runner.jobs[-1].verbosity == 7


async def test_a_task_can_set_when_the_next_run_is(
    role: Path, runner: PythonRunner, clock: VirtualClock, manager: ClusterManager, client: Client
) -> None:
    await install(client)
    await manager.start(controller(role, runner))
    runner.period = "30s"
    await client.create(memcached())
    await clock.advance(31)
    assert len(runner.jobs) == 2


async def test_a_change_of_the_spec_causes_a_run_with_its_values(
    role: Path, runner: PythonRunner, clock: VirtualClock, manager: ClusterManager, client: Client
) -> None:
    await install(client)
    await manager.start(controller(role, runner, vars={"color": "blue"}))
    await client.create(memcached(poolSize=1))
    await clock.advance(1)
    await client.patch(MEMCACHED, "a", MergePatch({"spec": {"poolSize": 2}}))
    await clock.advance(1)
    seen = [(each.variables["pool_size"], each.variables["color"]) for each in runner.jobs]
    assert seen == [(1, "blue"), (2, "blue")]


async def test_objects_that_do_not_match_the_selector_are_ignored(
    role: Path, runner: PythonRunner, clock: VirtualClock, manager: ClusterManager, client: Client
) -> None:
    await install(client)
    await manager.start(controller(role, runner, selector={"matchLabels": {"tier": "gold"}}))
    await client.create(memcached("plain"))
    golden = memcached("golden")
    golden["metadata"]["labels"] = {"tier": "gold"}
    await client.create(golden)
    await clock.advance(1)
    assert [each.owner["metadata"]["name"] for each in runner.jobs] == ["golden"]


async def test_a_failure_is_retried_with_growing_delays(
    role: Path, clock: VirtualClock, manager: ClusterManager, client: Client
) -> None:
    await install(client)
    times = []

    async def fail_twice(job: Job) -> None:
        times.append(clock.now())
        if len(times) < 3:
            raise ValueError("the database is down")

    await manager.start(controller(role, PythonRunner(fail_twice)))
    await client.create(memcached())
    await clock.advance(0.5)
    failed = conditions(await client.get(MEMCACHED, "a"))
    assert (failed["Failure"]["status"], failed["Failure"]["message"]) == ("True", "the database is down")
    assert failed["Failure"]["ansibleResult"]["failures"] == 1
    assert failed["Successful"]["status"] == failed["Running"]["status"] == "False"
    await clock.advance(10)
    assert [round((b - a).total_seconds()) for a, b in itertools.pairwise(times)] == [1, 2]
    done = conditions(await client.get(MEMCACHED, "a"))
    assert (done["Running"]["reason"], done["Running"]["message"]) == ("Successful", "Awaiting next reconciliation")
    assert done["Running"]["ansibleResult"] == {
        "ok": 3,
        "changed": 0,
        "skipped": 0,
        "failures": 0,
        "completion": "2026-01-01T00:00:00.5+00:00",
    }
    assert done["Failure"]["status"] == "False"


async def test_the_finalizer_is_removed_when_its_run_has_succeeded(
    role: Path, clock: VirtualClock, manager: ClusterManager, client: Client
) -> None:
    await install(client)
    blocked = [True]

    async def play(job: Job) -> None:
        if job.variables.get("state") == "absent" and blocked:
            raise ValueError("still in use")

    runner = PythonRunner(play)
    finalizer = RoleFinalizer(name="cache.example.com/finalizer", vars={"state": "absent"})
    await manager.start(controller(role, runner, finalizer=finalizer))
    await client.create(memcached())
    await clock.advance(1)
    assert (await client.get(MEMCACHED, "a"))["metadata"]["finalizers"] == ["cache.example.com/finalizer"]
    await client.delete(MEMCACHED, "a")
    await clock.advance(5)
    assert conditions(await client.get(MEMCACHED, "a"))["Failure"]["message"] == "still in use"
    blocked.clear()
    await clock.advance(60)
    assert await client.get(MEMCACHED, "a", missing=None) is None
    assert "state" not in runner.jobs[0].variables


async def test_a_malformed_period_is_a_condition_and_not_retried(
    role: Path, runner: PythonRunner, clock: VirtualClock, manager: ClusterManager, client: Client
) -> None:
    await install(client)
    await manager.start(controller(role, runner))
    made = memcached()
    made["metadata"]["annotations"] = {PERIOD: "soon", MAX_ARTIFACTS: "many"}
    await client.create(made)
    await clock.advance(100)
    found = conditions(await client.get(MEMCACHED, "a"))["Failure"]
    assert found["message"] == (
        f'annotation {PERIOD}: time: invalid duration "soon"; write a duration such as 30s or 1h'
    )
    assert len(manager.errors) == 1
    assert not runner.jobs


async def test_status_is_left_alone_without_manage_status(
    role: Path, runner: PythonRunner, clock: VirtualClock, manager: ClusterManager, client: Client
) -> None:
    await install(client)
    await manager.start(controller(role, runner, manage_status=False))
    await client.create(memcached())
    await clock.advance(1)
    assert "status" not in await client.get(MEMCACHED, "a")
    assert runner.jobs
