"""Predicates: which events pass."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from tests.stage.kinds import Widget

from ostinato.api.object import kind_of
from ostinato.cache import Added, Deleted, Event, Updated
from ostinato.cache.store.entry import CollectionInfo, Entry
from ostinato.cache.store.entry_decoder import EntryDecoder
from ostinato.controllers import (
    Predicate,
    added,
    all_of,
    annotation_changed,
    any_of,
    deleted,
    generation_changed,
    having_labels,
    in_namespaces,
    label_changed,
    none_of,
    on_update,
    resource_version_changed,
    updated,
    where,
)


def entry(version: str = "1", **metadata: Any) -> Entry:
    document = {
        "apiVersion": "example.dev/v1",
        "kind": "Widget",
        "metadata": {"name": "a", "namespace": "default", "uid": "u", "resourceVersion": version, **metadata},
        "spec": {"size": int(version)},
    }
    return EntryDecoder(CollectionInfo(kind_of(Widget))).decode(msgspec.json.encode(document))


PLAIN = entry(generation=1)
CASES: list[tuple[Predicate, Entry, bool]] = [
    (resource_version_changed, entry("2", generation=1), True),
    (resource_version_changed, PLAIN, False),
    (generation_changed, entry("2", generation=2), True),
    (generation_changed, entry("2", generation=1), False),
    (label_changed, entry("2", labels={"a": "b"}), True),
    (label_changed, entry("2", labels={}), False),
    (label_changed, entry("2", annotations={"a": "b"}), False),
    (annotation_changed, entry("2", annotations={"a": "b"}), True),
    (annotation_changed, entry("2", annotations={}), False),
    (annotation_changed, PLAIN, False),
]


@pytest.mark.parametrize(("predicate", "new", "passes"), CASES)
def test_update_predicates_compare_old_and_new(predicate: Predicate, new: Entry, passes: bool) -> None:
    assert predicate(Updated(PLAIN, new)) is passes


@pytest.mark.parametrize("predicate", [resource_version_changed, generation_changed, label_changed, annotation_changed])
def test_events_other_than_updates_pass(predicate: Predicate) -> None:
    assert predicate(Added(PLAIN))
    assert predicate(Added(PLAIN, initial=True))
    assert predicate(Deleted(PLAIN))


def yes(event: Event) -> bool:
    return True


def no(event: Event) -> bool:
    return False


def never(event: Event) -> bool:
    raise AssertionError("asked without need")


EVENT = Added(PLAIN)


def test_combined_predicates_short_circuit() -> None:
    assert all_of(yes, yes)(EVENT)
    assert not all_of(no, never)(EVENT)
    assert any_of(yes, never)(EVENT)
    assert not any_of(no, no)(EVENT)
    assert not none_of(yes)(EVENT)
    assert none_of(no, no)(EVENT)
    assert all_of()(EVENT)
    assert not any_of()(EVENT)
    assert (Predicate(yes) & yes)(EVENT)
    assert not (Predicate(yes) & no)(EVENT)
    assert (Predicate(no) | yes)(EVENT)
    assert not (~Predicate(yes))(EVENT)


def test_predicates_have_a_repr() -> None:
    assert str(generation_changed & ~deleted) == "(generation changed & ~deleted)"
    assert repr(any_of(yes, Predicate(no))) == "<predicate (yes | no)>"


def test_the_event_type_can_be_tested() -> None:
    update = Updated(PLAIN, PLAIN)
    assert [added(each) for each in (EVENT, update, Deleted(PLAIN))] == [True, False, False]
    assert [updated(each) for each in (EVENT, update, Deleted(PLAIN))] == [False, True, False]
    assert [deleted(each) for each in (EVENT, update, Deleted(PLAIN))] == [False, False, True]


def test_labels_count_before_or_after_an_update() -> None:
    web = having_labels("app=web")
    labelled = entry("2", labels={"app": "web"})
    assert web(Added(labelled))
    assert not web(EVENT)
    assert web(Updated(labelled, PLAIN))
    assert web(Updated(PLAIN, labelled))
    assert not web(Updated(PLAIN, PLAIN))


def test_namespaces_and_functions_of_objects() -> None:
    assert in_namespaces("default", "other")(EVENT)
    assert not in_namespaces("other")(EVENT)
    assert where(Widget, lambda each: each.spec.size == 2)(Updated(PLAIN, entry("2")))
    assert not where(Widget, lambda each: each.spec.size == 2)(EVENT)
    assert on_update(lambda old, new: False)(EVENT)
