"""Caches: reads, index lookups, watch events per second, memory and garbage collections, with 20,000 Pods.

The peers are the usual caches in Python: objects decoded on arrival and copied on read, as typed classes and as dicts.
Memory is measured in separate processes. Targets: a typed read of a Pod in 60 us, its metadata in 5 us, the keys of an
index in 5 us, 50,000 events per second with two indexes, no garbage collection longer than 20 ms.
"""

import asyncio
import copy
import gc
import multiprocessing
import resource
from collections.abc import Callable
from time import process_time
from typing import Any, NamedTuple, Self

import msgspec

from bench.samples import pod
from bench.timing import ROUNDS, compare
from ostinato.api.codec import from_json
from ostinato.api.gvk import GroupVersionKind, NamespacedName
from ostinato.api.object import KindInfo, kind_of
from ostinato.cache import CachedClient, Event, FeedOptions, Informer, Informers, InformerSettings, by_field, by_owner
from ostinato.cache.store.entry import CollectionInfo
from ostinato.cache.store.entry_decoder import EntryDecoder
from ostinato.client.event_stream import ResponseEvents
from ostinato.client.list_watch import ADDED, BOOKMARK, INITIAL_EVENTS_END, RawEvent, WatchOptions
from ostinato.client.views import MetadataOf, Unstructured
from ostinato.kinds.core_v1 import Pod
from ostinato.world import World

PODS = 20_000
EVENTS = 20_000
SLOWEST_PAUSE = 20  # ms, of the garbage collector
WORLD = World.real()
INDEXES = (by_owner(), by_field("spec.nodeName"))


def main() -> None:
    asyncio.run(_reads())
    asyncio.run(_events())
    _memory()


def encoded(number: int, version: int = 0) -> bytes:
    """Return one of many Pods: ten per ReplicaSet, a hundred per node."""
    value = pod(f"web-7d4b9c6f5-{number:05}")
    metadata = value["metadata"]
    metadata["resourceVersion"] = str(version or 100_000 + number)
    metadata["uid"] = f"0f9a3b62-6f0e-4f6c-9a76-{number:012}"
    metadata["ownerReferences"][0]["uid"] = f"5d1d4bb8-64d1-4a4c-8a0f-{number // 10:012}"
    value["spec"]["nodeName"] = f"node-{number // 100}"
    owned = metadata["managedFields"][0]["fieldsV1"]["f:spec"]["f:containers"]['k:{"name":"main"}']
    owned["f:env"] = {f'k:{{"name":"SETTING_{each}"}}': {".": {}, "f:name": {}, "f:value": {}} for each in range(10)}
    return msgspec.json.encode(value)


class Source:
    """A server that sends prepared events and then nothing."""

    gvk: GroupVersionKind = kind_of(Pod).gvk
    namespace = ""

    def __init__(self, events: list[RawEvent]) -> None:
        self._events = events

    async def info(self) -> KindInfo:
        return kind_of(Pod)

    async def list(self, options: Any) -> Any:
        raise NotImplementedError

    async def watch(self, options: WatchOptions) -> "Stream":
        assert options.send_initial_events
        return Stream(self._events)


class Stream:
    def __init__(self, events: list[RawEvent]) -> None:
        self._events = iter(events)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> RawEvent:
        for event in self._events:
            return event
        await asyncio.Event().wait()
        raise StopAsyncIteration

    def close(self) -> None:
        pass


def _bookmark(version: int) -> RawEvent:
    metadata = {"resourceVersion": str(version), "annotations": {INITIAL_EVENTS_END: "true"}}
    return RawEvent(BOOKMARK, msgspec.json.encode({"metadata": metadata}))


# Reads


class _Client:
    """The part of a client that cached reads need."""

    world = WORLD
    namespace = "shop"

    def __init__(self, source: Source) -> None:
        self._source = source

    def list_watch(self, *_: Any, **__: Any) -> Source:
        return self._source


async def _reads() -> None:
    data = [encoded(number) for number in range(1000)]
    live: Any = _Client(Source([*(RawEvent(ADDED, each) for each in data), _bookmark(200_000)]))
    informers = Informers(live, defaults=InformerSettings(feed=FeedOptions(indexes=INDEXES)))
    informer = informers.of(Pod)
    informers.start()
    await informers.synced(timeout=30)
    client = CachedClient(live, informers)
    key = NamespacedName("shop", "web-7d4b9c6f5-00500")
    entry = informer.store.get(key)
    assert entry is not None
    typed, untyped = from_json(Pod, data[500]), msgspec.json.decode(data[500])
    metadata, maps = MetadataOf(Pod), Unstructured.of("v1", "Pod")
    compare(
        f"Cached get of a Pod of {len(data[500])} bytes, {len(entry.data)} of them stored",
        "typed",
        {
            "typed": lambda: now(client.get(Pod, key)),
            "dict": lambda: now(client.get(maps, key)),
            "metadata": lambda: now(client.get(metadata, key)),
            "header": lambda: informer.store.get(key).header,  # type: ignore[union-attr]
            "deepcopy of a typed object": lambda: copy.deepcopy(typed),
            "deepcopy of a dict": lambda: copy.deepcopy(untyped),
        },
    )
    owner = "5d1d4bb8-64d1-4a4c-8a0f-000000000050"
    kept = list(informer.store.entries())
    compare(
        "The keys of the ten Pods of an owner, among 1,000",
        "index",
        {
            "index": lambda: informer.store.index_keys("owner", owner),
            "index, and the entries": lambda: informer.store.by_index("owner", owner),
            "looking at all of them": lambda: [each.key for each in kept if each.key.name[-5:-1] == "0050"],
        },
    )
    await informers.stop()


def now(coroutine: Any) -> Any:
    """Return the result of a coroutine that never suspends."""
    try:
        coroutine.send(None)
    except StopIteration as done:
        return done.value
    raise AssertionError("it waits")


# Events


async def _events() -> None:
    first = [encoded(number) for number in range(1000)]
    changes = [encoded(number % 1000, 300_000 + number) for number in range(EVENTS)]
    decoder = EntryDecoder(CollectionInfo(kind_of(Pod)))
    print("\nWatch events of Pods, per second of one core")
    results: dict[str, float] = {}
    for _ in range(max(ROUNDS // 2, 1)):
        for name, run in (
            ("into the store, two indexes, one handler", lambda: followed(first, changes)),
            ("the same, from the lines of a stream", lambda: followed(first, changes, lines=True)),
            ("decoding alone", lambda: _taken(decoder.decode, changes)),
            ("decoding to classes alone", lambda: _taken(lambda each: from_json(Pod, each), changes)),
            ("decoding to dicts alone", lambda: _taken(msgspec.json.decode, changes)),
        ):
            results[name] = max(results.get(name, 0.0), EVENTS / await run())
    for name, rate in results.items():
        print(f"  {name:<42} {rate:10,.0f} events/s")


async def _taken(function: Callable[[bytes], object], data: list[bytes]) -> float:
    begun = process_time()
    for each in data:
        function(each)
    return process_time() - begun


class _Chunks:
    """A response whose bytes arrive in chunks, as from a socket."""

    def __init__(self, chunks: list[bytes]) -> None:
        self._chunks = chunks

    async def chunks(self) -> Any:
        for chunk in self._chunks:
            yield chunk
        await asyncio.Event().wait()

    def close(self) -> None:
        pass


class _Lines(Source):
    def __init__(self, events: list[RawEvent]) -> None:
        super().__init__(events)
        whole = b"".join([b'{"type":"%b","object":%b}\n' % (each.type.encode(), each.object) for each in events])
        self._chunks = [whole[start : start + (1 << 18)] for start in range(0, len(whole), 1 << 18)]

    async def watch(self, options: WatchOptions) -> Any:  # noqa: ARG002
        answer: Any = _Chunks(self._chunks)
        return ResponseEvents(answer, WORLD.clock, None, "bench")


async def followed(first: list[bytes], changes: list[bytes], *, lines: bool = False) -> float:
    events = [
        *(RawEvent(ADDED, each) for each in first),
        _bookmark(200_000),
        *(RawEvent("MODIFIED", each) for each in changes),
    ]
    source: Any = _Lines(events) if lines else Source(events)
    informer = Informer([source], WORLD, FeedOptions(indexes=INDEXES))
    done = asyncio.Event()
    heard = 0

    def handler(_: Event) -> None:
        nonlocal heard
        heard += 1
        if heard == len(first) + len(changes):
            done.set()

    informer.add_handler(handler)
    begun = process_time()
    informer.start()
    await done.wait()
    taken = process_time() - begun
    await informer.stop()
    return taken


# Memory


def _memory() -> None:
    print(f"\nMemory with {PODS:,} Pods, and the garbage collector")
    context = multiprocessing.get_context("spawn")
    for name, keep in (("ostinato", _keep_cache), ("typed objects", _keep_typed), ("dicts", _keep_dicts)):
        with context.Pool(1) as pool:
            measured = pool.apply(_measure, (keep,))
        over = "" if measured.longest <= SLOWEST_PAUSE else f", over {SLOWEST_PAUSE}"
        print(
            f"  {name:<14} {measured.resident / 1e6:6,.0f} MB resident, {measured.grown / 1e6:4,.0f} of them the cache;"
            f" full collection {measured.full:6.1f} ms, longest {measured.longest:6.1f} ms{over}"
        )


class Measured(NamedTuple):
    resident: int  # bytes of the process
    grown: int  # bytes of them that came with the objects
    full: float  # milliseconds of a full collection
    longest: float  # milliseconds of the longest, while the cache was filled and read


def _measure(keep: Callable[[], object]) -> Measured:
    pauses: list[float] = []
    begun = 0.0

    def note(phase: str, _: dict[str, int]) -> None:
        nonlocal begun
        if phase == "start":
            begun = process_time()
        else:
            pauses.append((process_time() - begun) * 1e3)

    _keep_few()  # whatever is loaded on first use
    before = resident_bytes()
    gc.callbacks.append(note)
    kept = keep()
    worst = max(pauses, default=0.0)
    gc.collect()
    pauses.clear()
    gc.collect()
    full = pauses[0]
    gc.callbacks.remove(note)
    resident = resident_bytes()
    assert kept is not None
    return Measured(resident, resident - before, full, max(worst, full))


def resident_bytes() -> int:
    with open("/proc/self/statm") as statm:  # the peak of getrusage never decreases
        return int(statm.read().split()[1]) * resource.getpagesize()


def _keep_few() -> object:
    return asyncio.run(_filled(10)), from_json(Pod, encoded(1))


def _keep_cache() -> object:
    return asyncio.run(_filled(PODS))


async def _filled(count: int) -> Informer:
    def events() -> Any:
        for number in range(count):
            yield RawEvent(ADDED, encoded(number))
        yield _bookmark(200_000)

    source: Any = Source(events())  # type: ignore[arg-type]
    informer = Informer([source], WORLD, FeedOptions(indexes=INDEXES))
    informer.start()
    await informer.synced(timeout=300)
    for entry in informer.store.entries():
        entry.read(Pod)
    await informer.stop()
    return informer


def _keep_typed() -> object:
    kept = {number: from_json(Pod, encoded(number)) for number in range(PODS)}
    for each in kept.values():
        copy.deepcopy(each)
    return kept


def _keep_dicts() -> object:
    kept = {number: msgspec.json.decode(encoded(number)) for number in range(PODS)}
    for each in kept.values():
        copy.deepcopy(each)
    return kept
