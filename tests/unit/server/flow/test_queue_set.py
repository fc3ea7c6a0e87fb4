"""Seats and queues of a priority level, in virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ostinato.server.flow.allocation import Item, allocate
from ostinato.server.flow.demand import Integrator
from ostinato.server.flow.estimate import Estimate
from ostinato.server.flow.flow import Count, Flow
from ostinato.server.flow.levels import Level, Levels
from ostinato.server.flow.queue_set import QueueSet, SeatedRequest
from ostinato.server.flow.retry_after import RejectionHistory
from ostinato.server.flow.schemas import FlowSchema
from ostinato.server.flow.shards import deal, flow_hash
from ostinato.server.flow.turns import Turns
from ostinato.world import Simulation

ONE = Estimate()


def in_virtual_time(test: Callable[[Simulation], Coroutine[Any, Any, None]]) -> Callable[[], None]:
    def run() -> None:
        simulation = Simulation(seed=1)
        simulation.run(test(simulation))

    run.__name__ = test.__name__
    return run


def _level(name: str, shares: int, queues: int = 0, **more: Any) -> dict[str, Any]:
    response: dict[str, Any] = {"type": "Reject"}
    if queues:
        response = {"type": "Queue", "queuing": {"queues": queues, "handSize": 1, "queueLengthLimit": 50}}
    limited = {"nominalConcurrencyShares": shares, "limitResponse": response, **more}
    return {"metadata": {"name": name}, "spec": {"type": "Limited", "limited": limited}}


def _flow(world: Simulation, name: str, hand: list[int]) -> Flow:
    schema = FlowSchema({"metadata": {"name": name}, "spec": {"priorityLevelConfiguration": {"name": "level"}}})
    level = Level(_level("level", 1), world.clock)
    line = Turns(world.clock.monotonic).queue.line("level", 1, name)
    return Flow(schema, level, name, hand, line, Count())


def _set(world: Simulation, limit: int, queues: int = 8, length_limit: int = 50) -> QueueSet:
    made = QueueSet(world.clock)
    made.configure(exempt=False, limit=limit, queues=queues, length_limit=length_limit)
    return made


def _start(made: QueueSet, flow: Flow, estimate: Estimate = ONE) -> SeatedRequest:
    seated = made.start(flow, estimate)
    assert seated is not None
    return seated


@in_virtual_time
async def test_who_finds_no_seat_waits_until_one_is_free(world: Simulation) -> None:
    made = _set(world, 2)
    flow = _flow(world, "a", [0])
    first, second, third = (_start(made, flow) for _ in range(3))
    assert (first.gate, second.gate) == (None, None)
    assert third.gate is not None
    assert not third.gate.done()
    made.finish(first)
    assert third.gate.done()
    assert made.seats == 2
    made.finish(second)
    made.finish(third)
    assert made.idle
    assert made.seats == 0


@in_virtual_time
async def test_a_full_queue_refuses_and_so_does_a_level_without_queues(world: Simulation) -> None:
    made = _set(world, 1, length_limit=2)
    flow = _flow(world, "a", [0])
    for _ in range(3):
        _start(made, flow)
    assert made.start(flow, ONE) is None
    assert flow.count.rejected == {"queue-full": 1}
    made = _set(world, 1, queues=0)
    flow = _flow(world, "a", [])
    _start(made, flow)
    assert made.start(flow, ONE) is None
    assert flow.count.rejected == {"concurrency-limit": 1}


@in_virtual_time
async def test_a_flow_with_one_request_goes_before_most_of_a_flow_with_many(world: Simulation) -> None:
    made = _set(world, 1)
    flood, other = _flow(world, "flood", [0]), _flow(world, "other", [1])
    running = _start(made, flood)
    waiting = [_start(made, flood) for _ in range(40)]
    other.line.seated += 1  # it has another request under way
    late = _start(made, other)
    served = 0
    while late.started < 0:
        await world.clock.sleep(0.003)
        made.finish(running)
        running = next(
            each for each in [*waiting, late] if each.started >= 0 and each is not running and each in made.seated
        )
        served += 1
    assert served <= 2


@in_virtual_time
async def test_two_flows_that_always_want_more_get_the_same(world: Simulation) -> None:
    made = _set(world, 4)
    flows = [_flow(world, "a", [0]), _flow(world, "b", [1])]
    done = {"a": 0, "b": 0}

    async def worker(flow: Flow, seconds: float) -> None:
        while world.clock.monotonic() < end:
            seated = _start(made, flow)
            if seated.gate is not None:
                await seated.gate
            await world.clock.sleep(seconds)
            made.finish(seated)
            done[flow.distinguisher] += 1

    end = world.clock.monotonic() + 2.0
    await asyncio.gather(
        *(worker(flows[0], 0.01) for _ in range(40)),
        *(worker(flows[1], 0.01) for _ in range(5)),
    )
    assert abs(done["a"] - done["b"]) <= 0.25 * done["a"]


@in_virtual_time
async def test_a_flow_without_a_seat_gets_one_though_all_are_taken_by_others(world: Simulation) -> None:
    made = _set(world, 4)
    flood = _flow(world, "flood", [0])
    for _ in range(10):
        _start(made, flood)
    assert (made.seats, made.waiting) == (4, 6)
    others = [_flow(world, f"other-{number}", [1]) for number in range(8)]
    first = [_start(made, flow) for flow in others]
    assert [each.started >= 0 for each in first] == [True] * 4 + [False] * 4  # up to twice the limit
    second = _start(made, others[0])
    assert second.started < 0
    assert not made.take_one(others[0], world.clock.monotonic())


@in_virtual_time
async def test_a_wide_request_is_not_starved_by_narrow_ones(world: Simulation) -> None:
    made = _set(world, 4)
    narrow, wide = _flow(world, "narrow", [0]), _flow(world, "wide", [1])
    running = [_start(made, narrow) for _ in range(4)]
    wide.line.seated += 1  # it has another request under way
    waits = _start(made, wide, Estimate(3))
    later = [_start(made, narrow) for _ in range(4)]
    for each in running:
        await world.clock.sleep(0.003)
        made.finish(each)
    assert waits.started >= 0 or any(each.started >= 0 for each in later)
    for _ in range(4):
        await world.clock.sleep(0.003)
        for each in [*made.seated]:
            if each is not waits:
                made.finish(each)
    assert waits.started >= 0


@in_virtual_time
async def test_more_seats_than_there_are_are_given_to_one_that_is_alone(world: Simulation) -> None:
    made = _set(world, 2)
    seated = _start(made, _flow(world, "a", [0]), Estimate(10))
    assert seated.started >= 0


@in_virtual_time
async def test_seats_for_watchers_are_taken_for_a_while_after_the_end(world: Simulation) -> None:
    made = _set(world, 10)
    seated = _start(made, _flow(world, "a", [0]), Estimate(1, 5, 0.02))
    made.finish(seated)
    assert made.seats == 5
    assert made.idle
    await world.clock.sleep(0.03)
    assert made.seats == 0


@in_virtual_time
async def test_one_that_goes_away_leaves_its_place(world: Simulation) -> None:
    made = _set(world, 1)
    flow = _flow(world, "a", [0])
    first, second, third = (_start(made, flow) for _ in range(3))
    made.leave(second, timed_out=True)
    made.finish(first)
    assert third.started >= 0
    assert (made.timed_out, made.waiting, made.waiting_seats) == (1, 0, 0)


@in_virtual_time
async def test_the_exempt_level_is_never_limited(world: Simulation) -> None:
    made = QueueSet(world.clock)
    made.configure(exempt=True, limit=0, queues=0, length_limit=0)
    flow = _flow(world, "a", [])
    assert all(made.start(flow, Estimate(10)) is not None for _ in range(1000))
    assert made.take_one(flow, world.clock.monotonic())


@in_virtual_time
async def test_one_seat_that_is_free_is_taken_without_a_queue_and_given_back(world: Simulation) -> None:
    made = _set(world, 1)
    flow = _flow(world, "a", [0])
    assert made.take_one(flow, world.clock.monotonic())
    assert not made.take_one(flow, world.clock.monotonic())
    waits = _start(made, flow)
    assert waits.started < 0
    made.give_one(flow)
    assert waits.started >= 0


@in_virtual_time
async def test_a_level_that_is_asked_for_more_borrows_what_others_do_not_use(world: Simulation) -> None:
    levels = Levels(world.clock, 100)
    levels.read([_level("busy", 50, 8), _level("idle", 50, 8, lendablePercent=80)], {})
    busy, idle = levels.by_name["busy"], levels.by_name["idle"]
    assert (busy.nominal, idle.nominal, idle.least) == (50, 50, 10)
    flow = _flow(world, "a", [0])
    for _ in range(90):
        busy.set.start(flow, ONE)
    await world.clock.sleep(10)
    levels.borrow()
    assert busy.current > 75
    assert idle.current >= 10
    assert busy.current + idle.current in (99, 100, 101)
    assert busy.set.limit == busy.current


@in_virtual_time
async def test_a_level_never_borrows_more_than_it_may(world: Simulation) -> None:
    levels = Levels(world.clock, 100)
    levels.read([_level("busy", 50, 8, borrowingLimitPercent=10), _level("idle", 50, 8, lendablePercent=80)], {})
    flow = _flow(world, "a", [0])
    for _ in range(90):
        levels.by_name["busy"].set.start(flow, ONE)
    await world.clock.sleep(10)
    levels.borrow()
    assert levels.by_name["busy"].current == 55


@in_virtual_time
async def test_a_level_that_is_gone_ends_when_its_last_request_has(world: Simulation) -> None:
    levels = Levels(world.clock, 100)
    levels.read([_level("a", 50, 8)], {})
    level = levels.by_name["a"]
    seated = _start(level.set, _flow(world, "a", [0]))
    levels.read([], {})
    assert level.removed
    assert "a" in levels.by_name
    level.set.finish(seated)
    levels.read([], {})
    assert "a" not in levels.by_name


@given(st.integers(0, (1 << 64) - 1), st.integers(1, 128), st.integers(1, 10))
def test_a_hand_has_different_cards_of_the_deck(number: int, deck: int, hand: int) -> None:
    hand = min(hand, deck)
    cards = deal(number, deck, hand)
    assert len(set(cards)) == hand
    assert all(0 <= card < deck for card in cards)


def test_hands_are_those_that_a_kube_apiserver_deals() -> None:
    assert deal(0, 128, 4) == [0, 1, 2, 3]
    assert deal(128 * 127 * 126 * 125 - 1, 128, 4) == [127, 126, 125, 124]
    assert flow_hash("service-accounts", "a") != flow_hash("service-accounts", "b")


@given(
    st.lists(st.tuples(st.floats(0, 50), st.floats(0, 100), st.floats(0, 200)), min_size=1, max_size=8), st.floats(0, 1)
)
def test_seats_are_divided_within_bounds_and_none_is_left(raw: list[tuple[float, float, float]], part: float) -> None:
    items = [Item(low, low + more, max(low, target)) for low, more, target in raw]
    low, high = sum(item.low for item in items), sum(item.high for item in items)
    total = low + (high - low) * part
    given_, proportion = allocate(total, items)
    assert sum(given_) == pytest.approx(total, abs=1e-3)
    for item, seats in zip(items, given_, strict=True):
        assert item.low - 1e-6 <= seats <= item.high + 1e-6
        if item.low + 1e-3 < seats < item.high - 1e-3:
            assert seats == pytest.approx(proportion * max(item.target, 0.001), abs=1e-2)


def test_bounds_that_leave_no_way_are_an_error() -> None:
    with pytest.raises(ValueError, match="lower bounds"):
        allocate(1, [Item(2, 3, 2)])
    with pytest.raises(ValueError, match="upper bounds"):
        allocate(10, [Item(2, 3, 2)])


def test_an_integrator_weighs_values_by_how_long_they_were_there() -> None:
    number = Integrator(0.0)
    number.set(10, 0.0)
    number.set(0, 1.0)
    average, deviation, highest = number.reset(4.0)
    assert average == pytest.approx(2.5)
    assert deviation == pytest.approx((100 / 4 - 2.5**2) ** 0.5)
    assert highest == 10
    assert number.reset(5.0) == (0.0, 0.0, 0.0)


def test_those_who_are_refused_are_told_to_wait_longer_if_there_are_many() -> None:
    rejections = RejectionHistory()
    told = []
    for second in range(100, 140):
        for _ in range(100):
            rejections.add(second)
        told.append(rejections.seconds)
    assert told[0] == 1
    assert max(told) == 32
    for second in range(140, 1000, 10):
        rejections.add(second)
    assert rejections.seconds == 1
