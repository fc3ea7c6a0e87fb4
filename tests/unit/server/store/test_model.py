"""The index against a model with the full history."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ostinato.server.store import index as index_module
from ostinato.server.store.local import LocalIndex
from ostinato.server.store.records import Compacted, Conflict, Entry, StoreFailed, Write
from ostinato.world import Simulation

KEYS = ["a/1", "a/2", "a-b/1", "b/1"]
PREFIXES = ["", "a/", "b/"]


class Log:
    """A log whose durable state is `disk`. Some batches fail, as the test requests."""

    def __init__(self, world: Simulation, failing: set[int]) -> None:
        self._world = world
        self._failing = failing
        self._turn = 0
        self.disk: dict[str, bytes] = {}
        self.writes: list[Write] = []

    def load(self) -> tuple[int, Iterator[tuple[str, str, int, bytes]]]:
        return 0, iter(())

    async def append(self, writes: Sequence[Write]) -> None:
        self._turn += 1
        await self._world.clock.sleep(1)
        if self._turn in self._failing:
            raise OSError("disk full")
        self.writes += writes
        for write in writes:
            if write.data is None:
                del self.disk[write.key]
            else:
                self.disk[write.key] = write.data

    def is_outdated(self, collection: str, key: str) -> bool:
        return False

    def close(self) -> None:
        pass


steps = st.lists(
    st.tuples(
        st.sampled_from(["put", "put", "put", "delete", "stale", "wait", "later"]), st.sampled_from(KEYS), st.booleans()
    ),
    max_size=40,
)


@settings(max_examples=120, deadline=None)
@given(steps=steps, failing=st.sets(st.integers(1, 12), max_size=3), kept=st.sampled_from([3, 8, 1000]))
def test_the_index_agrees_with_a_model_with_full_history(
    steps: list[tuple[str, str, bool]], failing: set[int], kept: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(index_module, "HISTORY_EVENTS", kept)
        world = Simulation(1)
        world.run(check(world, steps, failing))


async def check(world: Simulation, steps: list[tuple[str, str, bool]], failing: set[int]) -> None:
    log = Log(world, failing)
    index = LocalIndex(log, world.clock)
    things = index.collection("things", lambda data: ({}, {}, ""))
    subscription = things.hub.subscribe()
    states: dict[int, dict[str, bytes]] = {index.version: {}}  # the durable state at each resourceVersion
    acknowledged: list[int] = []
    seen: dict[str, Entry | None] = {}  # an old state of each key, for stale writes
    loop = asyncio.get_running_loop()
    tasks: list[asyncio.Task[None]] = []

    async def put(key: str, expected: Entry | None, number: int) -> None:
        entry = await index.put(things, Entry(key, 0, b"", {}, {}, ""), expected, lambda v: b"%d:%d" % (v, number))
        assert any(write.version == entry.version for write in log.writes)  # durable before it is acknowledged
        assert index.version >= entry.version
        acknowledged.append(entry.version)

    async def delete(key: str, expected: Entry) -> None:
        acknowledged.append(await index.delete(things, key, expected))

    for number, (what, key, settle) in enumerate(steps):
        newest = things.newest(key)
        seen.setdefault(key, newest)
        if what == "put":
            tasks.append(loop.create_task(put(key, newest, number)))
        elif what == "delete" and newest is not None:
            tasks.append(loop.create_task(delete(key, newest)))
        elif what == "stale" and seen[key] is not newest:
            with pytest.raises(Conflict):
                await index.put(things, Entry(key, 0, b"", {}, {}, ""), seen[key], lambda v: b"never")
        elif what == "wait":
            with suppress(StoreFailed):
                await index.wait_pending()
        elif what == "later":
            await world.clock.sleep(0.7)
        await asyncio.sleep(0)
        if settle:
            await asyncio.gather(*tasks, return_exceptions=True)
    results = await asyncio.gather(*tasks, return_exceptions=True)
    assert all(result is None or isinstance(result, StoreFailed) for result in results)

    # Acknowledged writes are in the log, once, in order; nothing else is.
    assert [write.version for write in log.writes] == sorted(acknowledged)
    assert things.pending == {}
    state: dict[str, bytes] = {}
    for write in log.writes:
        state = {key: data for key, data in state.items() if key != write.key}
        if write.data is not None:
            state[write.key] = write.data
        states[write.version] = state
    assert {entry.key: entry.data for entry in things.select()} == log.disk == state

    # A watcher from the beginning has every event, in order, with the previous state.
    events = subscription.take()
    assert [event.version for event in events] == [write.version for write in log.writes]
    before: dict[str, bytes] = {}
    for event in events:
        assert (event.previous.data if event.previous else None) == before.get(event.key)
        before = states[event.version]
        assert (event.entry.data if event.entry else None) == before.get(event.key)

    # Older states are exact, or rejected as compacted.
    for version, then in states.items():
        for prefix in PREFIXES:
            for after in ("", "a/1"):
                want = [(k, v) for k, v in sorted(then.items()) if k.startswith(prefix) and k > after]
                if version < index.compacted:
                    with pytest.raises(Compacted):
                        index.select_at(things, version, prefix, after)
                else:
                    found = index.select_at(things, version, prefix, after)
                    assert [(entry.key, entry.data) for entry in found] == want
        if version >= index.compacted:
            assert [e.version for e in index.since(things, version)] == [
                w.version for w in log.writes if w.version > version
            ]
