"""Exploration: what fails is found, shrunk and replayed; what survives is not accused."""

from __future__ import annotations

import pytest
from tests.unit.testing.explore.operators import Pond, careful, forgetful, pond
from tests.unit.testing.explore.restless import restless

from ostinato import BlockingContext, Result, controller
from ostinato.server.store.records import Write
from ostinato.testing.explore import Unsurvived, create, delete, edit, explore
from ostinato.testing.explore.api import Options, run, subject_of
from ostinato.testing.explore.explorer import Explorer
from ostinato.testing.explore.plan import Fault, Plan
from ostinato.testing.explore.points import Point
from ostinato.testing.explore.world.objects import KnownObjects
from ostinato.testing.explore.world.state import normalized

SCENARIO = (create(pond()), edit(pond(), size=2), delete(pond()))


def explorer_of(operator: object) -> Explorer:
    explorer = Explorer(subject_of(operator, SCENARIO, Options()))
    assert explorer.prepare().problems == []
    return explorer


def test_a_crash_between_two_writes_is_found_and_told() -> None:
    with pytest.raises(Unsurvived) as failure:
        explore(forgetful, scenario=SCENARIO, worlds=20)
    text = str(failure.value)
    assert "ConfigMap default/a-two: missing" in text
    assert "crash-after @ create configmaps default/a #1" in text
    assert "process is killed" in text
    assert "def test_forgetful_survives_crash_after" in text
    assert "2. edit" not in text  # the scenario is shortened to its first step


def test_the_repaired_operator_survives_every_fault() -> None:
    found = explore(careful, scenario=SCENARIO, worlds=60)
    assert found.worlds == 60
    assert found.failed is None


def test_a_world_is_replayed_exactly() -> None:
    explorer = explorer_of(careful)
    lag = "lag @ event MODIFIED ponds.explored.dev default/a #1"
    plan = Plan.parse(f"7~: early-step @ apply configmaps default/a #1; {lag}")
    first, again = explorer.world(plan), explorer.world(plan)
    assert len(first.dealt) == 2
    assert first.trace == again.trace
    assert first.record.entries == again.record.entries


def test_another_seed_is_another_run() -> None:
    explorer = explorer_of(careful)
    assert explorer.world(Plan.parse("7~")).trace != explorer.world(Plan.parse("8~")).trace


def test_several_faults_are_shrunk_to_the_one_that_matters() -> None:
    plan = (
        "5~: touched @ create configmaps default/a #1; crash-after @ create configmaps default/a #1; "
        "watch-cut @ event ADDED ponds.explored.dev default/a #1"
    )
    found = run(forgetful, SCENARIO, Options(), plan)
    assert found.failed is not None
    assert [str(each) for each in found.failed.outcome.plan.faults] == ["crash-after @ create configmaps default/a #1"]
    assert not found.failed.outcome.plan.interleaved


def test_the_pasted_test_fails_as_the_world_did() -> None:
    found = run(forgetful, SCENARIO, Options(worlds=20))
    assert found.failed is not None
    again = run(forgetful, found.failed.scenario, Options(), str(found.failed.outcome.plan))
    assert again.failed is not None
    assert again.failed.outcome.problems == found.failed.outcome.problems


def test_an_operator_that_never_comes_to_rest_fails_without_any_fault() -> None:
    found = run(restless, (create(pond()),), Options())
    assert found.failed is not None
    assert {each.oracle for each in found.failed.outcome.problems} == {"quiet"}


def test_unknown_faults_are_refused_with_the_known_ones() -> None:
    with pytest.raises(ValueError, match="fault 'rain' does not exist; choose from crash-after"):
        explore(careful, scenario=SCENARIO, only=["rain"])


def test_an_empty_scenario_is_refused() -> None:
    with pytest.raises(ValueError, match="scenario is empty"):
        explore(careful, scenario=[])


def test_a_plan_is_read_as_it_is_written() -> None:
    plan = Plan(3, (Fault("lag", Point.parse("event ADDED pods default/a #2")),), interleaved=True)
    assert str(plan) == "3~: lag @ event ADDED pods default/a #2"
    assert Plan.parse(str(plan)) == plan
    assert Plan.parse("12") == Plan(12)


@pytest.mark.parametrize("text", ["", "x", "1: crash", "1: crash-after @ create pods a"])
def test_a_malformed_plan_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"world|fault|point"):
        Plan.parse(text)


def test_bookmarks_arrive_while_an_event_is_late() -> None:
    explorer = explorer_of(careful)
    outcome = explorer.world(Plan.parse("1: bookmarks-only @ event MODIFIED ponds.explored.dev default/a #2"))
    assert outcome.problems == []
    assert len(outcome.dealt) == 1
    (fault,) = [each.time for each in outcome.record.entries if each.action == "fault"]
    seen = [each.time for each in outcome.record.entries if each.what == "MODIFIED ponds.explored.dev default/a"]
    assert min(time - fault for time in seen if time > fault) == pytest.approx(10.0)


def test_crashes_that_leave_the_same_objects_behind_are_one_world() -> None:
    explorer = Explorer(subject_of(careful, (*SCENARIO, create(pond())), Options()), only=["crash-before", "restart"])
    assert explorer.prepare().problems == []
    crashes = [each for each in explorer.worlds(12) if len(each.plan.faults) == 1]
    states = [visit.state for each in crashes for visit in each.visits if visit.point == each.plan.faults[0].at]
    assert len(states) == len(set(states)) == len(crashes) > 10
    assert all(each.dealt for each in crashes)


def test_the_state_of_objects_ignores_what_differs_between_runs() -> None:
    first, second = KnownObjects({}, ()), KnownObjects({}, ())
    data = b'{"metadata":{"name":"a","uid":"%s","resourceVersion":"%s"},"data":{"size":"%s"}}'
    first.written(Write("configmaps", "default/a", 7, data % (b"1", b"7", b"1")))
    second.written(Write("configmaps", "default/a", 8, data % (b"2", b"8", b"1")))
    assert first.state == second.state
    second.written(Write("configmaps", "default/a", 9, data % (b"2", b"9", b"2")))
    assert first.state != second.state
    for objects in (first, second):
        objects.written(Write("configmaps", "default/a", 10, None))
    assert first.state == second.state == 0


class Cloud:
    """An external system that blocks."""

    def __init__(self) -> None:
        self.sizes: dict[str, int] = {}

    def put(self, name: str, size: int) -> None:
        self.sizes[name] = size

    def size_of(self, name: str) -> int:
        return self.sizes.get(name, 0)


def periodic(cloud: Cloud) -> list[object]:
    @controller(Pond, name="periodic")
    def periodic(parent: Pond, ctx: BlockingContext) -> Result:
        if cloud.size_of(parent.metadata.name) != parent.spec.size:
            cloud.put(parent.metadata.name, parent.spec.size)
        return Result(requeue_after=3.0)

    return [periodic]


def test_calls_that_change_nothing_do_not_keep_a_world_from_settling() -> None:
    explore(periodic, scenario=SCENARIO[:2], external={"cloud": Cloud}, worlds=1)


def test_a_crash_in_a_blocking_call_of_an_external_system_is_survived() -> None:
    found = explore(
        periodic, scenario=SCENARIO[:2], external={"cloud": Cloud}, replay="1: crash-after @ external cloud.put a #1"
    )
    assert "1 faults dealt" in found.coverage[1]


def test_the_order_of_conditions_does_not_matter() -> None:
    conditions = [{"type": "Progressing", "status": "True"}, {"type": "Available", "status": "True"}]
    value = {
        "metadata": {"name": "a"},
        "status": {"conditions": conditions},
        "spec": {"types": [{"type": "b"}, {"type": "a"}]},
    }
    other = {**value, "status": {"conditions": conditions[::-1]}}
    assert normalized(value, {}) == normalized(other, {})
    assert normalized(value, {})["spec"] == value["spec"]


def test_a_world_has_not_settled_before_another_replica_leads() -> None:
    """The leader dies when nothing is left to do: the next one reconciles everything when the lease has ended."""
    explorer = explorer_of(careful)
    pause = "pause @ apply configmaps default/a #99"  # is not reached; its world has two replicas
    outcome = explorer.world(Plan.parse(f"1: {pause}; crash-before @ event DELETED configmaps default/a #1"))
    assert [each.kind for each in outcome.dealt] == ["crash-before"]
    assert outcome.problems == []
    ends = [each.time for each in outcome.record.entries if each.action == "end"]
    settled = [each.time for each in outcome.record.entries if each.action == "settled"]
    assert settled[-1] - ends[0] > 15
