from __future__ import annotations

import asyncio
import contextvars
import socket
import threading
from collections.abc import Callable
from typing import Any

import pytest

from ostinato.world import BackgroundError, Simulation, SimulationError, Timer
from ostinato.world.simulated.loop import SimulatedLoop


@pytest.fixture
def simulation() -> Simulation:
    return Simulation(0)


def test_the_waits_of_the_standard_library_are_in_virtual_time(simulation: Simulation) -> None:
    async def main() -> list[float]:
        moments = []

        def note() -> None:
            moments.append(simulation.clock.monotonic())

        await asyncio.sleep(10)
        note()
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(5):
                await asyncio.Event().wait()
        note()
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(asyncio.sleep(100), 3)
        note()
        _, pending = await asyncio.wait([asyncio.create_task(asyncio.sleep(9))], timeout=2)
        note()
        assert len(pending) == 1
        return moments

    assert simulation.run(main()) == [10, 15, 18, 20]


def test_queues_locks_and_task_groups_work(simulation: Simulation) -> None:
    async def main() -> list[int]:
        queue: asyncio.Queue[int | None] = asyncio.Queue(maxsize=2)
        lock = asyncio.Lock()
        received = []

        async def produce() -> None:
            for number in range(10):
                await queue.put(number)
            await queue.put(None)

        async def consume() -> None:
            while (number := await queue.get()) is not None:
                async with lock:
                    await asyncio.sleep(1)
                    received.append(number)

        async with asyncio.TaskGroup() as group:
            group.create_task(produce())
            group.create_task(consume())
        return received

    assert simulation.run(main()) == list(range(10))
    assert simulation.clock.monotonic() == 10


def test_the_runner_of_the_standard_library_can_run_the_loop(simulation: Simulation) -> None:
    with asyncio.Runner(loop_factory=lambda: simulation._loop) as runner:
        assert runner.run(asyncio.sleep(1, "done")) == "done"
        with pytest.raises(BackgroundError):
            runner.run(failing_callback())
        with pytest.raises(RuntimeError, match="stopped before"):
            runner.run(stopping())
    assert simulation._loop.is_closed()
    with pytest.raises(RuntimeError, match="closed"):
        simulation.run(asyncio.sleep(1))


async def failing_callback() -> None:
    asyncio.get_running_loop().call_soon(lambda: 1 / 0)
    await asyncio.sleep(1)


async def stopping() -> None:
    asyncio.get_running_loop().stop()
    await asyncio.sleep(1)


def test_context_variables_follow_tasks_and_callbacks(simulation: Simulation) -> None:
    variable: contextvars.ContextVar[str] = contextvars.ContextVar("variable")

    async def main() -> list[str]:
        seen: list[str] = []

        async def child() -> None:
            seen.append(variable.get())
            variable.set("child")

        variable.set("main")
        simulation.clock.timer(1, lambda: seen.append(variable.get()))
        await asyncio.create_task(child())
        variable.set("main, later")
        await simulation.clock.sleep(2)
        other = contextvars.copy_context()
        other.run(variable.set, "other")
        await asyncio.create_task(child(), context=other)
        return [*seen, variable.get()]

    assert simulation.run(main()) == ["main", "main", "other", "main, later"]


def test_a_task_factory_is_honoured(simulation: Simulation) -> None:
    made = []

    def factory(loop: Any, coroutine: Any, **options: Any) -> Any:
        made.append(coroutine.__name__)
        return asyncio.Task(coroutine, loop=loop, **options)

    async def child() -> str:
        return "child"

    async def main() -> list[str]:
        loop = asyncio.get_running_loop()
        loop.set_task_factory(factory)
        assert loop.get_task_factory() is factory
        first = await asyncio.create_task(child())
        second = await loop.create_task(child(), name="named", context=contextvars.copy_context())
        loop.set_task_factory(None)
        return [first, second]

    assert simulation.run(main()) == ["child", "child"]
    assert made == ["child", "child"]


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("create_connection", lambda loop: loop.create_connection(asyncio.Protocol, "localhost", 80)),
        ("create_server", lambda loop: loop.create_server(asyncio.Protocol, "localhost", 80)),
        ("getaddrinfo", lambda loop: loop.getaddrinfo("localhost", 80)),
        ("add_reader", lambda loop: loop.add_reader(0, print)),
        ("sock_recv", lambda loop: loop.sock_recv(None, 1)),
        ("subprocess_exec", lambda loop: loop.subprocess_exec(asyncio.SubprocessProtocol, "true")),
        ("add_signal_handler", lambda loop: loop.add_signal_handler(2, print)),
    ],
)
def test_what_needs_the_outside_is_rejected(
    simulation: Simulation, name: str, call: Callable[[asyncio.AbstractEventLoop], Any]
) -> None:
    async def main() -> None:
        call(asyncio.get_running_loop())

    with pytest.raises(SimulationError, match=rf"loop\.{name}\(\)"):
        simulation.run(main())


def test_the_streams_and_processes_of_the_standard_library_are_rejected(simulation: Simulation) -> None:
    with pytest.raises(SimulationError):
        simulation.run(asyncio.open_connection("localhost", 80))
    with pytest.raises(SimulationError):
        simulation.run(asyncio.create_subprocess_exec("true"))


def test_an_executor_of_threads_is_rejected(simulation: Simulation) -> None:
    async def main() -> None:
        asyncio.get_running_loop().run_in_executor(socket, len, "abc")  # type: ignore[arg-type]

    with pytest.raises(SimulationError, match="with an executor in a simulation"):
        simulation.run(main())


def test_calls_from_another_thread_are_rejected_and_from_the_same_one_are_not(simulation: Simulation) -> None:
    async def main() -> list[object]:
        loop = asyncio.get_running_loop()
        heard: list[object] = []

        def intrude() -> None:
            try:
                loop.call_soon_threadsafe(heard.append, "intruder")
            except SimulationError as error:
                heard.append(str(error))

        loop.call_soon_threadsafe(heard.append, "friend")
        await asyncio.sleep(0)
        thread = threading.Thread(target=intrude)
        thread.start()
        thread.join()
        return heard

    friend, refusal = simulation.run(main())
    assert friend == "friend"
    assert "another thread" in refusal


def test_a_simulation_cannot_run_inside_a_loop(simulation: Simulation) -> None:
    inner = Simulation(1)

    async def main() -> None:
        for other in (simulation, inner):
            with pytest.raises(RuntimeError, match="inside of a running event loop"):
                other._loop.run_forever()
            with pytest.raises(RuntimeError, match="inside of a running event loop"):
                other.run(asyncio.sleep(1))
        with pytest.raises(RuntimeError, match="close a running"):
            asyncio.get_running_loop().close()
        assert asyncio.get_running_loop().is_running()
        assert not asyncio.get_running_loop().get_debug()

    simulation.run(main())


def test_nan_is_not_a_time(simulation: Simulation) -> None:
    async def main() -> None:
        asyncio.get_running_loop().call_later(float("nan"), print)

    with pytest.raises(ValueError, match="NaN"):
        simulation.run(main())


def test_many_cancelled_timers_do_not_pile_up(simulation: Simulation) -> None:
    async def main() -> int:
        fired: list[int] = []
        for number in range(1000):
            simulation.clock.timer(1000 + number, fired.append, number).cancel()
            if number % 100 == 0:
                simulation.clock.timer(10 + number, fired.append, number)
        held = len(simulation._loop._agenda._timers)
        await simulation.clock.sleep(5000)
        assert fired == list(range(0, 1000, 100))
        return held

    assert simulation.run(main()) < 250


def test_a_timer_cancelled_by_another_of_the_same_moment_does_not_fire(simulation: Simulation) -> None:
    async def main() -> list[str]:
        fired: list[str] = []
        timers: list[Timer] = []

        def cancel_the_second() -> None:
            timers[0].cancel()

        simulation.clock.timer(1, cancel_the_second)
        timers.append(simulation.clock.timer(1, fired.append, "second"))
        third = simulation.clock.timer(1, fired.append, "third")
        simulation.clock.timer(0.5, third.cancel)
        await simulation.clock.sleep(2)
        return fired

    assert simulation.run(main()) == []


def test_tasks_that_are_gone_are_not_kept() -> None:
    async def nothing() -> None:
        pass

    async def main() -> int:
        for _ in range(5_000):
            await asyncio.create_task(nothing())
        loop = asyncio.get_running_loop()
        assert isinstance(loop, SimulatedLoop)
        return len(loop._tasks)

    assert Simulation(1).run(main()) < 2_000
