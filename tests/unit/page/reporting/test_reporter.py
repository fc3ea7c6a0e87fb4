"""The reporter of a process, in virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import Hashable
from typing import Any

import pytest
from tests.unit.page.objects import instance, taken

from ostinato.api.gvk import GroupVersionKind, NamespacedName
from ostinato.cache.own_writes.recorder import OwnDeletion, OwnWrite
from ostinato.controllers.current import Reconcile
from ostinato.controllers.reasons import Cause, Why
from ostinato.controllers.reports.metrics import ControllerStatistics
from ostinato.controllers.reports.observing import RunOutcome
from ostinato.page.reporting.reporter import Reporter, Undelivered
from ostinato.page.reporting.reports import Ran, Received, Wrote, decode, decode_runs, decode_writes
from ostinato.world import Simulation

POD = GroupVersionKind("", "v1", "Pod")
KEY = NamespacedName("default", "a")
DONE = RunOutcome(result="success", seconds=0.25, waited=0.5)


def run(number: int = 1) -> Reconcile:
    why = Why(("Pod updated",), (Cause(POD, KEY, "7"),))
    return Reconcile(id=f"run-{number}", controller="pods", request=KEY, gvk=POD, why=why, attempt=1)


def runs(reports: Received) -> list[Ran]:
    return decode_runs(reports.runs)


def writes(reports: Received) -> list[Wrote]:
    """All of them: of runs, and of those that have not ended."""
    return [*reports.wrote, *(wrote for each in decode_writes(reports.runs) for wrote in each.writes)]


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
        reports = taken(reporter)
        assert reports is not None
        (run_,) = runs(reports)
        found = run_.reconcile()
        assert (found.controller, found.key, found.result, found.seconds) == ("pods", "default/a", "success", 0.25)
        assert [(each.ref.name, each.resource_version) for each in found.causes] == [("a", "7")]
        assert [each.resource_version for each in found.writes] == ["8", ""]
        assert [(each.run, each.is_removal) for each in writes(reports)] == [("run-1", False), ("run-1", True)]
        assert reports.wrote == []
        assert reporter.take() is None

    simulated(test)


def test_a_write_with_the_version_that_caused_the_run_changed_nothing() -> None:
    async def test(_: Simulation, reporter: Reporter) -> None:
        reporter.wrote(run(), OwnWrite.of(instance("Pod", "a", 7)))
        reporter.finished(run(), DONE)
        reports = taken(reporter)
        assert reports is not None
        assert (writes(reports), runs(reports)[0].reconcile().writes) == ([], [])

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
        reports = taken(reporter)
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
        reports = taken(reporter)
        assert reports is not None
        assert [each.is_removal for each in reports.wrote] == [False, True]

    simulated(test)


def test_a_write_is_reported_before_its_run_ends_and_once() -> None:
    async def test(_: Simulation, reporter: Reporter) -> None:
        reporter.wrote(run(), OwnWrite.of(instance("Pod", "a", 8)))
        before = taken(reporter)
        assert before is not None
        assert [each.resource_version for each in before.wrote] == ["8"]
        assert runs(before) == []
        assert taken(reporter) is None
        reporter.wrote(run(), OwnWrite.of(instance("Pod", "b", 9)))
        reporter.finished(run(), DONE)
        after = taken(reporter)
        assert after is not None
        assert [each.resource_version for each in writes(after)] == ["9"]
        assert [each.resource_version for each in runs(after)[0].reconcile().writes] == ["8", "9"]

    simulated(test)


def test_a_write_after_the_run_is_reported_too() -> None:
    async def test(_: Simulation, reporter: Reporter) -> None:
        reporter.finished(run(), DONE)
        reporter.wrote(run(), OwnWrite.of(instance("Pod", "a", 8)))
        reports = taken(reporter)
        assert reports is not None
        assert [each.run for each in reports.wrote] == ["run-1"]

    simulated(test)


def test_a_run_lists_its_first_writes_and_reports_all() -> None:
    async def test(_: Simulation, reporter: Reporter) -> None:
        found: list[Wrote] = []
        for number in range(200):
            reporter.wrote(run(), OwnWrite.of(instance("Pod", "a", 1_000 + number)))
            if number in (29, 129):
                reports = taken(reporter)
                assert reports is not None
                found += writes(reports)
        reporter.finished(run(), DONE)
        reports = taken(reporter)
        assert reports is not None
        found += writes(reports)
        assert [each.resource_version for each in found] == [str(1_000 + number) for number in range(200)]
        listed = runs(reports)[0].reconcile().writes
        assert [each.resource_version for each in listed] == [str(1_000 + number) for number in range(50)]

    simulated(test)


def test_writes_are_reported_without_the_run_that_exceeds_the_bound() -> None:
    async def test(_: Simulation, reporter: Reporter) -> None:
        for number in range(4_000):
            reporter.finished(run(number), DONE)
        late = run(5_000)
        reporter.wrote(late, OwnWrite.of(instance("Pod", "a", 8)))
        reporter.finished(late, DONE)
        reports = taken(reporter)
        assert reports is not None
        assert (reports.dropped, [each.run for each in reports.wrote]) == (1, ["run-5000"])

    simulated(test)


def test_a_failed_run_is_reported_with_its_error() -> None:
    async def test(_: Simulation, reporter: Reporter) -> None:
        text = "text " * 1_000
        error = RunOutcome(result="error", seconds=0.1, waited=0.2, error=f"half of a pair: \ud800 {text}")
        reporter.finished(run(), error)
        reporter.finished(run(2), RunOutcome(result="conflict", seconds=0.1, waited=0.2, error="conflict"))
        reporter.finished(run(3), DONE)
        reports = taken(reporter)
        assert reports is not None
        assert reports.failed == 2
        failed, conflict, done = (each.reconcile() for each in runs(reports))
        assert [each.has_failed for each in runs(reports)] == [True, True, False]
        assert (failed.result, failed.waited) == ("error", 0.2)
        assert failed.error is not None
        assert failed.error.startswith("half of a pair: ? text")
        assert len(failed.error) == 1_000
        assert (conflict.error, done.error) == ("conflict", None)

    simulated(test)


@pytest.mark.parametrize("key", ["text", 7, ("a", 1)])
def test_a_key_may_be_anything(key: Hashable) -> None:
    async def test(_: Simulation, reporter: Reporter) -> None:
        why = Why(("retry",), None, (Cause(POD, KEY, "7"),))
        reporter.finished(
            Reconcile(id="1", controller="c", request=key, gvk=None, why=why, attempt=2, explanations=["because"]), DONE
        )
        reports = taken(reporter)
        assert reports is not None
        found = runs(reports)[0].reconcile()
        assert (found.key, found.reasons, found.explanations) == (str(key), ["retry"], ["because"])
        assert [each.ref.name for each in found.causes] == ["a"]

    simulated(test)


def test_text_that_is_not_valid_costs_only_its_run() -> None:
    async def test(_: Simulation, reporter: Reporter) -> None:
        reporter.finished(run(), DONE)
        why = Why(("\ud800",), None)
        reporter.finished(Reconcile(id="2", controller="c", request=KEY, gvk=None, why=why, attempt=1), DONE)
        reports = taken(reporter)
        assert reports is not None
        assert (len(runs(reports)), reports.dropped) == (1, 1)
        reporter.finished(run(3), DONE)
        reports = taken(reporter)
        assert reports is not None
        assert (len(runs(reports)), reports.dropped) == (1, 0)

    simulated(test)


def test_what_exceeds_the_bound_is_counted() -> None:
    async def test(_: Simulation, reporter: Reporter) -> None:
        for number in range(5_000):
            reporter.finished(run(number), DONE)
        reports = taken(reporter)
        assert reports is not None
        assert len(runs(reports)) + reports.dropped == 5_000
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
        reports = taken(reporter)
        assert reports is not None
        (stats,) = reports.controllers
        assert (stats.depth, stats.workers, stats.busy, stats.oldest, stats.rate) == (1, 4, 4, 5.0, 0.2)
        assert stats.reason == "1 keys wait, default/a for 5 s: all workers are busy, and a reconcile takes 1.5 s"
        reporter.finished(run(), DONE)
        again = taken(reporter)
        assert again is not None
        assert again.controllers == []

    simulated(test)


def test_many_reports_are_delivered_less_often() -> None:
    async def test(world: Simulation, reporter: Reporter) -> None:
        received: list[tuple[float, int]] = []
        began = world.clock.monotonic()

        async def deliver(body: bytes) -> bool:
            received.append((round(world.clock.monotonic() - began, 2), len(runs(decode(body)))))
            return False

        task = asyncio.get_running_loop().create_task(reporter.run(deliver))
        for number in range(500):
            reporter.finished(run(number), DONE)
            await world.clock.sleep(0.0005)
        await world.clock.sleep(1)
        task.cancel()
        times = [at for at, _ in received]
        assert times[:2] == [0.15, 0.5]  # 0.35 seconds after a batch of about 300
        assert sum(count for _, count in received) == 500

    simulated(test)


def test_a_lost_page_costs_reports_and_a_new_one_learns_the_watched_kinds() -> None:
    async def test(world: Simulation, reporter: Reporter) -> None:
        received: list[Received] = []
        answers = iter([True, Undelivered(), True, False, False])

        async def deliver(body: bytes) -> bool:
            answer = next(answers, False)
            if isinstance(answer, Undelivered):
                raise answer
            received.append(decode(body))
            return answer

        reporter.watches("pods", POD, primary=True)
        task = asyncio.get_running_loop().create_task(reporter.run(deliver))
        for number in range(4):
            reporter.finished(run(number), DONE)
            await world.clock.sleep(0.2)
        task.cancel()
        assert [len(each.watches) for each in received] == [1, 1, 1, 0]
        assert [each.dropped for each in received] == [0, 1, 0, 0]
        assert [run.name().id for each in received for run in runs(each)] == ["run-0", "run-2", "run-3"]

    simulated(test)
