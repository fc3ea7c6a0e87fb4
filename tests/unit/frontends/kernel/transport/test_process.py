"""Processes: output, exit codes, limits, timeouts and cancellation, with real processes in real time."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from ostinato.frontends.kernel.transport.log_lines import LogLines
from ostinato.frontends.kernel.transport.process import Command, ProcessResult, run_process
from ostinato.world import Simulation, World

Run = Callable[..., ProcessResult]


def _in_real_time(main: Callable[[World], Awaitable[ProcessResult]]) -> ProcessResult:
    world = World.real()
    try:
        return asyncio.run(main(world))  # type: ignore[arg-type]
    finally:
        world.executor.close()


def _in_simulation(main: Callable[[World], Awaitable[ProcessResult]]) -> ProcessResult:
    simulation = Simulation(seed=1)
    return simulation.run(main(simulation))  # type: ignore[arg-type]


def _bash(script: str, **options: object) -> Command:
    return Command(("bash", "-c", script), **options)  # type: ignore[arg-type]


worlds = pytest.mark.parametrize("run", [_in_real_time, _in_simulation])


@worlds
def test_lines_of_both_streams_are_passed_on(run: Run) -> None:
    lines: list[tuple[str, str]] = []
    result = run(
        lambda world: run_process(
            _bash("echo out; echo; printf unfinished; echo err >&2; exit 3"), world, lambda *each: lines.append(each)
        )
    )
    assert sorted(lines) == [("stderr", "err"), ("stdout", "out"), ("stdout", "unfinished")]
    assert (result.exit_code, result.stdout, result.stderr) == (3, b"out\n\nunfinished", b"err\n")
    assert result.problem() == "exit code 3: err"
    assert result.usage.max_rss_bytes > 100_000


@worlds
def test_a_timeout_kills_the_group(run: Run, tmp_path: Path) -> None:
    child = tmp_path / "child"
    script = f"sleep 60 & echo $! > {child}; sleep 60"
    result = run(lambda world: run_process(_bash(script, timeout=0.3), world))
    assert result.timed_out
    assert result.problem(0.3) == "timed out after 0.3 s; killed"
    assert _is_gone(int(child.read_text()))


def test_cancellation_kills_the_group(tmp_path: Path) -> None:
    child = tmp_path / "child"

    async def main(world: World) -> ProcessResult:
        running = asyncio.ensure_future(
            run_process(_bash(f"echo $$ > {child}.new; mv {child}.new {child}; sleep 60"), world)
        )
        while not child.exists():
            await world.clock.sleep(0.01)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        return None  # type: ignore[return-value]

    _in_real_time(main)
    assert _is_gone(int(child.read_text()))


@worlds
def test_a_child_in_the_background_does_not_delay_the_end(run: Run) -> None:
    result = run(lambda world: run_process(_bash("sleep 5 & echo $!"), world))
    assert result.ok
    import os
    import signal

    os.kill(int(result.stdout), signal.SIGKILL)  # still running: that the result is here shows what is tested


@worlds
def test_output_beyond_the_limit_is_dropped(run: Run) -> None:
    lines: list[str] = []
    command = _bash(
        "head -c 300000 /dev/zero | tr '\\0' x; echo; echo last", most_output=1000, longest_line=10, kept=50
    )
    result = run(lambda world: run_process(command, world, lambda _, line: lines.append(line)))
    assert result.dropped == 300_006 - 1000
    assert result.stdout == b"x" * 50
    assert set(lines) == {"x" * 10 + ":truncated"}


def test_lines_become_log_records(caplog: pytest.LogCaptureFixture) -> None:
    lines = LogLines(logging.getLogger("hooks-under-test"), {"hook": "a.sh", "queue": "main"})
    with caplog.at_level(logging.DEBUG):
        lines("stdout", "plain")
        lines("stderr", '{"level":"warn","msg":"careful","time":"now","count":2,"who":"me"}')
        lines("stdout", "{broken")
    assert [(each.levelname, each.getMessage()) for each in caplog.records] == [
        ("INFO", "plain hook=a.sh queue=main output=stdout"),
        ("WARNING", "careful hook=a.sh queue=main hook_count=2 hook_who=me"),
        ("INFO", "{broken hook=a.sh queue=main output=stdout"),
    ]


def _is_gone(process: int) -> bool:
    """Wait until a killed process has ended: a signal is delivered some time later."""
    stat = Path(f"/proc/{process}/stat")
    for _ in range(1000):
        try:
            if stat.read_text().rpartition(")")[2].split()[0] == "Z":
                return True
        except (FileNotFoundError, ProcessLookupError):
            return True
        time.sleep(0.01)
    return False
