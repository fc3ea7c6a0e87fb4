"""A process that dies after each of its requests: the next one leaves nothing behind."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from tests.stage.controllers import ControllerStage, staged
from tests.unit.frontends.kernel.applier.sets import (
    CONFIG_MAP,
    WIDGET,
    Sets,
    cluster_role,
    config_map,
    marked,
    sets,
)

from ostinato.client import Unstructured
from ostinato.client.transport.protocol import ConnectionLost, Request

FIRST = [config_map("x", key="1"), config_map("z", "other"), cluster_role("r")]
SECOND = [config_map("x", key="2"), {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}}]
SECOND_MARKED = ["ConfigMap default/x", "Secret default/s"]


class Death:
    """Kills a process when its n-th request is performed: the answer and all others are lost."""

    def __init__(self, stage: ControllerStage, at: int) -> None:
        self._left = at
        self.has_come = False
        self._stage = stage
        stage.transport.before, stage.transport.after = self._check, self._count

    def _check(self, _: Request) -> None:
        if self.has_come:
            raise ConnectionLost("dead")

    def _count(self, request: Request) -> None:
        self._left -= 1
        self.has_come = self._left <= 0
        self._check(request)

    def over(self) -> None:
        self._stage.transport.before = self._stage.transport.after = lambda _: None


async def lives(stage: ControllerStage, at: int, work: Callable[[], Awaitable[object]]) -> bool:
    """Return whether the process has done its work before its death."""
    death = Death(stage, at)
    try:
        await work()
    except ConnectionLost:
        pass
    finally:
        death.over()
    return not death.has_come


async def replaced(stage: ControllerStage, old: Sets) -> Sets:
    await old.informers.abort()
    return Sets(stage)


def each_death(scene: Callable[[ControllerStage, int], Awaitable[bool]]) -> int:
    """Play a scene with a death at each request, until it is survived, and return the number of deaths."""
    for at in range(1, 100):
        survived: list[bool] = []

        @staged
        async def play(stage: ControllerStage, at: int = at, survived: list[bool] = survived) -> None:
            survived.append(await scene(stage, at))

        play()
        if survived == [True]:
            return at - 1
    raise AssertionError("the scene does not end")


def test_a_process_that_dies_while_it_applies_leaves_no_orphan() -> None:
    async def scene(stage: ControllerStage, at: int) -> bool:
        made = await sets(stage)
        survived = await lives(stage, at, lambda: made.apply(*FIRST))
        again = await replaced(stage, made)
        await stage.user.delete(Unstructured(WIDGET), "a")
        if await stage.user.get(Unstructured(WIDGET), "a", missing=None) is not None:
            assert await again.finalize() == []
            assert await marked(stage) == []
        for each in await marked(stage):
            assert each == "ConfigMap default/x", f"{each} is not deleted by the garbage collector"
        return survived

    assert each_death(scene) > 8


def test_a_process_that_dies_while_it_changes_a_set_is_completed_by_the_next() -> None:
    async def scene(stage: ControllerStage, at: int) -> bool:
        made = await sets(stage)
        assert (await made.apply(*FIRST)).is_complete
        survived = await lives(stage, at, lambda: made.apply(*SECOND))
        again = await replaced(stage, made)
        await again.apply(*SECOND)
        assert (await again.apply(*SECOND)).is_complete
        assert await marked(stage) == SECOND_MARKED
        owner = await again.owner()
        assert owner["metadata"]["annotations"] == {"kinds.ostinato.dev/sets": "ConfigMap.v1,Secret.v1"}
        return survived

    assert each_death(scene) > 8


def test_a_process_that_dies_while_it_finalizes_is_completed_by_the_next() -> None:
    async def scene(stage: ControllerStage, at: int) -> bool:
        made = await sets(stage)
        assert (await made.apply(*FIRST)).is_complete
        await stage.user.delete(Unstructured(WIDGET), "a")
        survived = await lives(stage, at, made.finalize)
        again = await replaced(stage, made)
        if await stage.user.get(Unstructured(WIDGET), "a", missing=None) is not None:
            assert await again.finalize() == []
        assert await marked(stage) == []
        assert await stage.user.get(Unstructured(WIDGET), "a", missing=None) is None
        return survived

    assert each_death(scene) > 5


def test_a_process_that_dies_while_it_recreates_is_completed_by_the_next() -> None:
    async def scene(stage: ControllerStage, at: int) -> bool:
        made = await sets(stage)
        await made.apply(config_map("x", key="1"))
        desired = config_map("x", key="2")
        survived = await lives(stage, at, lambda: made.apply(desired, method="Recreate"))
        again = await replaced(stage, made)
        for _ in range(2):
            await again.apply(desired, method="Recreate")
        assert (await stage.user.get(Unstructured(CONFIG_MAP), "x"))["data"] == {"key": "2"}
        return survived

    assert each_death(scene) > 3
