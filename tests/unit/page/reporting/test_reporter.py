"""The reporter of a process, in virtual time."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests.unit.page.objects import instance

from ostinato.api.gvk import GroupVersionKind, NamespacedName
from ostinato.cache.own_writes.recorder import OwnDeletion, OwnWrite
from ostinato.controllers.current import Reconcile
from ostinato.controllers.reasons import Cause, Why
from ostinato.controllers.reports.metrics import ControllerStatistics
from ostinato.controllers.reports.observing import RunOutcome
from ostinato.page.reporting.reporter import Reporter, Undelivered
from ostinato.page.reporting.reports import Reports, decode, encode
from ostinato.world import Simulation

POD = GroupVersionKind("", "v1", "Pod")
KEY = NamespacedName("default", "a")
DONE = RunOutcome(result="success", seconds=0.25, waited=0.5)


def run(number: int = 1) -> Reconcile:
    why = Why(("Pod updated",), (Cause(POD, KEY, "7"),))
    return Reconcile(id=f"run-{number}", controller="pods", request=KEY, gvk=POD, why=why, attempt=1)


def simulated(test: Any) -> None:
    world = Simulation(seed=1)

    async def main() -> None:
        await test(world, Reporter("process", world.clock))

    world.run(main())


def test_a_run_is_reported_with_its_causes_and_writes() -> None:
    async def test(_: Simulation, reporter: Reporter) -> None:
        pod = instance("Pod", "a", 8)
        reporter.wrote(run(), OwnWrite.of(pod))
        reporter.deleted(run(), OwnDeletion(POD, KEY, "uid"))
        reporter.finished(run(), DONE)
        reports = reporter.take()
        assert reports is not None
        found = reports.runs[0].reconcile()
        assert (found.controller, found.key, found.result, found.seconds) == ("pods", "default/a", "success", 0.25)
        assert [(each.ref.name, each.resource_version) for each in found.causes] == [("a", "7")]
        assert [each.resource_version for each in found.writes] == ["8", ""]
        assert [(each.run, each.is_removal) for each in reports.wrote] == [("run-1", False), ("run-1", True)]
        assert decode(encode(reports)) == reports
        assert reporter.take() is None

    simulated(test)


def test_a_write_with_the_version_that_caused_the_run_changed_nothing() -> None:
    async def test(_: Simulation, reporter: Reporter) -> None:
        reporter.wrote(run(), OwnWrite.of(instance("Pod", "a", 7)))
        reporter.finished(run(), DONE)
        reports = reporter.take()
        assert reports is not None
        assert (reports.wrote, reports.runs[0].reconcile().writes) == ([], [])

    simulated(test)


@pytest.mark.parametrize(
    ("metadata", "is_removal"),
    [
        ({}, True),
        ({"finalizers": ["example.dev/other"]}, False),
        ({"deletionGracePeriodSeconds": 30}, False),  # the node has not confirmed it
    ],
)
def test_a_write_that_leaves_no_finalizer_of_a_deleted_object_removes_it(
    metadata: dict[str, Any], is_removal: bool
) -> None:
    async def test(_: Simulation, reporter: Reporter) -> None:
        deleting = {"deletionTimestamp": "2026-01-01T00:00:00Z", **metadata}
        reporter.wrote(run(), OwnWrite.of(instance("Pod", "a", 8, metadata=deleting)))
        reports = reporter.take()
        assert reports is not None
        (found,) = reports.wrote
        assert (found.is_removal, found.resource_version) == (is_removal, "" if is_removal else "8")

    simulated(test)


def test_a_namespace_is_removed_with_the_finalizers_of_its_spec() -> None:
    async def test(_: Simulation, reporter: Reporter) -> None:
        deleting = {"deletionTimestamp": "2026-01-01T00:00:00Z"}
        for finalizers in (["kubernetes"], []):
            namespace = instance("Namespace", "a", 8, metadata=deleting, spec={"finalizers": finalizers})
            reporter.wrote(run(), OwnWrite.of(namespace))
        reports = reporter.take()
        assert reports is not None
        assert [each.is_removal for each in reports.wrote] == [False, True]

    simulated(test)


def test_what_exceeds_the_bound_is_counted() -> None:
    async def test(_: Simulation, reporter: Reporter) -> None:
        for number in range(5_000):
            reporter.finished(run(number), DONE)
        reports = reporter.take()
        assert reports is not None
        assert len(reports.runs) + reports.dropped == 5_000
        assert reports.dropped > 0

    simulated(test)


def test_statistics_are_sampled_once_a_second() -> None:
    async def test(world: Simulation, reporter: Reporter) -> None:
        statistics = ControllerStatistics("pods", world.clock, 4)
        reporter.started("pods", statistics)
        statistics.queue.added("default/a", 0)
        await world.clock.sleep(5.0)
        statistics.ran("success", 0.1, ())
        statistics.active_workers = 4
        reporter.finished(run(), RunOutcome(result="success", seconds=1.5, waited=0.0))
        reports = reporter.take()
        assert reports is not None
        (stats,) = reports.controllers
        assert (stats.depth, stats.workers, stats.busy, stats.oldest, stats.rate) == (1, 4, 4, 5.0, 0.2)
        assert stats.reason == "1 keys wait, default/a for 5 s: all workers are busy, and a reconcile takes 1.5 s"
        reporter.finished(run(), DONE)
        again = reporter.take()
        assert again is not None
        assert again.controllers == []

    simulated(test)


def test_a_lost_page_costs_reports_and_a_new_one_learns_the_watched_kinds() -> None:
    async def test(world: Simulation, reporter: Reporter) -> None:
        received: list[Reports] = []
        answers = iter([True, Undelivered(), True, False, False])

        async def deliver(reports: Reports) -> bool:
            answer = next(answers, False)
            if isinstance(answer, Undelivered):
                raise answer
            received.append(reports)
            return answer

        reporter.watches("pods", POD, primary=True)
        task = asyncio.get_running_loop().create_task(reporter.run(deliver))
        for number in range(4):
            reporter.finished(run(number), DONE)
            await world.clock.sleep(0.2)
        task.cancel()
        assert [len(each.watches) for each in received] == [1, 1, 1, 0]
        assert [each.dropped for each in received] == [0, 1, 0, 0]
        assert [run.id for each in received for run in each.runs] == ["run-0", "run-2", "run-3"]

    simulated(test)
