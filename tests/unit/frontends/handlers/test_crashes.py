"""An operator that is killed at any of its writes, before or after the server has performed it, and started again."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

import pytest
from tests.stage.handlers import EXAMPLE, definition, example

from ostinato import Client, on
from ostinato.frontends.handlers.operator import Handlers
from ostinato.frontends.handlers.state.stores import RecordObjects
from ostinato.frontends.handlers.state.writing import ObjectWriter
from ostinato.testing import Cluster, VirtualClock


class Killer:
    """Freezes an operator at one of its writes; to be stopped then, as if it had been killed there."""

    def __init__(self, at: int, *, performed: bool) -> None:
        self.at = at
        self.writes = 0
        self._performed = performed

    def patch(self, monkeypatch: pytest.MonkeyPatch) -> None:
        for owner, name in ((ObjectWriter, "_send"), (RecordObjects, "save")):
            monkeypatch.setattr(owner, name, self._around(getattr(owner, name)))

    def _around(self, write: Any) -> Any:
        async def killed(*args: Any, **kwargs: Any) -> Any:
            self.writes += 1
            if self.writes != self.at:
                return await write(*args, **kwargs)
            if self._performed:
                await write(*args, **kwargs)
            await asyncio.get_running_loop().create_future()
            raise AssertionError

        return killed


@pytest.mark.parametrize("keeps", [True, False], ids=["status", "configmap"])
@pytest.mark.parametrize("performed", [False, True], ids=["before", "after"])
async def test_no_handler_is_lost_and_finished_ones_are_not_repeated(
    cluster: Cluster, client: Client, clock: VirtualClock, monkeypatch: pytest.MonkeyPatch, performed: bool, keeps: bool
) -> None:
    await cluster.install(definition(keeps=keeps))
    calls: Counter[str] = Counter()

    def operator() -> Handlers:
        handlers = Handlers("test")
        for name in ("first", "second"):

            @on.create("examples", registry=handlers, id=name)
            async def create(which: str = name) -> Any:
                calls[which] += 1
                return {"done": which}

        for name in ("third", "fourth"):

            @on.delete("examples", registry=handlers, id=name)
            async def delete(which: str = name) -> None:
                calls[which] += 1

        return handlers

    for at in range(1, 100):
        calls.clear()
        await client.create(example())
        killer = Killer(at, performed=performed)
        with monkeypatch.context() as patched:
            killer.patch(patched)
            manager = await cluster.manager(graceful_shutdown=0).start(operator())
            await clock.advance(1)
            if killer.writes < at:
                await client.delete(EXAMPLE, "one")
                await clock.advance(1)
            await manager.end()
        survivor = await cluster.manager().start(operator())
        await clock.advance(1)
        found = await client.get(EXAMPLE, "one", missing=None)
        if found is not None:
            if keeps:
                assert {"first", "second"} <= set(found["status"])
            await client.delete(EXAMPLE, "one")
            await clock.advance(1)
        assert await client.get(EXAMPLE, "one", missing=None) is None
        assert set(calls) == {"first", "second", "third", "fourth"}, f"lost at write {at}"
        repeated = [name for name, count in calls.items() if count > 1]
        assert len(repeated) <= 1, f"repeated at write {at}: {calls}"
        assert max(calls.values()) <= 2
        await survivor.end()
        if killer.writes < at:
            assert at > 5, "writes were counted"
            return
    raise AssertionError("the operator writes without end")
