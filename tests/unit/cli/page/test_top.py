"""`ostinato top` in a pseudo-terminal and in a pipe, beside a page."""

from __future__ import annotations

import asyncio
import contextlib
import os
import pty
import signal
import sys
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest
from tests.unit.page.browser import paged

from ostinato.cli.app import run
from ostinato.controllers.reasons import Why
from ostinato.controllers.reports.observing import RunOutcome
from ostinato.page.facts import ControllerStats
from ostinato.page.reporting.reports import Collected, Details, EncodedItems, Ended, encode
from ostinato.page.reporting.sender import Sender
from ostinato.world import World

CLEAR = "\x1b[H\x1b[J"
HOSTILE = 'failed calling webhook "a.example.dev": \x1b]0;owned\x07\x1b[2Jdenied'
NOBODY = ("nobody", ("system:authenticated",))
SECONDS = 60.0


def failed(at: float) -> Ended:
    details = Details("run-1", "widgets", "default/a", Why((), ()), [])
    return Ended((), at, RunOutcome(result="error", seconds=0.1, waited=0.0, error=HOSTILE), (), details)


def _encoded(controllers: Sequence[ControllerStats], runs: Sequence[Ended] = (), failed: int = 0) -> bytes:
    items = EncodedItems()
    for each in runs:
        items.add(each)
    placed = EncodedItems().take()
    return encode(
        Collected(process="test", controllers=[*controllers], runs=items.take(), failed=failed, placed=placed)
    )


@contextlib.asynccontextmanager
async def page(path: Path) -> AsyncIterator[None]:
    """A page that may not read metrics, with one controller that is behind."""
    world = World.real(workers=1)
    async with paged(user=NOBODY, socket=path):
        sender = Sender(world.clock, path)
        behind = ControllerStats(name="widgets", depth=7, workers=2, busy=2, rate=3.5, p50=0.25, reason="7 keys wait")
        idle = ControllerStats(name="idle", workers=1)
        runs = [failed(world.clock.wall())]
        await sender.deliver(_encoded([idle, behind], runs, failed=1))
        yield
        sender.close()
    world.executor.close()


def command(path: Path, *options: str) -> list[str]:
    return [sys.executable, "-m", "ostinato.cli", "top", "--socket", str(path), "--interval", "0.1", *options]


class Terminal:
    """A command in a pseudo-terminal."""

    def __init__(self) -> None:
        self._reading, self._writing = pty.openpty()
        self.shown = ""

    async def start(self, arguments: list[str], **environment: str) -> asyncio.subprocess.Process:
        values = {name: value for name, value in os.environ.items() if name != "NO_COLOR"} | {"TERM": "xterm"}
        process = await asyncio.create_subprocess_exec(
            *arguments,
            stdin=self._writing,
            stdout=self._writing,
            stderr=self._writing,
            env=values | environment,
            start_new_session=True,
        )
        os.close(self._writing)
        return process

    async def until(self, text: str) -> None:
        async with asyncio.timeout(SECONDS):
            while text not in self.shown:
                self.shown += (await self._read()).decode()

    async def rest(self) -> str:
        with contextlib.suppress(OSError):  # EIO: the command has ended
            while data := await self._read():
                self.shown += data.decode()
        os.close(self._reading)
        return self.shown

    async def _read(self) -> bytes:
        return await asyncio.get_running_loop().run_in_executor(None, os.read, self._reading, 1 << 16)


def test_a_terminal_shows_a_table_that_is_drawn_again_and_what_the_page_may_not_see(tmp_path: Path) -> None:
    async def main() -> None:
        async with page(path := tmp_path / "page.sock"):
            terminal = Terminal()
            process = await terminal.start(command(path, "--count", "2"))
            shown = await terminal.rest()
            assert await process.wait() == 0
        first, second = shown.split(CLEAR)[1:]
        lines = second.replace("\r", "").splitlines()
        assert lines[0] == "\x1b[1mplane test\x1b[0m"
        assert lines[1].split()[:4] == ["CONTROLLER", "DEPTH", "BUSY", "RATE/S"]
        assert lines[2].split()[:6] == ["widgets", "7", "2/2", "3.5", "250ms", "-"]  # behind: the first
        assert lines[3].split()[0] == "idle"
        assert lines[4] == "\x1b[31mwidgets is behind: 7 keys wait\x1b[0m"
        assert any(each.startswith("not visible to the page: metrics of the API server (/metrics): ") for each in lines)
        assert "webhook a.example.dev cannot be called" in first

    asyncio.run(main())


def test_what_objects_contain_does_not_control_the_terminal(tmp_path: Path) -> None:
    async def main() -> None:
        async with page(path := tmp_path / "page.sock"):
            sender = Sender(World.real().clock, path)
            hostile = ControllerStats(name="\x1b[2Jevil", workers=1, reason="\x1b]0;owned\x07\nbehind")
            await sender.deliver(_encoded([hostile]))
            sender.close()
            terminal = Terminal()
            process = await terminal.start(command(path, "--count", "1"), NO_COLOR="1")
            shown = await terminal.rest()
            await process.wait()
        assert "\x1b" not in shown.removeprefix(CLEAR)
        assert "\x07" not in shown
        assert r"\x1b[2Jevil is behind: \x1b]0;owned\x07 behind" in shown

    asyncio.run(main())


def test_a_pipe_gets_lines_without_escape_sequences(tmp_path: Path) -> None:
    async def main() -> None:
        async with page(path := tmp_path / "page.sock"):
            process = await asyncio.create_subprocess_exec(
                *command(path, "--count", "1"), stdout=asyncio.subprocess.PIPE
            )
            shown, _ = await process.communicate()
        assert process.returncode == 0
        assert shown.startswith(b"CONTROLLER")
        assert b"\x1b" not in shown

    asyncio.run(main())


def test_an_interrupt_ends_it(tmp_path: Path) -> None:
    async def main() -> None:
        async with page(path := tmp_path / "page.sock"):
            terminal = Terminal()
            process = await terminal.start(command(path))
            await terminal.until("idle")
            process.send_signal(signal.SIGINT)
            shown = await terminal.rest()
            assert await process.wait() == 0
        assert "Traceback" not in shown

    asyncio.run(main())


def test_the_end_of_the_page_is_an_error_that_says_so(tmp_path: Path) -> None:
    async def main() -> None:
        terminal = Terminal()
        async with page(path := tmp_path / "page.sock"):
            process = await terminal.start(command(path))
            await terminal.until("idle")
        shown = await terminal.rest()
        assert await process.wait() == 1
        assert "the page does not answer" in shown
        assert "Traceback" not in shown

    asyncio.run(main())


@pytest.mark.parametrize("socket", ["missing.sock", ""])
def test_without_a_page_the_error_says_how_to_start_one(
    socket: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    where = ["--socket", str(tmp_path / socket)] if socket else ["--state", str(tmp_path)]
    assert run(["top", *where]) == 1
    expected = "no page listens there" if socket else "start `ostinato up --page :0`"
    assert expected in capsys.readouterr().err
