"""Container logs, from the runtime's file to the client."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from tests.unit.plane.node.server.streaming import RUNNING, Stage, container_status, ended, stage

from ostinato.api.errors import APIError, BadRequest
from ostinato.kinds.core_v1 import Pod
from ostinato.plane.node.containers.log_paths import log_of
from ostinato.plane.node.server.log_reader import LogOptions, read_log
from ostinato.world import Simulation

LINES = (
    b"2026-01-01T00:00:01.000000001Z stdout F one\n"
    b"2026-01-01T00:00:02.000000001Z stderr F two\n"
    b"2026-01-01T00:00:03.000000001Z stdout P thr\n"
    b"2026-01-01T00:00:03.500000001Z stdout F ee\n"
    b"2026-01-01T00:00:04.000000001Z stdout F \n"
    b"2026-01-01T00:00:05.000000001Z stdout P no newline\n"
)


def _write(logs: Path, pod: Pod, data: bytes, attempt: int = 0) -> None:
    path = log_of(logs, pod, "c", attempt)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({}, "one\ntwo\nthree\n\nno newline"),
        ({"tail_lines": 2}, "\nno newline"),
        ({"tail_lines": 0}, ""),
        ({"tail_lines": 100}, "one\ntwo\nthree\n\nno newline"),
        ({"limit_bytes": 6}, "one\ntw"),
        ({"since_time": datetime(2026, 1, 1, 0, 0, 4, tzinfo=UTC)}, "\nno newline"),
        ({"since_seconds": 3600}, ""),
        ({"since_seconds": 10_000_000_000}, "one\ntwo\nthree\n\nno newline"),
        (
            {"timestamps": True, "tail_lines": 4},
            (
                "2026-01-01T00:00:03.000000001Z three\n2026-01-01T00:00:04.000000001Z \n"
                "2026-01-01T00:00:05.000000001Z no newline"
            ),
        ),
    ],
)
def test_log_options_select_lines_and_bytes(tmp_path: Path, options: Any, text: str) -> None:
    async def play(scene: Stage) -> None:
        pod = await scene.begin()
        _write(tmp_path, pod, LINES)
        await scene.world.clock.sleep(7200)
        assert await scene.client.pods.log("p", container="c", **options) == text

    stage(play, tmp_path)


def test_previous_returns_the_log_of_the_previous_attempt(tmp_path: Path) -> None:
    async def play(scene: Stage) -> None:
        pod = await scene.begin(container_status(RUNNING, restarts=1, last=ended(1)))
        _write(tmp_path, pod, b"2026-01-01T00:00:01Z stdout F first\n")
        _write(tmp_path, pod, b"2026-01-01T00:00:01Z stdout F second\n", 1)
        pods = scene.client.pods
        assert await pods.log("p", container="c") == "second\n"
        assert await pods.log("p", container="c", previous=True) == "first\n"
        crashed = {"waiting": {"reason": "CrashLoopBackOff"}}
        await scene.say(container_status(crashed, restarts=1, last=ended(1)))
        assert await pods.log("p", container="c") == "second\n"
        assert await pods.log("p", container="c", previous=True) == "second\n"

    stage(play, tmp_path)


@pytest.mark.parametrize(
    ("state", "previous", "text"),
    [
        (
            {"waiting": {"reason": "ContainerCreating"}},
            False,
            'container "c" in pod "p" is waiting to start: ContainerCreating',
        ),
        (
            {"waiting": {"reason": "ErrImagePull"}},
            False,
            'container "c" in pod "p" is waiting to start: image can\'t be pulled',
        ),
        (RUNNING, True, 'previous terminated container "c" in pod "p" not found'),
        ({"waiting": {"reason": "x"}}, True, 'previous terminated container "c" in pod "p" not found'),
        ({"terminated": {"exitCode": 137}}, False, 'container "c" in pod "p" is terminated'),
    ],
)
def test_a_missing_log_is_reported_with_its_reason(tmp_path: Path, state: Any, previous: bool, text: str) -> None:
    async def play(scene: Stage) -> None:
        await scene.begin(container_status(state))
        with pytest.raises(BadRequest) as caught:
            await scene.client.pods.log("p", container="c", previous=previous)
        assert str(caught.value) == text
        with pytest.raises(BadRequest, match='container "d" in pod "p" is not available'):
            await scene.client.pods.log("p", container="d")

    stage(play, tmp_path)


def test_simulated_containers_have_no_log() -> None:
    async def play(scene: Stage) -> None:
        await scene.begin()
        with pytest.raises(APIError, match="is simulated and has no log"):
            await scene.client.pods.log("p", container="c")

    stage(play)


def test_a_followed_log_survives_rotation_and_ends_with_its_container(tmp_path: Path) -> None:
    async def play(scene: Stage) -> None:
        pod = await scene.begin()
        _write(tmp_path, pod, LINES[:45])
        path = log_of(tmp_path, pod, "c", 0)
        lines: list[str] = []

        async def follow() -> None:
            async for line in scene.client.pods.follow("p", container="c"):
                lines.append(line)  # noqa: PERF401 - the test looks at what has come so far

        following = asyncio.ensure_future(follow())
        await scene.world.clock.sleep(1)
        assert lines == ["one"]
        with path.open("ab") as file:
            file.write(b"2026-01-01T00:00:02Z stdout F before\n")
        path.rename(path.with_name("0.log.1"))
        path.write_bytes(b"2026-01-01T00:00:03Z stdout F after\n")
        await scene.world.clock.sleep(1)
        assert lines == ["one", "before", "after"]
        with path.open("ab") as file:
            file.write(b"2026-01-01T00:00:04Z stdout F last\n")
        await scene.say(container_status(ended()), container_status(RUNNING, name="d"))
        await following
        assert lines == ["one", "before", "after", "last"]

    stage(play, tmp_path)


def test_a_followed_log_ends_when_its_pod_is_deleted(tmp_path: Path) -> None:
    async def play(scene: Stage) -> None:
        await scene.begin()
        following = asyncio.ensure_future(anext(aiter(scene.client.pods.follow("p", container="c")), None))
        await scene.world.clock.sleep(5)
        assert not following.done(), "a log that is not there yet may come"
        await scene.client.delete(Pod, "p", grace_period=0)
        assert await following is None

    stage(play, tmp_path)


def test_long_logs_are_read_in_chunks_and_invalid_lines_skipped(tmp_path: Path) -> None:
    path = tmp_path / "0.log"
    line = b"2026-01-01T00:00:01Z stdout F " + b"x" * 100 + b"\n"
    path.write_bytes(b"nonsense\n" + line * 20_000 + b"\xff\n" + b"2026-01-01T00:00:01Z stdout F cut")
    world = Simulation(1)

    async def main() -> None:
        async def running() -> bool:
            return False

        every = [piece async for piece in read_log(path, LogOptions(), world.clock, running)]
        assert b"".join(every) == (b"x" * 100 + b"\n") * 20_000
        assert max(map(len, every)) <= 1 << 16
        tail = LogOptions(tail_lines=10_001)
        assert sum([len(piece) async for piece in read_log(path, tail, world.clock, running)]) == 101 * 10_000

    world.run(main())
