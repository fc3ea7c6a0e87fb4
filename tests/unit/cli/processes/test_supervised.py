"""A supervised process: restarted whatever it leaves behind, and stopped whenever `stop` is called."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from ostinato.cli.error import CommandError
from ostinato.cli.processes import supervised
from ostinato.cli.processes.attachment import Attachment
from ostinato.cli.processes.supervised import SupervisedProcess, is_alive
from ostinato.world import World

PROGRAM = "tests.unit.cli.processes.supervised_program"
ROOT = Path(__file__).resolve().parents[4]
PATIENCE = 60.0


@pytest.fixture(autouse=True)
def program(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervised, "_MODULE", PROGRAM)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))


def process(directory: Path, **options: object) -> SupervisedProcess:
    given = {"starts": str(directory / "starts"), **options}

    def attach() -> Attachment:
        return Attachment(parts=["part"], options=given, lock=2, listening=2, parent=os.getpid())

    return SupervisedProcess("part", attach, World.real().clock)


def starts(directory: Path) -> list[int]:
    """Return the pids of the processes that were started."""
    file = directory / "starts"
    return [int(line) for line in file.read_text().splitlines()] if file.exists() else []


async def restarted(each: SupervisedProcess, directory: Path) -> None:
    """Wait until a second process is ready."""
    while True:
        if len(starts(directory)) > 1:
            await each.ready()
            return
        await asyncio.sleep(0.01)


def play(scenario: Callable[[], Awaitable[None]]) -> None:
    async def limited() -> None:
        async with asyncio.timeout(PATIENCE):
            await scenario()

    asyncio.run(limited())


def test_a_process_is_restarted_although_a_program_of_it_keeps_its_log_open(tmp_path: Path) -> None:
    async def scenario() -> None:
        each = process(tmp_path, dies=True, leaves=str(tmp_path / "left"))
        running = asyncio.create_task(each.run())
        await restarted(each, tmp_path)
        await each.stop()
        await running

    try:
        play(scenario)
    finally:
        os.kill(int((tmp_path / "left").read_text()), signal.SIGKILL)
    assert not [pid for pid in starts(tmp_path) if is_alive(pid)]


def test_a_process_whose_start_is_under_way_is_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    create = asyncio.create_subprocess_exec

    async def scenario() -> None:
        called, proceeds = asyncio.Event(), asyncio.Event()

        async def slow(*command: str, **options: Any) -> asyncio.subprocess.Process:
            called.set()
            await proceeds.wait()
            return await create(*command, **options)

        monkeypatch.setattr(asyncio, "create_subprocess_exec", slow)
        each = process(tmp_path)
        running = asyncio.create_task(each.run())
        await called.wait()
        stopping = asyncio.create_task(each.stop())
        await asyncio.sleep(0)
        proceeds.set()
        await stopping
        assert running.done() or not [pid for pid in starts(tmp_path) if is_alive(pid)]
        await running

    play(scenario)
    assert not [pid for pid in starts(tmp_path) if is_alive(pid)]


def test_a_process_that_is_stopped_before_it_runs_is_not_started(tmp_path: Path) -> None:
    async def scenario() -> None:
        each = process(tmp_path)
        await each.stop()
        await each.run()

    play(scenario)
    assert not starts(tmp_path)


def test_a_start_that_the_system_refuses_is_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    create, attempts = asyncio.create_subprocess_exec, 0

    async def refused_once(*command: str, **options: Any) -> asyncio.subprocess.Process:
        nonlocal attempts
        attempts += 1
        if attempts == 2:
            raise BlockingIOError("Resource temporarily unavailable")
        return await create(*command, **options)

    monkeypatch.setattr(asyncio, "create_subprocess_exec", refused_once)

    async def scenario() -> None:
        each = process(tmp_path, dies=True)
        running = asyncio.create_task(each.run())
        await restarted(each, tmp_path)
        await each.stop()
        await running

    play(scenario)
    assert attempts == 3


def test_a_first_start_that_the_system_refuses_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def refused(*_command: str, **_options: Any) -> asyncio.subprocess.Process:
        raise BlockingIOError("Resource temporarily unavailable")

    monkeypatch.setattr(asyncio, "create_subprocess_exec", refused)
    with pytest.raises(CommandError, match="the process of part did not start: Resource temporarily unavailable"):
        play(process(tmp_path).run)
