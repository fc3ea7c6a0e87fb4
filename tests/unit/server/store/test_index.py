from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import nullcontext

import pytest

from ostinato.server.store import index as index_module
from ostinato.server.store.collection import Collection
from ostinato.server.store.local import LocalIndex
from ostinato.server.store.log_memory import MemoryLog
from ostinato.server.store.records import Compacted, Conflict, Entry, Event, OutcomeUnknown, StoreFailed, Write
from ostinato.world import Simulation


class SlowLog:
    """A log that takes a second per batch, and fails on request."""

    def __init__(self, world: Simulation) -> None:
        self._world = world
        self.batches: list[list[Write]] = []
        self.failure: Exception | None = None
        self.closed = False

    def load(self) -> tuple[int, Iterator[tuple[str, str, int, bytes]]]:
        return 0, iter(())

    async def append(self, writes: Sequence[Write]) -> None:
        await self._world.clock.sleep(1)
        if self.failure is not None:
            raise self.failure
        self.batches.append(list(writes))

    def is_outdated(self, collection: str, key: str) -> bool:
        return False

    def close(self) -> None:
        self.closed = True


def describe(data: bytes) -> tuple[dict[str, str], dict[str, str], str]:
    return {}, {}, ""


class Shelf:
    """An index on a slow log, with shorthands for tests."""

    def __init__(self) -> None:
        self.world = Simulation(1)
        self.log = SlowLog(self.world)
        self.index = LocalIndex(self.log, self.world.clock)
        self.things = self.index.collection("things", describe)

    def put(self, key: str, data: bytes = b"x", *, expected: Entry | str | None = "newest") -> asyncio.Task[Entry]:
        """Begin a write; it is pending after one turn of the loop."""
        entry = Entry(key, 0, b"", {}, {}, "")
        at = self.things.newest(key) if expected == "newest" else expected
        assert not isinstance(at, str)
        return asyncio.get_running_loop().create_task(self.index.put(self.things, entry, at, lambda version: data))

    def delete(self, key: str) -> asyncio.Task[int]:
        entry = self.things.newest(key)
        assert entry is not None
        return asyncio.get_running_loop().create_task(self.index.delete(self.things, key, entry))

    def shown(self, prefix: str = "", after: str = "") -> list[str]:
        return [entry.key for entry in self.things.select(prefix, after)]


async def turn() -> None:
    await asyncio.sleep(0)


def test_a_write_is_seen_by_readers_when_it_is_durable_and_by_writers_at_once() -> None:
    shelf = Shelf()

    async def main() -> None:
        task = shelf.put("a")
        await turn()
        assert shelf.shown() == []
        assert shelf.index.version == 1
        assert shelf.things.newest("a") is not None
        entry = await task
        assert entry.version == 2
        assert shelf.shown() == ["a"]
        assert shelf.index.version == 2
        assert shelf.things.pending == {}

    shelf.world.run(main())


def test_versions_begin_above_zero_which_clients_take_for_any() -> None:
    assert LocalIndex(MemoryLog(), Simulation(1).clock).version == 1


def test_writes_that_arrive_during_a_commit_share_one_batch() -> None:
    shelf = Shelf()

    async def main() -> None:
        first = shelf.put("a")
        await turn()
        rest = [shelf.put(key) for key in "bcdef"]
        await asyncio.gather(first, *rest)
        assert [[write.key for write in batch] for batch in shelf.log.batches] == [["a"], ["b", "c", "d", "e", "f"]]
        assert [write.version for batch in shelf.log.batches for write in batch] == [2, 3, 4, 5, 6, 7]

    shelf.world.run(main())


def test_a_write_on_top_of_one_that_is_not_durable_yet_waits_its_turn() -> None:
    shelf = Shelf()

    async def main() -> None:
        one = shelf.put("a", b"1")
        await turn()
        two = shelf.put("a", b"2")
        await turn()
        assert (await one).data == b"1"
        assert shelf.things.entries["a"].data == b"1"
        newest = shelf.things.newest("a")
        assert newest is not None
        assert newest.data == b"2"
        assert (await two).data == b"2"
        assert [event.previous and event.previous.data for event in shelf.things.history] == [None, b"1"]

    shelf.world.run(main())


def test_a_durable_write_that_cannot_be_applied_makes_the_index_unusable_and_is_answered(
    caplog: pytest.LogCaptureFixture,
) -> None:
    shelf = Shelf()

    async def main() -> None:
        await shelf.put("a")
        failed = asyncio.get_running_loop().create_task(shelf.index.failed())
        watcher = shelf.things.hub.subscribe()
        defective = shelf.delete("a")
        await turn()
        del shelf.things.entries["a"]  # the defect: the state in memory is not that of the log
        behind = shelf.put("b")
        await turn()
        with pytest.raises(OutcomeUnknown, match="internal error: KeyError; see the server log"):
            await defective
        with pytest.raises(StoreFailed, match="internal error"):
            await behind
        with pytest.raises(StoreFailed, match="the store is unusable: internal error: KeyError"):
            await shelf.put("c")
        with pytest.raises(StoreFailed, match="the store is unusable"):
            await failed
        assert watcher.closed
        assert shelf.things.hub.subscribe().closed
        await shelf.index.close()
        assert shelf.log.closed

    shelf.world.run(main())
    assert "durable write not applied, restart the server key=a" in caplog.text


def test_a_write_that_expects_another_version_is_a_conflict_and_takes_no_version() -> None:
    shelf = Shelf()

    async def main() -> None:
        old = await shelf.put("a", b"1")
        new = await shelf.put("a", b"2")
        with pytest.raises(Conflict) as caught:
            await shelf.put("a", b"3", expected=old)
        assert caught.value.current is new
        with pytest.raises(Conflict):
            await shelf.put("a", b"3", expected=None)
        with pytest.raises(Conflict):
            await shelf.index.delete(shelf.things, "a", old)
        assert (await shelf.put("b")).version == new.version + 1

    shelf.world.run(main())


def test_delete_create_delete_of_one_key_is_never_mistaken_for_one_delete() -> None:
    """Three writes of a key in three batches: at every moment writers go by the newest."""
    shelf = Shelf()

    async def main() -> None:
        await shelf.put("a", b"1")
        gone = shelf.delete("a")
        await turn()
        again = shelf.put("a", b"2")
        await turn()
        await gone
        assert shelf.shown() == []
        newest = shelf.things.newest("a")
        assert newest is not None
        assert newest.data == b"2"
        gone_again = shelf.delete("a")
        await turn()
        await again
        assert shelf.shown() == ["a"]
        assert shelf.things.newest("a") is None
        await gone_again
        assert shelf.shown() == []
        assert shelf.things.keys == []
        assert shelf.things.pending == {}

    shelf.world.run(main())


def test_an_encoding_that_fails_leaves_nothing_behind() -> None:
    shelf = Shelf()

    def broken(version: int) -> bytes:
        raise ValueError("cannot be encoded")

    async def main() -> None:
        with pytest.raises(ValueError, match="cannot be encoded"):
            await shelf.index.put(shelf.things, Entry("a", 0, b"", {}, {}, ""), None, broken)
        assert shelf.things.pending == {}
        assert (await shelf.put("a")).version == 2

    shelf.world.run(main())


# Failing logs


def test_when_the_log_fails_the_writes_fail_reads_go_on_and_the_next_write_tries_again() -> None:
    shelf = Shelf()

    async def main() -> None:
        await shelf.put("a", b"1")
        shelf.log.failure = OSError("no space left on device")
        refused = [shelf.put("a", b"2"), shelf.put("b")]
        await turn()
        behind = shelf.put("a", b"3")  # based on a write that will fail
        results = await asyncio.gather(*refused, behind, return_exceptions=True)
        assert all(isinstance(result, StoreFailed) for result in results)
        assert str(results[0]) == "the store cannot write: no space left on device"
        assert shelf.index.failure == "no space left on device"
        assert shelf.things.entries["a"].data == b"1"
        assert shelf.shown() == ["a"]
        assert shelf.things.pending == {}
        shelf.log.failure = None
        entry = await shelf.put("a", b"4")
        assert entry.version > 4
        assert shelf.index.failure is None
        assert [event.version for event in shelf.things.history] == [2, entry.version]

    shelf.world.run(main())


def test_a_writer_that_gives_up_does_not_take_its_write_back() -> None:
    shelf = Shelf()

    async def main() -> None:
        task = shelf.put("a")
        await turn()
        task.cancel()
        await shelf.put("b")
        assert shelf.shown() == ["a", "b"]

    shelf.world.run(main())


def test_closing_finishes_the_writes_under_way_ends_the_watches_and_takes_no_more() -> None:
    shelf = Shelf()

    async def main() -> None:
        task = shelf.put("a")
        await turn()
        subscription = shelf.things.hub.subscribe()
        closing = asyncio.get_running_loop().create_task(shelf.index.close())
        await turn()
        with pytest.raises(StoreFailed, match="shutting down"):
            await shelf.put("b")
        await closing
        assert task.done()
        assert shelf.log.closed
        assert [event.key for event in subscription.take()] == ["a"]
        assert subscription.closed
        assert shelf.things.hub.subscribe().closed
        await shelf.index.close()

    shelf.world.run(main())


# Waiting


def test_a_reader_that_stops_waiting_for_a_version_is_removed() -> None:
    shelf = Shelf()

    async def main() -> None:
        await shelf.index.wait_for(1)
        with pytest.raises(TimeoutError):
            async with shelf.world.clock.timeout(3):
                await shelf.index.wait_for(10**18)
        assert shelf.index._waiting == []
        waiting = asyncio.get_running_loop().create_task(shelf.index.wait_for(3))
        await shelf.put("a")
        assert not waiting.done()
        await shelf.put("b")
        await waiting

    shelf.world.run(main())


@pytest.mark.parametrize("fails", [False, True])
def test_a_response_can_wait_until_the_state_it_depends_on_is_durable(fails: bool) -> None:
    shelf = Shelf()

    async def main() -> None:
        await shelf.index.wait_pending()
        task = shelf.put("a")
        await turn()
        if fails:
            shelf.log.failure = OSError("no")
        began = shelf.world.clock.monotonic()
        with pytest.raises(StoreFailed, match="the store cannot write: no") if fails else nullcontext():
            await shelf.index.wait_pending()
        assert shelf.world.clock.monotonic() - began == 1
        assert (shelf.things.newest("a") is None) == fails
        await asyncio.gather(task, return_exceptions=True)

    shelf.world.run(main())


# Reading


def fill(collection: Collection, keys: list[str]) -> None:
    for number, key in enumerate(keys, 1):
        event = Event(key, number, Entry(key, number, b"", {}, {}, ""), None, 0.0)
        collection.apply(event)


def test_a_page_never_leaves_its_namespace_whatever_its_token() -> None:
    collection = Collection("things", describe)
    fill(collection, ["a/1", "a-b/1", "b/1", "b/2", "c/1"])
    assert [e.key for e in collection.select()] == ["a-b/1", "a/1", "b/1", "b/2", "c/1"]
    assert [e.key for e in collection.select("b/")] == ["b/1", "b/2"]
    assert [e.key for e in collection.select("b/", "b/1")] == ["b/2"]
    assert [e.key for e in collection.select("b/", "a/0")] == ["b/1", "b/2"]
    assert [e.key for e in collection.select("b/", "c/0")] == []
    assert [e.key for e in collection.select_at(5, "b/", "a/0")] == ["b/1", "b/2"]
    assert [e.key for e in collection.select_at(3, "b/", "a/0")] == ["b/1"]


def test_history_is_compacted_by_age(monkeypatch: pytest.MonkeyPatch) -> None:
    shelf = Shelf()

    async def main() -> None:
        first = await shelf.put("a", b"1")
        await shelf.put("a", b"2")
        assert [e.data for e in shelf.index.select_at(shelf.things, first.version, "", "")] == [b"1"]
        await shelf.world.clock.sleep(400)
        last = await shelf.put("a", b"3")
        with pytest.raises(Compacted) as caught:
            shelf.index.select_at(shelf.things, first.version, "", "")
        assert caught.value.oldest == shelf.index.compacted == last.version - 1
        with pytest.raises(Compacted):
            shelf.index.since(shelf.things, first.version)
        assert [e.version for e in shelf.index.since(shelf.things, last.version - 1)] == [last.version]

    shelf.world.run(main())


@pytest.mark.parametrize("limit", ["HISTORY_EVENTS", "HISTORY_BYTES"])
def test_history_is_compacted_by_number_and_by_size(monkeypatch: pytest.MonkeyPatch, limit: str) -> None:
    monkeypatch.setattr(index_module, limit, 10 if limit == "HISTORY_EVENTS" else 1000)
    shelf = Shelf()
    others = shelf.index.collection("others", describe)

    async def main() -> None:
        await shelf.index.put(others, Entry("o", 0, b"", {}, {}, ""), None, lambda version: b"x")
        for _ in range(30):
            await shelf.put("a", b"x" * 100)
        assert len(shelf.things.history) == 10
        assert len(others.history) == 0
        assert shelf.index.compacted == shelf.index.version - 10
        assert shelf.index._history_bytes <= 1000

    shelf.world.run(main())


def test_only_recent_events_cache_their_encodings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index_module, "SHARED_EVENTS", 2)
    shelf = Shelf()

    async def main() -> None:
        for number in range(4):
            await shelf.put("a", b"%d" % number)
        for event in shelf.things.history:
            event.encoded["form"] = b"encoded"
        assert [event.encoded.get("form") for event in shelf.things.history] == [None, None, b"encoded", b"encoded"]

    shelf.world.run(main())


def test_a_collection_is_loaded_from_the_log_on_first_use() -> None:
    class Loaded(MemoryLog):
        def load(self) -> tuple[int, Iterator[tuple[str, str, int, bytes]]]:
            return 7, iter([("things", "b", 5, b"B"), ("others", "x", 7, b"X"), ("things", "a", 6, b"A")])

    index = LocalIndex(Loaded(), Simulation(1).clock)
    assert index.version == index.compacted == 7
    things = index.collection("things", lambda data: ({"data": data.decode()}, {"f": "1"}, "uid"))
    assert [(e.key, e.version, e.data, e.labels, e.uid) for e in things.select()] == [
        ("a", 6, b"A", {"data": "A"}, "uid"),
        ("b", 5, b"B", {"data": "B"}, "uid"),
    ]
    assert index.collection("things", describe) is things
    assert set(index.collections) == {"things"}
