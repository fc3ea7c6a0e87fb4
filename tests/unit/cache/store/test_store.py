"""The store and its indexes."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ostinato.api.gvk import NamespacedName
from ostinato.api.object import kind_of
from ostinato.cache import by, by_field, by_label, by_namespace, by_owner
from ostinato.cache.readable_store import combine
from ostinato.cache.store.entry import CollectionInfo, Entry
from ostinato.cache.store.entry_decoder import EntryDecoder
from ostinato.cache.store.indexes import Index, IndexBy
from ostinato.cache.store.store import NoSuchIndex, Store
from ostinato.kinds.core_v1 import Pod

DECODER = EntryDecoder(CollectionInfo(kind_of(Pod)))


def pod(name: str, version: int = 1, namespace: str = "default", uid: str = "", **fields: Any) -> Entry:
    metadata = {
        "name": name,
        "namespace": namespace,
        "uid": uid or name,
        "resourceVersion": str(version),
        **fields.pop("metadata", {}),
    }
    return DECODER.decode(msgspec.json.encode({"metadata": metadata, **fields}))


def on(node: str) -> dict[str, Any]:
    return {"spec": {"nodeName": node}}


def named(entries: list[Entry]) -> list[str]:
    return [entry.key.name for entry in entries]


def key(name: str, namespace: str = "default") -> NamespacedName:
    return NamespacedName(namespace, name)


# Keys


def test_keys_are_written_in_one_way() -> None:
    assert str(key("a")) == "default/a"
    assert NamespacedName.parse("default/a") == key("a")
    with pytest.raises(ValueError, match="a/b/c"):
        NamespacedName.parse("a/b/c")


# Contents


def test_put_replaces_an_entry_and_returns_the_previous_one() -> None:
    store = Store()
    first, second = pod("a", 1), pod("a", 2)
    assert store.put(first) is None
    assert store.put(second) is first
    assert store.get(key("a")) is second
    assert len(store) == 1
    assert key("a") in store
    assert key("b") not in store
    assert store.get(key("b")) is None


def test_a_store_gives_things_in_the_order_in_which_they_came() -> None:
    store = Store()
    for name in "cab":
        store.put(pod(name))
    store.put(pod("c", 2))
    assert named(store.entries()) == ["c", "a", "b"]
    assert named(list(store)) == ["c", "a", "b"]
    assert [each.name for each in store.keys()] == ["c", "a", "b"]  # noqa: SIM118 - no dict


def test_remove_returns_the_removed_entry() -> None:
    store = Store()
    known = pod("a", 1)
    store.put(known)
    assert store.remove(pod("a", 2)) is known
    assert store.remove(pod("a", 3)) is None
    assert len(store) == 0


def test_the_resource_version_of_a_store_is_that_of_its_last_change() -> None:
    store = Store()
    assert store.resource_version == ""
    store.put(pod("a", 5))
    assert store.resource_version == "5"
    store.put(pod("b", 4))
    assert store.resource_version == "4"
    store.remove(pod("a", 9))
    assert store.resource_version == "9"
    store.bookmark("12")
    assert store.resource_version == "12"
    store.put(DECODER.decode(b'{"metadata":{"name":"without"}}'))
    store.remove(DECODER.decode(b'{"metadata":{"name":"without"}}'))
    assert store.resource_version == "12"
    store.replace(store.replacement(), "20")
    assert store.resource_version == "20"
    assert len(store) == 0


def test_replace_swaps_the_whole_state() -> None:
    store = Store([by_field("spec.nodeName")])
    store.put(pod("a", 1, **on("node-1")))
    store.put(pod("b", 2, **on("node-1")))
    replacement = store.replacement()
    replacement.put(pod("b", 3, **on("node-2")))
    replacement.put(pod("c", 4, **on("node-2")))
    replacement.put(pod("d", 5, **on("node-3")))
    replacement.remove(key("d"))
    assert len(replacement) == 2
    assert named(store.by_index("spec.nodeName", "node-1")) == ["a", "b"]
    before = store.replace(replacement, "6")
    assert list(before) == [key("a"), key("b")]
    assert named(store.entries()) == ["b", "c"]
    assert store.index_values("spec.nodeName") == ["node-2"]


def test_replace_keeps_equal_entries() -> None:
    calls: list[str] = []

    def function(entry: Entry) -> str:
        calls.append(entry.key.name)
        return entry.key.name.upper()

    store = Store([by("upper", function)])
    known = pod("a", 1)
    store.put(known)
    replacement = store.replacement()
    replacement.put(pod("a", 1))
    replacement.put(pod("b", 2))
    store.replace(replacement, "3")
    assert store.get(key("a")) is known
    assert calls == ["a", "b"]
    assert store.index_keys("upper", "A") == [key("a")]


def test_the_same_version_of_another_object_is_not_the_same() -> None:
    store = Store()
    store.put(pod("a", 1, uid="old"))
    replacement = store.replacement()
    replacement.put(pod("a", 1, uid="new"))
    store.replace(replacement, "2")
    found = store.get(key("a"))
    assert found is not None
    assert found.uid == "new"


# Indexes


def test_every_store_has_an_index_by_namespace() -> None:
    store = Store()
    store.put(pod("a", namespace="one"))
    store.put(pod("b", namespace="two"))
    assert named(store.entries("one")) == ["a"]
    assert named(store.entries("")) == ["a", "b"]
    assert store.entries("three") == []
    assert by_namespace() not in store.indexes  # functions are compared by identity
    assert [each.name for each in store.indexes] == ["namespace"]


def test_an_object_has_none_one_or_many_values() -> None:
    store = Store([by("letters", lambda entry: entry.key.name)])
    store.add_index(by("each letter", lambda entry: list(entry.key.name)))
    store.add_index(by("none", lambda entry: None))
    store.put(pod("abba"))
    assert store.index_values("letters") == ["abba"]
    assert store.index_values("each letter") == ["a", "b"]
    assert store.values_of("each letter", key("abba")) == ("a", "b")
    assert store.values_of("letters", key("abba")) == ("abba",)
    assert store.index_values("none") == []
    assert store.index_keys("each letter", "b") == [key("abba")]


def test_index_values_are_not_changed_and_cluster_scoped_objects_have_values() -> None:
    values = ["b", "a", "b"]
    store = Store([by("same", lambda entry: values)])
    for namespace in ("", "default"):
        store.put(pod("x", namespace=namespace))
    assert values == ["b", "a", "b"]
    values.clear()
    assert store.index_keys("same", "a") == [key("x", ""), key("x", "default")]


def test_texts_of_a_class_of_their_own_are_values_too() -> None:
    class Tier(StrEnum):
        FRONT = "front"

    store = Store([by("tier", lambda entry: Tier.FRONT)])
    store.put(pod("a"))
    assert store.index_keys("tier", "front") == [key("a")]


def test_the_empty_text_is_a_value_too() -> None:
    store = Store([by("empty", lambda entry: ""), by("empty in a list", lambda entry: [""])])
    store.put(DECODER.decode(b'{"metadata":{"name":"node"}}'))
    for index in ("empty", "empty in a list", "namespace"):
        assert store.index_keys(index, "") == [key("node", "")]
    store.remove(DECODER.decode(b'{"metadata":{"name":"node"}}'))
    assert store.index_values("empty") == []


def test_an_object_that_changes_moves_in_the_indexes() -> None:
    store = Store([by_field("spec.nodeName")])
    store.put(pod("a", 1, **on("node-1")))
    store.put(pod("a", 2, **on("node-2")))
    assert store.index_keys("spec.nodeName", "node-1") == []
    assert store.index_keys("spec.nodeName", "node-2") == [key("a")]
    store.put(pod("a", 3))
    assert store.index_values("spec.nodeName") == []
    store.put(pod("a", 4, **on("node-3")))
    assert store.index_keys("spec.nodeName", "node-3") == [key("a")]


def test_a_value_that_nothing_has_any_more_takes_no_memory() -> None:
    index = Index(by_field("spec.nodeName"))
    index.put(pod("a", **on("node-1")))
    index.put(pod("b", **on("node-1")))
    index.remove(key("a"))
    assert list(index.keys("node-1")) == [key("b")]
    index.remove(key("b"))
    index.remove(key("b"))
    assert list(index.values()) == []
    assert index._values == {}
    assert index._keys == {}


@pytest.mark.parametrize(
    "function",
    [lambda entry: 1 / 0, lambda entry: 7, lambda entry: [["not hashable"]], lambda entry: [7]],
    ids=["raises", "7", "lists", "[7]"],
)
def test_a_function_that_fails_is_reported_and_the_object_left_out(
    function: Any, caplog: pytest.LogCaptureFixture
) -> None:
    store = Store([by("broken", function), by_label("app")])
    store.put(pod("a", metadata={"labels": {"app": "web"}}))
    assert named(store.entries()) == ["a"]
    assert store.index_values("broken") == []
    assert store.index_keys("label:app", "web") == [key("a")]
    assert "index function failed, object not indexed index=broken object=Pod default/a" in caplog.text


def test_an_unknown_index_is_an_error_that_lists_the_known_ones() -> None:
    store = Store([by_owner()])
    with pytest.raises(NoSuchIndex, match="no index 'missing'; existing indexes: namespace, owner"):
        store.by_index("missing", "x")


def test_a_late_index_includes_existing_objects_and_names_are_unique() -> None:
    store = Store()
    store.put(pod("a", **on("node-1")))
    replacement = store.replacement()
    replacement.put(pod("b", **on("node-2")))
    store.add_index(by_field("spec.nodeName"))
    assert store.index_keys("spec.nodeName", "node-1") == [key("a")]
    store.replace(replacement, "5")
    assert store.index_keys("spec.nodeName", "node-2") == [key("b")]
    with pytest.raises(ValueError, match=r"index 'spec\.nodeName' already exists"):
        store.add_index(by_field("spec.nodeName"))


def test_objects_that_share_a_value_are_found_from_one_of_them() -> None:
    store = Store([by("letters", lambda entry: list(entry.key.name))])
    for name in ("ab", "bc", "cd", "x"):
        store.put(pod(name))
    assert named(store.sharing("letters", key("bc"))) == ["ab", "bc", "cd"]
    assert named(store.by_index("letters", "c")) == ["bc", "cd"]
    assert store.sharing("letters", key("missing")) == []


OWNED = {"metadata": {"ownerReferences": [{"apiVersion": "v1", "kind": "X", "name": "x", "uid": uid} for uid in "12"]}}


@pytest.mark.parametrize(
    ("index", "fields", "values"),
    [
        (by_owner(), OWNED, ("1", "2")),
        (by_owner(), {}, ()),
        (by_label("app"), {"metadata": {"labels": {"app": "web"}}}, ("web",)),
        (by_label("app"), {}, ()),
        (by_field("spec.nodeName"), on("node-1"), ("node-1",)),
        (by_field("spec.nodeName"), {"spec": {"nodeName": ""}}, ("",)),
        (by_field("spec.nodeName"), {"spec": {"nodeName": None}}, ()),
        (by_field("spec.nodeName"), {"spec": None}, ()),
        (by_field("spec.nodeName"), {"spec": "odd"}, ()),
        (by_field("spec.nodeName"), {"spec": {"nodeName": {"a": "b"}}}, ()),
        (by_field("spec.priority"), {"spec": {"priority": 7}}, ("7",)),
        (by_field("spec.hostNetwork"), {"spec": {"hostNetwork": True}}, ("true",)),
        (by_field("spec.weight"), {"spec": {"weight": 1.5}}, ("1.5",)),
        (by_field("spec.volumes[*].name"), {"spec": {"volumes": [{"name": "b"}, {"name": "a"}]}}, ("b", "a")),
        (by_field("spec.volumes[*].name"), {"spec": {"volumes": [{"name": "b"}, {}, {"name": "b"}]}}, ("b",)),
        (by_field("spec.volumes[*].name"), {"spec": {"volumes": [{"name": "b"}, "odd", None]}}, ("b",)),
        (by_field("spec.volumes[*].name"), {"spec": {"volumes": None}}, ()),
        (by_field("spec.finalizers[*]"), {"spec": {"finalizers": ["x", "y", 1]}}, ("x", "y", "1")),
        (by_field("spec.a[*].b[*]"), {"spec": {"a": [{"b": ["1"]}, {"b": ["2", "3"]}]}}, ("1", "2", "3")),
        (by_field("metadata.name"), {}, ("a",)),
    ],
)
def test_values_of_the_indexes_there_are(index: IndexBy, fields: dict[str, Any], values: tuple[str, ...]) -> None:
    store = Store([index])
    store.put(pod("a", **fields))
    assert store.values_of(index.name, key("a")) == values


@pytest.mark.parametrize("path", ["", ".", "spec.", "[*]", "spec.a[0]", "spec.a[*]b", "a..b"])
def test_an_invalid_field_path_is_rejected(path: str) -> None:
    with pytest.raises(ValueError, match="is not a field path"):
        by_field(path)


NAMES = st.sampled_from(["a", "b", "c", "d"])
STEPS = st.lists(
    st.tuples(st.sampled_from(["put", "remove", "replace"]), NAMES, st.lists(st.sampled_from("xyz"), max_size=3)),
    max_size=25,
)


@given(STEPS)
@settings(max_examples=100)
def test_incremental_indexes_equal_rebuilt_ones(steps: list[tuple[str, str, list[str]]]) -> None:
    definition = by("letters", lambda entry: entry.labels.get("letters", "").split())
    store = Store([definition])
    for version, (what, name, letters) in enumerate(steps, 1):
        entry = pod(name, version, metadata={"labels": {"letters": " ".join(letters)}})
        if what == "put":
            store.put(entry)
        elif what == "remove":
            store.remove(entry)
        else:
            replacement = store.replacement()
            for known in store.entries()[: len(letters)]:
                replacement.put(known)
            replacement.put(entry)
            store.replace(replacement, str(version))
        anew = Store([definition])
        for known in store.entries():
            anew.put(known)
        assert {value: set(store.index_keys("letters", value)) for value in store.index_values("letters")} == {
            value: set(anew.index_keys("letters", value)) for value in anew.index_values("letters")
        }


# Several stores as one


def test_several_stores_are_read_as_one() -> None:
    one, two = Store([by_label("app")]), Store([by_label("app")])
    one.put(pod("a", namespace="one", metadata={"labels": {"app": "web"}}))
    two.put(pod("b", namespace="two", metadata={"labels": {"app": "web"}}))
    both = combine([one, two])
    assert len(both) == 2
    assert key("a", "one") in both
    assert key("a", "two") not in both
    assert both.get(key("b", "two")) is two.entries()[0]
    assert both.get(key("b", "one")) is None
    assert both.keys() == [key("a", "one"), key("b", "two")]
    assert named(both.entries()) == ["a", "b"]
    assert named(both.entries("two")) == ["b"]
    assert both.index_keys("label:app", "web") == both.keys()
    assert named(both.by_index("label:app", "web")) == ["a", "b"]
    assert both.index_values("label:app") == ["web"]
    assert combine([one]) is one
