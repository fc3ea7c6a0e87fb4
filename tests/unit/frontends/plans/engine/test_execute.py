"""One pass over a plan: strategies, errors and fatal errors, as KUDO's engine has them."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import pytest

from ostinato.api.time import Time
from ostinato.frontends.plans.api import Phase, Plan, PlanStatus, Step
from ostinato.frontends.plans.engine import states
from ostinato.frontends.plans.engine.execute import DONE, TaskResult, execute

NOW = Time(2026, 1, 1)
WAITING, ERROR, FATAL = TaskResult("waiting", "not yet"), TaskResult("error", "oops"), TaskResult("fatal", "no", "Bad")


def plan(strategy: str, phase_strategy: str) -> Plan:
    """Two phases of two steps, with a task each: a, b and c, d."""
    phases = [
        Phase(name=name, strategy=phase_strategy, steps=[Step(name=each, tasks=[each]) for each in tasks])
        for name, tasks in (("one", "ab"), ("two", "cd"))
    ]
    return Plan(strategy=strategy, phases=phases)


def run(wanted: Plan, results: Mapping[str, TaskResult], status: PlanStatus | None = None) -> tuple[str, PlanStatus]:
    """Make one pass; return the tasks that were tried, in order, and the status."""
    tried: list[str] = []
    if status is None:
        status = states.prepare({"deploy": wanted}, {})["deploy"]
        states.reset(status, "uid", NOW)

    async def task(_: Phase, __: Step, name: str) -> TaskResult:
        tried.append(name)
        return results.get(name, DONE)

    asyncio.run(execute(wanted, status, task, NOW))
    return "".join(tried), status


def shape(status: PlanStatus) -> str:
    """Return the states in one line: of the plan, and of each phase with its steps."""
    short = {"COMPLETE": "C", "IN_PROGRESS": "I", "PENDING": "P", "ERROR": "E", "FATAL_ERROR": "F", "CANCELLED": "X"}
    phases = [
        short[each.status] + "(" + "".join(short[step.status] for step in each.steps) + ")" for each in status.phases
    ]
    return " ".join([short[status.status], *phases])


@pytest.mark.parametrize(
    ("strategies", "results", "tried", "expected"),
    [
        (("serial", "serial"), {}, "abcd", "C C(CC) C(CC)"),
        (("serial", "serial"), {"a": WAITING}, "a", "I I(IP) P(PP)"),
        (("serial", "serial"), {"b": ERROR}, "ab", "I I(CE) P(PP)"),
        (("serial", "parallel"), {"a": WAITING}, "ab", "I I(IC) P(PP)"),
        (("parallel", "serial"), {"a": WAITING}, "acd", "I I(IP) C(CC)"),
        (("parallel", "parallel"), {"a": WAITING, "c": ERROR}, "abcd", "I I(IC) I(EC)"),
        (("", ""), {"a": WAITING}, "abcd", "I I(IC) C(CC)"),  # anything but serial is parallel
        (("parallel", "parallel"), {"a": FATAL}, "a", "F F(FP) P(PP)"),
        (("serial", "serial"), {"d": FATAL}, "abcd", "F C(CC) F(CF)"),
    ],
)
def test_strategies_decide_what_is_tried(
    strategies: tuple[str, str], results: dict[str, TaskResult], tried: str, expected: str
) -> None:
    found, status = run(plan(*strategies), results)
    assert (found, shape(status)) == (tried, expected)


def test_a_second_pass_tries_only_what_is_left() -> None:
    wanted = plan("serial", "serial")
    _, status = run(wanted, {"b": WAITING})
    tried, status = run(wanted, {}, status)
    assert (tried, shape(status)) == ("bcd", "C C(CC) C(CC)")


def test_a_step_with_an_error_among_its_tasks_runs_all_of_them_again() -> None:
    wanted = Plan(phases=[Phase(name="one", steps=[Step(name="both", tasks=["a", "b"])])])
    tried, status = run(wanted, {"a": ERROR})
    assert (tried, shape(status), status.phases[0].steps[0].message) == ("ab", "I I(E)", "oops")
    tried, status = run(wanted, {}, status)
    assert (tried, shape(status), status.phases[0].steps[0].message) == ("ab", "C C(C)", "")


def test_a_waiting_step_says_why_and_a_plan_without_phases_is_complete() -> None:
    _, status = run(plan("serial", "serial"), {"a": WAITING})
    assert status.phases[0].steps[0].message == "not yet"
    assert shape(run(Plan(), {})[1]) == "C"


def test_cancel_retry_and_skip_keep_what_is_complete() -> None:
    wanted = plan("serial", "serial")
    _, status = run(wanted, {"c": FATAL})
    assert states.skip(status, "two", "c") == ""
    states.resume(status, NOW)
    assert shape(status) == "P C(CC) P(CP)"
    tried, status = run(wanted, {"d": WAITING}, status)
    assert (tried, shape(status)) == ("d", "I C(CC) I(CI)")
    states.cancel(status, "enough", NOW)
    assert shape(status) == "X C(CC) X(CX)"
    assert run(wanted, {}, status)[0] == ""
    states.resume(status, NOW)
    assert shape(run(wanted, {}, status)[1]) == "C C(CC) C(CC)"
    assert "no step x" in states.skip(status, "", "x")


def test_an_upgraded_plan_keeps_the_states_of_known_steps_in_the_new_order() -> None:
    _, status = run(plan("serial", "serial"), {"b": WAITING})
    changed = Plan(phases=[Phase(name="new"), Phase(name="one", steps=[Step(name="z"), Step(name="a")])])
    found = states.prepare({"deploy": changed}, {"deploy": status, "gone": PlanStatus(name="gone")})
    assert [(each.name, each.status) for each in found["deploy"].phases] == [
        ("new", "NEVER_RUN"),
        ("one", "IN_PROGRESS"),
    ]
    assert [(each.name, each.status) for each in found["deploy"].phases[1].steps] == [
        ("z", "NEVER_RUN"),
        ("a", "COMPLETE"),
    ]
    assert "gone" in found
