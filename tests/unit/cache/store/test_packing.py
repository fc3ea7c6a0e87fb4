"""Packing: objects that are like others take little memory, and are read as they came."""

from __future__ import annotations

from random import Random
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.cache.running import Recorder, with_informer
from tests.unit.cache.scripted import ScriptedServer

from ostinato.api.gvk import NamespacedName
from ostinato.api.object import kind_of
from ostinato.cache import FeedOptions, Informer
from ostinato.cache.store.entry import CollectionInfo, Entry
from ostinato.cache.store.entry_decoder import EntryDecoder
from ostinato.cache.store.indexes import by_field
from ostinato.cache.store.packing import LARGEST, Packer
from ostinato.cache.store.store import Store
from ostinato.client.views import MetadataOf
from ostinato.kinds.core_v1 import Pod
from ostinato.world import Simulation

DECODER = EntryDecoder(CollectionInfo(kind_of(Pod)), fields=[("spec", "nodeName")])
ALIKE = {"containers": [{"name": f"container-{number}", "image": "nginx"} for number in range(20)]}
TWINS = 5


def pod(name: str, spec: dict[str, Any], version: int = 1) -> Entry:
    metadata = {"name": name, "namespace": "default", "uid": name, "resourceVersion": str(version)}
    return DECODER.decode(msgspec.json.encode({"metadata": metadata, "spec": spec}))


def noise(seed: int, size: int = 1000) -> dict[str, Any]:
    """What is like nothing else."""
    return {"nodeName": Random(seed).randbytes(size // 2).hex()}


def kept(store: Store, name: str) -> Entry:
    found = store.get(NamespacedName("default", name))
    assert found is not None
    return found


def test_objects_that_are_alike_take_a_fraction_of_their_size() -> None:
    packer = Packer()
    came = [pod(f"a-{number}", {**ALIKE, "nodeName": f"node-{number}"}) for number in range(TWINS)]
    first, *others = [packer.pack(each) for each in came]
    assert not first.reference
    for each in others:
        assert each.reference is first.suffix
        assert len(each.suffix) * 10 < len(first.suffix)


def test_packed_objects_are_read_unchanged() -> None:
    packer = Packer()
    for number in range(TWINS):
        came = pod(f"a-{number}", {**ALIKE, "nodeName": f"node-{number}"}, version=7)
        found = packer.pack(came)
        assert found.data == came.data
        assert found.metadata_json == came.metadata_json
        assert found.dict() == came.dict()
        assert found.read(Pod) == came.read(Pod)
        assert found.read(MetadataOf(Pod)) == came.read(MetadataOf(Pod))
        assert (found.key, found.uid, found.resource_version) == (came.key, came.uid, came.resource_version)
        assert found.same_state(came)


def test_a_dissimilar_object_is_not_packed_and_becomes_a_dictionary() -> None:
    packer = Packer()
    packer.pack(pod("a", ALIKE))
    other = packer.pack(pod("b", noise(1)))
    assert not other.reference
    assert packer.pack(pod("c", noise(1))).reference is other.suffix


def test_a_newer_state_uses_the_dictionary_of_the_previous_one() -> None:
    packer = Packer()
    reference = packer.pack(pod("a", ALIKE)).suffix
    before = packer.pack(pod("b", ALIKE))
    packer.pack(pod("c", noise(1)))
    assert packer.pack(pod("b", {**ALIKE, "nodeName": "n"}, 2), before.reference).reference is reference


@pytest.mark.parametrize("spec", [{"nodeName": "a"}, {"nodeName": "a" * (LARGEST + 1)}])
def test_small_and_very_large_objects_are_not_packed(spec: dict[str, Any]) -> None:
    packer = Packer()
    packer.pack(pod("a", spec))
    assert not packer.pack(pod("b", spec)).reference


def test_of_many_that_are_like_none_few_are_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    compared = 0

    def compress(data: bytes, _: bytes) -> bytes:
        nonlocal compared
        compared += 1
        return data

    packer = Packer()
    monkeypatch.setattr("ostinato.cache.store.packing._compress", compress)
    for number in range(160):
        packer.pack(pod("a", noise(number)))
    assert 3 <= compared <= 15


def test_after_many_that_are_like_none_those_that_are_alike_are_packed_again() -> None:
    packer = Packer()
    for number in range(50):
        packer.pack(pod("a", noise(number)))
    assert sum(bool(packer.pack(pod("b", ALIKE)).reference) for _ in range(60)) >= 40


@given(
    specs=st.lists(st.dictionaries(st.text(max_size=3), st.text(min_size=100, max_size=300), max_size=4), max_size=8)
)
@settings(max_examples=100)
def test_whatever_objects_are_like_they_are_read_as_they_came(specs: list[dict[str, str]]) -> None:
    packer = Packer()
    for number, spec in enumerate(specs):
        came = pod(str(number), spec)
        assert packer.pack(came).data == came.data


# In a store


def test_listed_objects_are_packed_on_arrival() -> None:
    store = Store([by_field("spec.nodeName")])
    replacement = store.replacement()
    for number in range(TWINS):
        replacement.put(pod(f"a-{number}", {**ALIKE, "nodeName": f"node-{number}"}))
    store.replace(replacement, "10")
    assert sum(bool(each.reference) for each in store) == TWINS - 1
    assert all(each.fields is None for each in store)
    assert [each.key.name for each in store.by_index("spec.nodeName", "node-3")] == ["a-3"]


def test_changed_objects_are_packed_when_idle() -> None:
    store = Store([by_field("spec.nodeName")])
    for number in range(TWINS):
        store.put(pod(f"a-{number}", {**ALIKE, "nodeName": f"node-{number}"}))
    assert not any(each.reference for each in store)
    store.pack(2)
    assert store.unpacked
    store.pack(10)
    assert not store.unpacked
    assert sum(bool(each.reference) for each in store) == TWINS - 1
    assert all(each.fields is None for each in store)
    assert [each.key.name for each in store] == [f"a-{number}" for number in range(TWINS)]
    assert store.by_index("spec.nodeName", "node-2")[0].dict()["spec"]["nodeName"] == "node-2"


def test_objects_deleted_before_packing_stay_deleted() -> None:
    store = Store()
    store.put(pod("a", ALIKE))
    before = store.replacement()
    store.remove(pod("a", ALIKE, 2))
    assert not store.unpacked  # what comes and goes would be remembered for as long as there is no quiet
    store.put(pod("b", ALIKE))
    store.replace(before, "3")
    store.pack(10)
    assert not store.unpacked
    assert len(store) == 0


def test_an_object_that_changes_several_times_before_it_is_packed_keeps_its_reference() -> None:
    store = Store()
    for name in ("a", "b"):
        store.put(pod(name, ALIKE))
        store.pack(1)
    reference = kept(store, "b").reference
    store.put(pod("c", noise(1)))
    store.pack(1)
    for version in (2, 3):
        store.put(pod("b", {**ALIKE, "nodeName": f"node-{version}"}, version))
    store.pack(1)
    assert reference
    assert kept(store, "b").reference is reference
    assert kept(store, "b").dict()["spec"]["nodeName"] == "node-3"


def test_a_late_index_reads_packed_objects() -> None:
    store = Store()
    for number in range(TWINS):
        store.put(pod(f"a-{number}", {**ALIKE, "nodeName": f"node-{number}"}))
    store.pack(TWINS)
    store.add_index(by_field("spec.nodeName"))
    assert store.index_values("spec.nodeName") == [f"node-{number}" for number in range(TWINS)]


def test_an_informer_packs_changed_objects_when_idle() -> None:
    async def scenario(simulation: Simulation, server: ScriptedServer, informer: Informer) -> None:
        for name in ("x", "y", "z"):
            server.put(name, spec=ALIKE)
        await simulation.clock.sleep(0.1)
        server.put("z", spec={**ALIKE, "nodeName": "node-1"})
        await simulation.clock.sleep(0.9)
        assert not any(entry.reference for entry in informer.store.entries())
        await simulation.clock.sleep(0.2)
        assert sum(bool(entry.reference) for entry in informer.store.entries()) >= 2
        assert [entry.key.name for entry in informer.store.by_index("spec.nodeName", "node-1")] == ["z"]
        assert informer.lister(Pod).get("z", "default").spec.node_name == "node-1"  # type: ignore[union-attr]

    with_informer(scenario, FeedOptions(indexes=(by_field("spec.nodeName"),)))


def test_an_informer_does_not_wait_with_packing_when_much_has_changed() -> None:
    async def scenario(simulation: Simulation, server: ScriptedServer, informer: Informer) -> None:
        for number in range(40):
            server.put(f"x-{number}", spec=ALIKE)
            await simulation.clock.sleep(0.1)
        assert informer.feed_of("default").store.unpacked <= 4  # type: ignore[union-attr]

    with_informer(scenario, FeedOptions(most_unpacked=4))


def test_an_informer_looks_for_indexed_fields_on_the_way_in() -> None:
    async def scenario(simulation: Simulation, server: ScriptedServer, informer: Informer) -> None:
        events = Recorder()
        informer.add_handler(events)
        server.put("x", spec={"nodeName": "node-1"})
        await simulation.clock.sleep(0.1)
        assert events.items[-1].object.fields == {"spec.nodeName": "node-1"}

    with_informer(scenario, FeedOptions(indexes=(by_field("spec.nodeName"),)))
