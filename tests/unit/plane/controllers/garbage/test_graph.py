"""Ownership graph: which nodes are enqueued, and when."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import msgspec

from ostinato.api.gvk import GroupVersion, NamespacedName
from ostinato.api.object import KindInfo
from ostinato.api.serializer.header import Header
from ostinato.cache import Entry
from ostinato.client.discovery.discovery import ApiResource, ApiVersion, Catalogue
from ostinato.plane.controllers.garbage.graph import AbsentOwnerCache, Graph, Reference, references_from
from ostinato.plane.controllers.garbage.monitors import collectable


def info(kind: str = "ConfigMap", plural: str = "configmaps", group: str = "", version: str = "v1") -> KindInfo:
    return KindInfo(
        gvk=GroupVersion(group, version).kind(kind),
        plural=plural,
        singular=kind.lower(),
        namespaced=True,
        short_names=(),
        categories=(),
        list_kind=f"{kind}List",
    )


class Place:
    def __init__(self, kind: KindInfo | None = None) -> None:
        self.info = kind or info()

    def entry(self, key: NamespacedName) -> Entry | None:
        return None


def reference(name: str, **more: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "name": name, "uid": name, **more}


def entry(name: str, *owners: dict[str, Any], namespace: str = "n", finalizers: list[str] | None = None) -> Entry:
    dying = finalizers is not None
    made = SimpleNamespace(
        key=NamespacedName(namespace, name),
        uid=name,
        owners_json=msgspec.json.encode(owners) if owners else b"",
        is_being_deleted=dying,
        header=Header(name=name, finalizers=finalizers),
    )
    return cast("Entry", made)


class Told(Graph):
    def __init__(self, *, complete: bool = True) -> None:
        super().__init__()
        self.looks: list[str] = []
        self.misplaced: list[tuple[str, str]] = []
        self.enqueue = self.looks.append
        self.on_invalid_namespace = lambda node, each: self.misplaced.append((node.uid, each.uid))
        if complete:
            self.complete()

    def taken(self) -> list[str]:
        looks, self.looks[:] = sorted(set(self.looks)), []
        return looks


PLACE = Place()


def test_a_dependent_is_enqueued_only_if_its_owner_is_unknown() -> None:
    graph = Told()
    graph.put(PLACE, entry("owner"))
    graph.put(PLACE, entry("child", reference("owner")))
    assert graph.taken() == []
    graph.put(PLACE, entry("stray", reference("nobody")))
    assert graph.taken() == ["stray"]


def test_missing_owners_are_checked_after_the_initial_lists() -> None:
    graph = Told(complete=False)
    graph.put(PLACE, entry("child", reference("owner")))
    graph.put(PLACE, entry("stray", reference("nobody")))
    graph.put(PLACE, entry("owner"))
    assert graph.taken() == []
    graph.complete()
    assert graph.taken() == ["stray"]


def test_a_deleted_owner_enqueues_its_dependents_and_is_absent() -> None:
    graph = Told()
    graph.put(PLACE, entry("owner"))
    graph.put(PLACE, entry("a", reference("owner")))
    graph.put(PLACE, entry("b", reference("owner")))
    graph.remove("owner")
    assert graph.taken() == ["a", "b"]
    (told,) = references_from(msgspec.json.encode([reference("owner")]))
    assert graph.absent.has(told, "n")


def test_a_reference_that_does_not_match_its_owner_enqueues_the_dependent() -> None:
    graph = Told()
    graph.put(PLACE, entry("owner", namespace="other"))
    graph.put(PLACE, entry("child", reference("owner")))
    assert graph.taken() == ["child"]
    assert graph.misplaced == [("child", "owner")]
    graph.put(PLACE, entry("second", reference("late", kind="Secret")))
    graph.taken()
    graph.put(PLACE, entry("late"))
    assert graph.taken() == ["second"]
    assert graph.misplaced == [("child", "owner")]  # right namespace, other kind


def test_a_waiting_owner_is_enqueued_when_a_blocking_dependent_is_deleted_or_unblocks() -> None:
    graph = Told()
    graph.put(PLACE, entry("owner"))
    for name in ("a", "b", "c"):
        graph.put(PLACE, entry(name, reference("owner", blockOwnerDeletion=True)))
    graph.put(PLACE, entry("owner", finalizers=["foregroundDeletion"]))
    assert graph.taken() == ["a", "b", "c", "owner"]
    graph.put(PLACE, entry("owner", finalizers=["foregroundDeletion"]))
    assert graph.taken() == []
    graph.remove("a")
    assert graph.taken() == ["owner"]
    graph.put(PLACE, entry("b", reference("owner")))
    assert graph.taken() == ["owner"]
    graph.put(PLACE, entry("c"))
    assert graph.taken() == ["owner"]
    assert [each.uid for each in graph.dependents("owner")] == ["b"]


def test_an_orphaning_owner_is_enqueued_and_its_dependents_are_not() -> None:
    graph = Told()
    graph.put(PLACE, entry("owner"))
    graph.put(PLACE, entry("child", reference("owner")))
    graph.put(PLACE, entry("owner", finalizers=["orphan"]))
    assert graph.taken() == ["owner"]


def test_an_object_in_another_api_version_is_the_same_node() -> None:
    graph = Told()
    old, new = Place(info("Gadget", "gadgets", "a.b", "v1")), Place(info("Gadget", "gadgets", "a.b", "v2"))
    graph.put(old, entry("owner"))
    graph.put(new, entry("owner"))
    graph.forget(old)
    node = graph.get("owner")
    assert node is not None
    assert node.kind_store is new


def test_nodes_of_a_removed_kind_are_dropped() -> None:
    graph = Told()
    gadgets = Place(info("Gadget", "gadgets", "a.b"))
    graph.put(gadgets, entry("owner"))
    graph.put(PLACE, entry("child", reference("owner", apiVersion="a.b/v1", kind="Gadget")))
    assert graph.taken() == []
    graph.forget(gadgets)
    assert graph.taken() == ["child"]
    assert graph.get("owner") is None


def test_the_absent_owner_cache_is_bounded() -> None:
    absent = AbsentOwnerCache(most=2)
    told = [Reference("v1", "ConfigMap", name, name, blocks=False) for name in "abc"]
    absent.add("a")
    absent.add_at(told[1], "n")
    absent.add("c")
    assert [absent.has(each, "n") for each in told] == [False, True, True]
    assert not absent.has(told[1], "m")


def test_kinds_are_monitored_in_their_preferred_version_except_events() -> None:
    every = ("delete", "list", "watch", "get")
    catalogue = Catalogue(
        (
            ApiVersion(
                GroupVersion("", "v1"),
                (
                    ApiResource(info(), every),
                    ApiResource(info("Event", "events"), every),
                    ApiResource(info("Binding", "bindings"), ("create",)),
                ),
            ),
            ApiVersion(GroupVersion("a.b", "v2"), (ApiResource(info("Gadget", "gadgets", "a.b", "v2"), every),)),
            ApiVersion(
                GroupVersion("a.b", "v1"),
                (
                    ApiResource(info("Gadget", "gadgets", "a.b", "v1"), every),
                    ApiResource(info("Old", "olds", "a.b", "v1"), every),
                ),
            ),
        )
    )
    assert [str(each) for each in collectable(catalogue)] == [
        "/v1, Kind=ConfigMap",
        "a.b/v2, Kind=Gadget",
        "a.b/v1, Kind=Old",
    ]
