"""Event loop of a test: in real or in virtual time, for its fixtures, the test itself and its teardown."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Coroutine
from typing import Any, TypeVar

from ostinato.world import BackgroundError, Limits, Simulation, World

T = TypeVar("T")

_YEARS = 100 * 365 * 86_400.0  # seconds


class TestLoop(ABC):
    """`world`: for the cluster of the test; None is the real one."""

    __test__ = False  # not a test class, for pytest

    world: World | None

    @abstractmethod
    def run(self, main: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine to its end; tasks that it leaves continue with the next run."""

    @abstractmethod
    def close(self) -> None:
        """Cancel the remaining tasks; raise `BackgroundError` for errors that nothing has handled."""


class RealLoop(TestLoop):
    world = None

    def __init__(self) -> None:
        self._failures: list[Exception] = []
        self._runner = asyncio.Runner()
        self._runner.get_loop().set_exception_handler(self._failed)

    def run(self, main: Coroutine[Any, Any, T]) -> T:
        return self._runner.run(main)

    def close(self) -> None:
        self._runner.close()
        if self._failures:
            raise BackgroundError("unhandled errors", self._failures)

    def _failed(self, _: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        error = context.get("exception")
        if not isinstance(error, Exception):
            error = RuntimeError(context["message"])
        error.add_note(context["message"])
        self._failures.append(error)


class VirtualLoop(TestLoop):
    def __init__(self) -> None:
        self._simulation = Simulation(seed=1, limits=Limits(time=_YEARS, steps=100_000_000))
        self.world = self._simulation

    def run(self, main: Coroutine[Any, Any, T]) -> T:
        return self._simulation.run(main, wind_down=False)

    def close(self) -> None:
        self._simulation.run(_nothing())


async def _nothing() -> None:
    """End at once: the run winds the loop down."""
