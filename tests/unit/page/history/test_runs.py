"""The ring of runs, and what the page records of received reports."""

from __future__ import annotations

from tests.unit.page.objects import ran

from ostinato.api.gvk import GroupVersionKind, NamespacedName
from ostinato.controllers.current import Reconcile
from ostinato.controllers.reasons import Why
from ostinato.controllers.reports.observing import Placement, RunOutcome
from ostinato.page.history.history import History
from ostinato.page.history.runs import Runs
from ostinato.page.reporting.reporter import Reporter
from ostinato.world import Simulation

POD = GroupVersionKind("", "v1", "Pod")


def run(number: int, key: str = "a") -> Reconcile:
    request = NamespacedName("default", key)
    return Reconcile(id=f"run-{number}", controller="pods", request=request, gvk=POD, why=Why((), ()), attempt=1)


def test_a_run_is_found_by_its_id_and_by_the_run_after_it() -> None:
    runs = Runs()
    runs.add(ran((1.0, run(1)), (1.1, run(2, "b"))))
    assert runs.get("run-1") is not None  # later runs are found too
    runs.add(ran((2.0, run(3))))
    last = runs.get("run-3")
    assert last is not None
    before = runs.before(last)
    assert before is not None
    assert before.id == "run-1"
    assert runs.before(before) is None
    assert runs.get("run-4") is None


def test_new_runs_are_those_after_a_number() -> None:
    runs = Runs()
    for number in range(5):
        runs.add(ran((number, run(2 * number)), (number + 0.5, run(2 * number + 1))))
    assert [each.name().id for each in runs.after(7)] == ["run-7", "run-8", "run-9"]
    assert [each.name().id for each in runs.after(8)] == ["run-8", "run-9"]
    assert runs.after(10) == []
    assert len(runs.after(0)) == runs.added == len(runs) == 10
    assert [each.name().id for each in runs.between(1.5, 2.5)] == ["run-3", "run-4"]


def test_of_many_new_runs_failed_ones_are_chosen_before_the_newest() -> None:
    runs = Runs()
    runs.add(ran((0.0, run(0)), (0.5, run(1)), result="error"))
    runs.add(ran((1.0, run(2)), (1.5, run(3))))
    runs.add(ran((2.0, run(4)), (2.5, run(5)), (3.0, run(6))))

    def newest(added: int, most: int) -> list[str]:
        return [each.name().id for each in runs.newest(added, most)]

    assert newest(0, 10) == [f"run-{number}" for number in range(7)]
    assert newest(0, 4) == ["run-0", "run-1", "run-5", "run-6"]
    assert newest(1, 3) == ["run-1", "run-5", "run-6"]
    assert newest(0, 1) == ["run-1"]
    assert newest(3, 4) == ["run-3", "run-4", "run-5", "run-6"]
    assert newest(7, 4) == []


def test_old_runs_are_dropped() -> None:
    runs = Runs(max_age=10.0)
    runs.add(ran((1.0, run(1))))
    assert runs.get("run-1") is not None
    runs.add(ran((5.0, run(2))))
    runs.expire(11.5)
    assert (len(runs), runs.get("run-1"), [each.at for each in runs.after(0)]) == (1, None, [5.0])
    found = runs.get("run-2")
    assert found is not None
    assert runs.before(found) is None
    runs.expire(16.0)
    assert (len(runs), runs.size) == (0, 0)


def test_runs_are_bounded_in_bytes() -> None:
    runs = Runs(max_bytes=20_000)
    for number in range(1_000):
        runs.add(ran((float(number), run(number))))
        assert runs.size <= 20_000
    assert 10 < len(runs) < 100
    assert runs.get("run-999") is not None
    assert runs.get("run-1") is None


def test_a_key_that_failed_is_named_until_it_succeeds() -> None:
    world = Simulation(seed=1)
    history, reporter = History(world.clock), Reporter("test", world.clock)

    def receive() -> bool:
        batch = reporter.take()
        assert batch is not None
        history.receive(batch.body)
        return history.alarms.has_failing

    async def main() -> None:
        reporter.finished(run(1), RunOutcome(result="error", seconds=0.1, waited=0.0, error="refused"))
        reporter.finished(run(2, "b"), RunOutcome(result="success", seconds=0.1, waited=0.0))
        assert receive()
        reporter.finished(run(3), RunOutcome(result="success", seconds=0.1, waited=0.0))
        assert not receive()

    world.run(main())


def test_the_last_decisions_on_a_pod_are_kept() -> None:
    world = Simulation(seed=1)
    history, reporter = History(world.clock), Reporter("test", world.clock)

    async def main() -> None:
        for number in range(12):
            pod = NamespacedName("default", "a")
            reporter.placed(run(number), Placement(pod=pod, uid="uid", message=f"try {number}", counts={"full": 3}))
            batch = reporter.take()
            assert batch is not None
            history.receive(batch.body)
        found = [each.placement for each in history.placements.of("uid")]
        assert [each.message for each in found] == [f"try {number}" for number in range(2, 12)]
        assert found[0].counts == {"full": 3}
        assert history.placements.of("other") == []

    world.run(main())
