"""Packing of cached objects: the memory that it saves, and the CPU that it costs, with 20,000 objects.

Three collections: Pods of the same template, Pods with an own image and environment per ReplicaSet of ten, and
ConfigMaps with random contents, which packing cannot reduce. Each is measured with and without packing, in processes of
their own. docs/dev/cache-memory.md states the results.
"""

import gc
import multiprocessing
import random
from collections.abc import Callable
from time import process_time
from typing import Any, Final, NamedTuple

import msgspec

from bench.cache import INDEXES, encoded, resident_bytes
from ostinato.api.object import kind_of
from ostinato.cache import Entry, Store
from ostinato.cache.store.entry import CollectionInfo
from ostinato.cache.store.entry_decoder import EntryDecoder
from ostinato.cache.store.packing import Packer
from ostinato.kinds.core_v1 import ConfigMap, Pod

OBJECTS: Final = 20_000


def main() -> None:
    print(f"\nPacking, {OBJECTS:,} objects")
    context = multiprocessing.get_context("spawn")
    for name, cls, make in (
        ("Pods of one template", Pod, alike),
        ("Pods of 2,000 templates", Pod, varied),
        ("ConfigMaps, random contents", ConfigMap, dissimilar),
    ):
        for packed in (True, False):
            with context.Pool(1) as pool:
                result = pool.apply(_measure, (cls, make), {"packed": packed})
            print(
                f"  {name:<28} {'packed' if packed else 'as received':<12} {result.memory / 1e6:6.1f} MB,"
                f" add {result.add:6.1f} us, get {result.get:6.1f} us, get metadata {result.metadata:5.1f} us"
            )


def alike(number: int) -> bytes:
    return encoded(number)


def varied(number: int) -> bytes:
    """A Pod of one of 2,000 templates: another image and other values of 24 environment variables."""
    template = random.Random(number // 10)
    document = msgspec.json.decode(encoded(number))
    container = document["spec"]["containers"][0]
    container["image"] = f"registry.example.com/team-{template.randrange(50)}/app:{template.getrandbits(64):x}"
    for variable in container["env"]:
        variable["value"] = f"{template.getrandbits(96):x}"
    return msgspec.json.encode(document)


def dissimilar(number: int) -> bytes:
    """A ConfigMap of 2 kB of random text."""
    source = random.Random(number)
    metadata = {
        "name": f"config-{number:05}",
        "namespace": "shop",
        "uid": f"{number}",
        "resourceVersion": f"{number + 1}",
    }
    data = {f"key-{each}": f"{source.getrandbits(2000):x}" for each in range(4)}
    return msgspec.json.encode({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data})


class Result(NamedTuple):
    memory: int  # bytes of the store
    add: float  # microseconds of CPU per object: decode, index, pack
    get: float  # microseconds of CPU per typed read
    metadata: float  # microseconds of CPU per read of metadata


def _measure(cls: type[Any], make: Callable[[int], bytes], *, packed: bool) -> Result:
    if not packed:
        Packer.pack = _as_received  # type: ignore[method-assign]
    decoder = EntryDecoder(CollectionInfo(kind_of(cls)))
    _fill(decoder, make, 100)
    gc.collect()
    before = resident_bytes()
    store, add = _fill(decoder, make, OBJECTS)
    gc.collect()
    memory = resident_bytes() - before
    entries = store.entries()[::10]
    return Result(memory, add, _per_call(entries, lambda each: each.read(cls)), _per_call(entries, Entry.metadata))


def _fill(decoder: EntryDecoder, make: Callable[[int], bytes], count: int) -> tuple[Store, float]:
    """Return a store filled as by a list, and the microseconds per object."""
    store = Store(INDEXES)
    replacement = store.replacement()
    taken = 0.0
    for number in range(count):
        data = make(number)
        begun = process_time()
        replacement.put(decoder.decode(data))
        taken += process_time() - begun
    store.replace(replacement, "1")
    return store, taken / count * 1e6


def _as_received(_: Packer, entry: Entry, reference: bytes = b"") -> Entry:  # noqa: ARG001 - the signature of pack
    return entry.stored()


def _per_call(entries: list[Entry], function: Callable[[Entry], object]) -> float:
    begun = process_time()
    for entry in entries:
        function(entry)
    return (process_time() - begun) / len(entries) * 1e6
