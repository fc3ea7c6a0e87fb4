"""Freshness: no reader is served by a question that was sent before it arrived, and each is called once."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, cast

import pytest

from ostinato.api.errors import Timeout
from ostinato.etcd import DeadlineExceeded, EtcdClient, EtcdError, Unavailable
from ostinato.server.store.etcd.freshness import READ_SECONDS, Freshness
from ostinato.world import World

Answer = int | EtcdError


class Etcd:
    """The client: records questions, which the test answers."""

    def __init__(self) -> None:
        self.questions: list[Callable[[Answer], None]] = []
        self.is_connected = True
        self.again: list[float] = []  # the time that each question by a task may take
        self.answer: Answer = 0  # to those

    def ask_revision(self, within: float, on_answer: Callable[[Answer], None]) -> bool:
        assert within == READ_SECONDS
        if self.is_connected:
            self.questions.append(on_answer)
        return self.is_connected

    async def revision(self, *, within: float) -> int:
        self.again.append(within)
        await asyncio.sleep(0)
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


class Followed:
    """The index."""

    def __init__(self) -> None:
        self.version = 10
        self.waiting: list[tuple[int, asyncio.Future[None]]] = []
        self.started_over: list[int] = []
        self.progress = 0

    def reaches(self, revision: int, reader: asyncio.Future[None]) -> bool:
        self.waiting.append((revision, reader))
        return False

    @property
    def is_awaited(self) -> bool:
        return bool(self.waiting)

    def request_progress(self) -> None:
        self.progress += 1

    async def start_over(self, revision: int) -> None:
        self.started_over.append(revision)

    def reach(self, version: int) -> None:
        self.version = version
        waiting, self.waiting = self.waiting, []
        for _, reader in waiting:
            reader.set_result(None)


class Scene:
    def __init__(self) -> None:
        self.etcd, self.index = Etcd(), Followed()
        self.freshness = Freshness(cast("EtcdClient", self.etcd), World.real(workers=1).clock, self.index)
        self.called: list[tuple[str, bool]] = []  # readers, and whether the index was current

    def join(self, name: str) -> None:
        self.freshness.join(lambda problem: self.called.append((name, problem is None)))


async def turns(count: int = 10) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


def play(body: Callable[[Scene], Awaitable[None]]) -> None:
    async def main() -> None:
        scene = Scene()
        try:
            await asyncio.wait_for(body(scene), 10)
        finally:
            scene.freshness.close()

    asyncio.run(main())


def test_readers_of_one_turn_share_a_question_and_later_ones_get_the_next() -> None:
    async def body(scene: Scene) -> None:
        scene.join("a")
        scene.join("b")
        await turns()
        scene.join("late")  # its question has not been asked, although an answer is to come
        await turns()
        assert len(scene.etcd.questions) == 1
        scene.etcd.questions[0](10)
        assert scene.called == [("a", True), ("b", True)]
        await turns()
        assert len(scene.etcd.questions) == 2
        scene.etcd.questions[1](10)
        assert scene.called[2:] == [("late", True)]
        await turns()
        assert len(scene.etcd.questions) == 2  # nobody asks

    play(body)


def test_the_next_question_waits_for_readers_that_follow_an_answer_but_for_a_few_turns_only() -> None:
    async def body(scene: Scene) -> None:
        scene.join("a")
        await turns()
        scene.join("b")
        scene.etcd.questions[0](10)
        joined = 0
        while len(scene.etcd.questions) == 1:  # each turn brings another one
            await asyncio.sleep(0)
            scene.join(f"more {joined}")
            joined += 1
        assert 3 <= joined <= 8
        await turns()
        scene.etcd.questions[1](10)
        assert len(scene.called) in (1 + joined, 2 + joined)  # the last one may have come after the question
        assert all(current for _, current in scene.called)

    play(body)


def test_a_reader_waits_until_the_index_has_the_revision() -> None:
    async def body(scene: Scene) -> None:
        scene.join("a")
        await turns()
        scene.etcd.questions[0](12)
        await turns()
        assert scene.called == []
        assert [revision for revision, _ in scene.index.waiting] == [12]
        while not scene.index.progress:  # noqa: ASYNC110 - requested after a moment
            await asyncio.sleep(0.001)
        scene.index.reach(12)
        await turns()
        assert scene.called == [("a", True)]

    play(body)


@pytest.mark.parametrize("answer", [11, Unavailable("no member")], ids=["answered", "failed"])
def test_a_question_that_fails_is_asked_again_by_a_task(answer: Answer) -> None:
    async def body(scene: Scene) -> None:
        scene.etcd.answer = answer
        scene.index.version = 11
        scene.join("a")
        await turns()
        scene.join("late")
        scene.etcd.questions[0](Unavailable("connection lost"))
        await turns(20)
        assert len(scene.etcd.again) == 1
        assert 0 < scene.etcd.again[0] <= READ_SECONDS
        assert scene.called == [("a", answer == 11)]
        assert scene.freshness.failure == (None if answer == 11 else "no member")
        assert len(scene.etcd.questions) == 2  # for the late one
        scene.etcd.questions[1](11)
        assert scene.called[1:] == [("late", True)]
        assert scene.freshness.failure is None

    play(body)


def test_without_a_connection_a_task_asks() -> None:
    async def body(scene: Scene) -> None:
        scene.etcd.is_connected = False
        scene.etcd.answer = 10
        await scene.freshness.wait()
        assert scene.etcd.again == [READ_SECONDS]

    play(body)


def test_a_question_without_an_answer_is_not_asked_again() -> None:
    async def body(scene: Scene) -> None:
        waiting = asyncio.ensure_future(scene.freshness.wait())
        await turns()
        scene.etcd.questions[0](DeadlineExceeded("no response within 3 s"))
        with pytest.raises(Timeout, match="did not complete within requested timeout"):
            await waiting
        assert scene.etcd.again == []
        assert scene.freshness.failure == "no response within 3 s"

    play(body)


def test_an_etcd_that_has_lost_writes_is_loaded_and_its_answer_serves_nobody() -> None:
    async def body(scene: Scene) -> None:
        scene.join("a")
        await turns()
        scene.join("late")
        scene.etcd.questions[0](9)
        await turns()
        assert scene.index.started_over == [9]
        assert scene.called == [("a", False)]
        assert len(scene.etcd.questions) == 2

    play(body)


def test_a_reader_that_fails_does_not_stop_the_others(caplog: pytest.LogCaptureFixture) -> None:
    async def body(scene: Scene) -> None:
        def fail(problem: str | None) -> Any:
            raise RuntimeError("defect")

        scene.freshness.join(fail)
        scene.join("a")
        await turns()
        scene.etcd.questions[0](10)
        assert scene.called == [("a", True)]
        scene.join("b")
        await turns()
        scene.etcd.questions[1](10)
        assert scene.called[1:] == [("b", True)]

    play(body)
    assert "reader failed" in caplog.text


def test_closing_calls_all_readers_once() -> None:
    async def body(scene: Scene) -> None:
        scene.join("behind")
        await turns()
        scene.etcd.questions[0](20)
        scene.join("asked")
        await turns()
        scene.join("waiting")
        scene.freshness.close()
        await turns()
        assert sorted(scene.called) == [("asked", False), ("behind", False), ("waiting", False)]
        scene.etcd.questions[1](20)  # too late
        scene.join("after")
        await turns()
        assert min(scene.called) == ("after", False)
        assert len(scene.called) == 4

    play(body)
