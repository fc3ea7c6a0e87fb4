"""Fair queues: who is next, by what each has used."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from ostinato.server.flow.fair_queue import FairQueue, Line


def _served(queue: FairQueue[str], number: int, cost: float = 1.0) -> list[str]:
    found = []
    for _ in range(number):
        line, work = queue.pop()
        queue.charge(line, cost)
        found.append(work)
    return found


def _filled(queue: FairQueue[str], line: Line[str], name: str, number: int) -> None:
    for _ in range(number):
        queue.push(line, name)


def test_work_of_one_line_is_served_in_order() -> None:
    queue: FairQueue[str] = FairQueue()
    line = queue.line("level", 1, "a")
    for name in ("1", "2", "3"):
        queue.push(line, name)
    assert _served(queue, 3) == ["1", "2", "3"]
    assert not queue


def test_lines_of_a_class_take_turns_however_much_each_has_queued() -> None:
    queue: FairQueue[str] = FairQueue()
    _filled(queue, queue.line("level", 1, "flood"), "flood", 1000)
    _filled(queue, queue.line("level", 1, "other"), "other", 10)
    assert Counter(_served(queue, 20)) == {"flood": 10, "other": 10}


def test_a_line_that_was_idle_is_next_after_at_most_one() -> None:
    queue: FairQueue[str] = FairQueue()
    _filled(queue, queue.line("level", 1, "flood"), "flood", 1000)
    _served(queue, 500)
    queue.push(queue.line("level", 1, "other"), "other")
    assert "other" in _served(queue, 2)


def test_time_that_was_not_asked_for_is_not_saved_up() -> None:
    queue: FairQueue[str] = FairQueue()
    flood, other = queue.line("level", 1, "flood"), queue.line("level", 1, "other")
    _filled(queue, flood, "flood", 2000)
    _served(queue, 1000)
    _filled(queue, other, "other", 1000)
    assert Counter(_served(queue, 100)) == {"flood": 50, "other": 50}


def test_what_was_used_while_nobody_waited_does_not_count_later() -> None:
    queue: FairQueue[str] = FairQueue()
    early, late = queue.line("level", 1, "early"), queue.line("level", 1, "late")
    for _ in range(1000):
        queue.charge(early, 1.0)
    _filled(queue, early, "early", 100)
    _filled(queue, late, "late", 100)
    assert 49 <= Counter(_served(queue, 100))["early"] <= 51


def test_costly_work_counts_by_its_cost() -> None:
    queue: FairQueue[str] = FairQueue()
    costly, cheap = queue.line("level", 1, "costly"), queue.line("level", 1, "cheap")
    _filled(queue, costly, "costly", 1000)
    _filled(queue, cheap, "cheap", 1000)
    served: Counter[str] = Counter()
    for _ in range(220):
        line, work = queue.pop()
        queue.charge(line, 10.0 if work == "costly" else 1.0)
        served[work] += 1
    assert served == {"costly": 20, "cheap": 200}


def test_classes_share_in_proportion_to_their_shares() -> None:
    queue: FairQueue[str] = FairQueue()
    for number in range(10):  # many flows of a class get no more than one
        _filled(queue, queue.line("low", 10, number), "low", 1000)
    _filled(queue, queue.line("high", 30, "x"), "high", 1000)
    served = Counter(_served(queue, 400))
    assert 295 <= served["high"] <= 305


def test_a_line_with_work_waiting_is_not_ahead_of_itself() -> None:
    queue: FairQueue[str] = FairQueue()
    line = queue.line("level", 1, "a")
    assert queue.is_first(line)
    queue.push(line, "1")
    assert not queue.is_first(line)
    assert queue.holds_only(line)
    assert not queue.holds_only(queue.line("level", 1, "b"))


def test_lines_that_nobody_uses_are_dropped_when_there_are_many() -> None:
    queue: FairQueue[str] = FairQueue()
    for number in range(10_000):
        queue.line("level", 1, number)
    belongs = queue.line("level", 1, "one more").belongs
    assert len(belongs.lines) <= 4096


@given(st.lists(st.tuples(st.integers(0, 4), st.floats(0.1, 10.0)), min_size=1, max_size=200))
def test_no_line_gets_more_than_another_that_waits_by_more_than_one_piece_of_work(
    work: list[tuple[int, float]],
) -> None:
    queue: FairQueue[float] = FairQueue()
    for flow, cost in work:
        queue.push(queue.line("level", 1, flow), cost)
    used: dict[object, float] = {flow: 0.0 for flow, _ in work}
    largest = max(cost for _, cost in work)
    while queue:
        line, cost = queue.pop()
        queue.charge(line, cost)
        used[line.flow] += cost
        waiting = [flow for flow in used if queue.line("level", 1, flow).waiting]
        for flow in waiting:
            assert used[line.flow] - used[flow] <= 2 * largest + 1e-6
