"""The past, for the slider: which alarms were active when. In virtual time."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from tests.unit.page.observed import query

from ostinato.page.answers.past import past
from ostinato.page.facts import Alarm
from ostinato.page.history.history import History
from ostinato.world import Simulation


def alarm(name: str, message: str = "it fails") -> Alarm:
    return Alarm(id=name, severity="error", type="webhook", at=0.0, message=message)


def simulated(test: Callable[[Simulation, History], Awaitable[None]]) -> None:
    world = Simulation(seed=1)

    async def main() -> None:
        await test(world, History(world.clock))

    world.run(main())


async def shown(world: Simulation, history: History, since: float) -> list[list[str]]:
    """Return the ids of the alarms of each batch that has some or tells that there are none."""
    found = await past(query(**{"from": str(since)}), history, world.clock)
    return [[each.id for each in batch.alarms] for batch in found.batches if batch.alarms is not None]


def test_alarms_are_part_of_the_past_when_they_begin_and_end() -> None:
    async def test(world: Simulation, history: History) -> None:
        begin = world.clock.wall()
        for change in (
            lambda: history.alarms.raise_(alarm("webhook/a"), world.clock.wall()),
            lambda: history.alarms.raise_(alarm("webhook/b"), world.clock.wall()),
            lambda: history.alarms.clear("webhook/a"),
            lambda: history.alarms.clear("webhook/b"),
        ):
            change()
            history.tidy()
            await world.clock.sleep(5.0)
        assert await shown(world, history, begin) == [["webhook/a"], ["webhook/a", "webhook/b"], ["webhook/b"], []]
        assert await shown(world, history, begin + 7.0) == [["webhook/a", "webhook/b"], ["webhook/b"], []]

    simulated(test)


def test_another_text_of_an_alarm_is_not_another_record() -> None:
    async def test(world: Simulation, history: History) -> None:
        begin = world.clock.wall()
        for seconds in range(5):
            history.alarms.raise_(alarm("stuck", f"for {seconds} s"), world.clock.wall())
            history.tidy()
            await world.clock.sleep(2.0)
        assert await shown(world, history, begin) == [["stuck"]]

    simulated(test)


def test_an_alarm_that_lasts_longer_than_the_history_is_still_in_it() -> None:
    async def test(world: Simulation, history: History) -> None:
        history.alarms.raise_(alarm("stuck"), world.clock.wall())
        history.tidy()
        await world.clock.sleep(2_000.0)
        history.tidy()
        assert await shown(world, history, world.clock.wall() - 60.0) == [["stuck"]]

    simulated(test)


def test_records_of_alarms_are_bounded() -> None:
    async def test(world: Simulation, history: History) -> None:
        begin = world.clock.wall()
        for number in range(1_000):
            history.alarms.raise_(alarm(f"a-{number}"), world.clock.wall())
            history.alarms.clear(f"a-{number - 1}")
            history.tidy()
            await world.clock.sleep(0.01)
        assert len(history.past_alarms.between(begin, world.clock.wall())) == 500

    simulated(test)
