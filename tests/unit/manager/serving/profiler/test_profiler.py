"""The profiler, on a real loop and real threads."""

from __future__ import annotations

import asyncio
import re
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest
from tests.unit.manager.test_real import alone, soon

from ostinato.manager import Manager
from ostinato.manager.serving.profiler.server import Profiler
from ostinato.profiling.stacks import collapsed
from ostinato.world import World


def get(port: int, path: str) -> tuple[int, str]:
    """Ask from another thread: the loop of the test may be blocked."""
    try:
        with urlopen(f"http://127.0.0.1:{port}{path}", timeout=20) as answer:
            return answer.status, answer.read().decode()
    except HTTPError as error:
        with error:
            return error.code, error.read().decode()


def blocks_the_loop(until: Any) -> None:
    while not until.done():
        pass


async def waits_forever() -> None:
    await asyncio.get_running_loop().create_future()


def test_a_blocked_loop_is_profiled() -> None:
    async def play() -> None:
        profiler = Profiler(":0", World.real())
        await profiler.start()
        with ThreadPoolExecutor() as threads:
            asked = threads.submit(get, profiler.port, "/debug/profile?seconds=0.2&rate=200")
            blocks_the_loop(asked)
            status, text = asked.result()
            assert status == 200
            assert re.search(r"^MainThread;.*;blocks_the_loop \(\S*test_profiler\.py:\d+\).* \d+$", text, re.MULTILINE)
            asked = threads.submit(get, profiler.port, "/debug/threads")
            blocks_the_loop(asked)
            assert re.search(r"^MainThread\n(    .*\n)*    blocks_the_loop \(", asked.result()[1], re.MULTILINE)
        await profiler.stop()
        await profiler.stop()

    soon(play())


def test_tasks_memory_and_errors() -> None:
    async def play() -> None:
        manager = alone(profiler="127.0.0.1:0")
        serving = asyncio.create_task(manager.serve())
        waiting = [asyncio.create_task(waits_forever()) for _ in range(3)]
        await asyncio.sleep(0)
        await manager.elected()
        port = manager._endpoints[0].port
        loop = asyncio.get_running_loop()

        async def ask(path: str) -> tuple[int, str]:
            return await loop.run_in_executor(None, get, port, path)

        status, text = await ask("/debug/tasks")
        assert status == 200
        assert re.search(r"^Task \(3\)\n    waits_forever \(\S*test_profiler\.py:\d+\)$", text, re.MULTILINE)
        assert re.search(r"^Task;waits_forever \(\S+\) 3$", (await ask("/debug/tasks?collapsed"))[1], re.MULTILINE)
        status, text = await ask("/debug/heap")
        assert status == 200
        assert "python_allocated_blocks" in text
        assert "builtins.dict\n" in text
        first, second = await asyncio.gather(ask("/debug/heap?seconds=0.3"), ask("/debug/profile?seconds=0.3"))
        assert sorted([first[0], second[0]]) == [200, 409], "one at a time"
        assert await ask("/debug/profile?seconds=x") == (400, "seconds: want a number greater than 0, at most 600\n")
        assert await ask("/debug/profile?rate=1e9") == (400, "rate: want a number greater than 0, at most 1000\n")
        assert "/debug/threads\n" in (await ask("/"))[1]
        assert (await ask("/metrics"))[0] == 404
        for task in waiting:
            task.cancel()
        manager.stop()
        await serving

    soon(play())


def test_a_port_that_is_taken_is_reported() -> None:
    async def play() -> None:
        first = Profiler("127.0.0.1:0", World.real())
        await first.start()
        with pytest.raises(OSError, match="cannot serve profiler: "):
            await alone(profiler=f":{first.port}").serve()
        await first.stop()

    soon(play())


def test_it_listens_on_the_loopback_address_unless_told() -> None:
    async def play() -> None:
        profiler = Profiler(":0", World.real())
        await profiler.start()
        assert profiler._server.address[0] == "127.0.0.1"
        await profiler.stop()

    soon(play())
    with pytest.raises(ValueError, match="is not a listen address"):
        Manager(profiler="6060")


def test_separators_in_names_do_not_break_the_format() -> None:
    assert collapsed({("a;b", "f (x.py:1)"): 2}) == "a,b;f (x.py:1) 2\n"
