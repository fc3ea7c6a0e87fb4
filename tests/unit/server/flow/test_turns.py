"""Turns on the event loop: one tenant's flood does not hold up another's request."""

from __future__ import annotations

import asyncio

import pytest

from ostinato.server.flow.turns import CALM_SECONDS, Turn, Turns


class Clock:
    """A clock that goes on only when somebody works."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


class RequestAttributes:
    def __init__(self, line: Turn | None) -> None:
        self.line = line


def _turns() -> tuple[Turns, Clock, Turn, Turn]:
    """Return turns with their clock and the lines of two flows."""
    clock = Clock()
    turns = Turns(clock, 0.001)
    return turns, clock, turns.queue.line("level", 1, "flood"), turns.queue.line("level", 1, "other")


def _contended_turns() -> tuple[Turns, Clock, Turn, Turn]:
    """Return the same after a request of each flow."""
    turns, clock, flood, other = _turns()
    turns.meet(flood)
    turns.meet(other)
    return turns, clock, flood, other


def test_a_request_waits_for_few_of_a_flood_that_is_queued_before_it() -> None:
    async def main() -> None:
        turns, clock, flood, other = _turns()
        served: list[str] = []

        def work(name: str) -> None:
            clock.now += 0.0004
            served.append(name)

        for _ in range(500):
            turns.wait(flood, lambda: work("flood"))
        await asyncio.sleep(0)
        assert 0 < len(served) < 10  # the loop gets to look for new requests
        turns.wait(other, lambda: work("other"))
        before = len(served)
        for _ in range(3):
            await asyncio.sleep(0)
        assert served.index("other") - before <= 1

    asyncio.run(main())


def test_one_that_is_ahead_of_all_who_wait_need_not_wait() -> None:
    async def main() -> None:
        turns, clock, flood, other = _turns()
        turns.charge(flood, 0.01)
        for _ in range(10):
            turns.wait(flood, lambda: None)
        assert turns.busy
        assert not turns.may_run(flood)
        assert turns.may_run(other)
        del clock

    asyncio.run(main())


def test_as_long_as_there_is_time_and_nobody_waits_work_runs_at_once() -> None:
    async def main() -> None:
        turns, _, flood, _ = _turns()
        turns.charge(flood, 0.0005)
        assert not turns.busy
        turns.charge(flood, 0.0005)
        assert turns.busy
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert not turns.busy

    asyncio.run(main())


def test_the_steps_of_a_long_coroutine_let_another_flow_pass() -> None:
    async def main() -> None:
        turns, clock, flood, other = _contended_turns()
        served: list[str] = []

        async def long(name: str) -> None:
            for _ in range(50):
                clock.now += 0.002
                served.append(name)
                await turns.pause()

        async def short() -> None:
            clock.now += 0.0001
            served.append("other")

        floods = [asyncio.ensure_future(_run(turns, long("flood"), flood)) for _ in range(20)]
        for _ in range(60):
            await asyncio.sleep(0)
        before = len(served)
        await _run(turns, short(), other)
        assert served.index("other") - before <= 4
        await asyncio.gather(*floods)
        assert served.count("flood") == 1000

    asyncio.run(main())


async def _run(turns: Turns, coroutine: object, line: Turn) -> None:
    await turns.steps(coroutine, RequestAttributes(line))  # type: ignore[arg-type]


def test_as_long_as_all_requests_are_of_one_flow_its_steps_do_not_wait() -> None:
    async def main() -> None:
        turns, clock, line, _ = _turns()
        turns.meet(line)
        served: list[int] = []

        async def send(number: int) -> None:
            clock.now += 0.002
            served.append(number)

        sends = [asyncio.ensure_future(_run(turns, send(number), line)) for number in range(20)]
        await asyncio.sleep(0)
        assert served == list(range(20))  # in one turn of the loop
        await asyncio.gather(*sends)

    asyncio.run(main())


def test_one_who_is_cancelled_while_waiting_takes_no_turn() -> None:
    async def main() -> None:
        turns, clock, flood, _ = _contended_turns()
        for _ in range(10):
            turns.wait(flood, lambda: setattr(clock, "now", clock.now + 0.01))
        ran: list[str] = []

        async def work() -> None:
            ran.append("work")

        other = turns.queue.line("level", 1, "third")
        turns.queue.charge(other, 1.0)
        task = asyncio.ensure_future(_run(turns, work(), other))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        for _ in range(20):
            await asyncio.sleep(0)
        assert not ran
        assert not turns.queue

    asyncio.run(main())


def test_errors_and_results_pass_through_steps() -> None:
    async def main() -> None:
        turns, _, flood, _ = _turns()

        async def answer() -> int:
            await asyncio.sleep(0)
            return 7

        async def fails() -> int:
            await asyncio.sleep(0)
            raise ValueError("no")

        assert await turns.steps(answer(), RequestAttributes(flood)) == 7
        with pytest.raises(ValueError, match="no"):
            await turns.steps(fails(), RequestAttributes(None))

    asyncio.run(main())


def test_in_virtual_time_nothing_ever_waits() -> None:
    async def main() -> None:
        turns, _, flood, _ = _turns()
        for _ in range(1000):
            turns.charge(flood, 0.0)
        assert not turns.busy

    asyncio.run(main())


def test_requests_of_one_flow_do_not_contend() -> None:
    turns, _, flood, _ = _turns()
    turns.meet(flood)
    assert not turns.contended


def test_flows_contend_until_only_one_of_them_has_come_for_some_time() -> None:
    turns, clock, flood, other = _turns()
    turns.meet(flood)
    turns.meet(other)
    turns.meet(flood)
    clock.now += CALM_SECONDS - 1
    assert turns.contended
    assert turns.is_contended()
    clock.now += 1
    assert not turns.is_contended()
    assert not turns.contended


def test_a_request_whose_flow_is_unknown_contends_with_the_others() -> None:
    turns, _, flood, _ = _turns()
    turns.meet(flood)
    turns.meet(None)
    assert turns.contended


def test_flows_of_an_exempt_level_contend_with_others_but_not_with_each_other() -> None:
    turns, _, flood, _ = _turns()
    probe, administrator = (turns.queue.line("exempt", 100, name, exempt=True) for name in ("probe", "administrator"))
    turns.meet(probe)
    turns.meet(administrator)
    assert not turns.contended
    turns.meet(flood)
    assert turns.contended


def test_flows_contend_as_long_as_work_waits() -> None:
    async def main() -> None:
        turns, clock, flood, other = _turns()
        turns.meet(flood)
        turns.meet(other)
        turns.wait(flood, lambda: None)
        clock.now += CALM_SECONDS
        assert turns.is_contended()

    asyncio.run(main())
