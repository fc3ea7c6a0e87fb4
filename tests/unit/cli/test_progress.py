"""Progress of what takes longer than a second, in virtual time."""

from __future__ import annotations

import io

import pytest

from ostinato.cli.progress import blocking_progress, progress
from ostinato.world import Simulation, World


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def colourless(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")


def shown(seconds: float, stream: io.StringIO) -> str:
    simulation = Simulation(1)
    clock = simulation.machine("here").clock

    async def main() -> None:
        async def work() -> str:
            await clock.sleep(seconds)
            return "done"

        assert await progress("starting", work(), clock, stream) == "done"

    simulation.run(main())
    return stream.getvalue()


def test_nothing_is_shown_for_what_takes_less_than_a_second() -> None:
    assert shown(0.9, Terminal()) == ""


def test_a_line_is_shown_after_a_second_and_then_every_ten() -> None:
    assert shown(1.5, Terminal()) == "starting ...\n"
    assert shown(25, Terminal()) == "starting ...\nstarting ... 11 s\nstarting ... 21 s\n"


def test_nothing_is_shown_without_a_terminal() -> None:
    assert shown(25, io.StringIO()) == ""


def test_errors_of_the_work_are_raised() -> None:
    simulation = Simulation(1)

    async def fail() -> None:
        raise LookupError("no")

    with pytest.raises(LookupError, match="no"):
        simulation.run(progress("starting", fail(), simulation.machine("here").clock, Terminal()))


def test_blocking_work_is_reported_from_another_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ostinato.cli.progress._FIRST_SECONDS", 0.01)
    stream = Terminal()
    with blocking_progress("restoring", World.real(), stream):
        while not stream.getvalue():  # blocks this thread
            pass
    assert stream.getvalue() == "restoring ...\n"
