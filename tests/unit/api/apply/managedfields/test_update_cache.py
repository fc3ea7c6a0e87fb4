"""An update that was seen before gives what it would give anew."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from ostinato.api.apply import FieldManager, field_path, from_paths, without
from ostinato.api.gvk import GroupVersionKind
from ostinato.api.schema import Schema

KIND = GroupVersionKind("example.dev", "v1", "Widget")
_TEXT = {"type": "string"}
_ROWS = {
    "type": "array",
    "x-kubernetes-list-type": "map",
    "x-kubernetes-list-map-keys": ["k"],
    "items": {"type": "object", "properties": {"k": _TEXT, "v": _TEXT}},
}
_ADDRESSES = {
    **_ROWS,
    "x-kubernetes-list-map-keys": ["ip"],
    "items": {"type": "object", "properties": {"ip": _TEXT, "v": _TEXT}},
}
_PART = {"type": "object", "properties": {"a": _TEXT, "b": _TEXT, "rows": _ROWS, "ips": _ADDRESSES}}
_TOP = {
    "apiVersion": _TEXT,
    "kind": _TEXT,
    "metadata": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
}
SCHEMA = Schema.of({"type": "object", "properties": {**_TOP, "spec": _PART, "status": _PART}}, {})
STATUS = {KIND.api_version: without(from_paths(field_path("spec"), field_path("metadata")))}

_TEXTS = st.sampled_from(["x", "y"])
_PARTS = st.fixed_dictionaries(
    {},
    optional={
        "a": _TEXTS,
        "b": _TEXTS,
        "rows": st.lists(st.fixed_dictionaries({"k": _TEXTS}, optional={"v": _TEXTS}), max_size=3),
        "ips": st.lists(st.fixed_dictionaries({"ip": st.sampled_from("pqr")}, optional={"v": _TEXTS}), max_size=3),
        "odd": st.just(1),  # which the schema does not know
    },
)
_WRITES = st.lists(st.tuples(_PARTS, _PARTS, st.sampled_from(["me", "you", ""]), st.booleans()), max_size=6)


def fresh() -> dict[bool, FieldManager]:
    """By whether it is for the status."""
    schemas = {KIND.api_version: SCHEMA}
    return {False: FieldManager(KIND, schemas), True: FieldManager(KIND, schemas, subresource="status", allowed=STATUS)}


def histories(managers: Any, writes: list[Any], hour: int) -> list[dict[str, Any]]:
    """An object after each of some writes; `managers` gives the field managers for each."""
    head = {"apiVersion": KIND.api_version, "kind": KIND.kind}
    live: dict[str, Any] | None = None
    found = []
    for second, (spec, status, who, through_status) in enumerate(writes):
        metadata = {"name": "a"} if live is None else {**live["metadata"], "uid": "u"}
        new = {**head, "metadata": metadata, "spec": spec, "status": status}
        live = managers()[through_status].update(live, new, who, f"2024-05-06T{hour:02}:00:{second:02}Z")
        found.append(live)
    return found


# What `p`, `q` and `r` stand for in one round: in different orders, prefixes of each other, and placeholders.
_NAMES = st.lists(
    st.sampled_from(["10.0.0.1", "10.0.0.12", "9.0.0.1", "fd00::1", "#0", "#1", "a b"]), min_size=3, max_size=3
)


def renamed(writes: list[Any], names: list[str]) -> list[Any]:
    """The writes with other addresses."""

    def of_part(part: dict[str, Any]) -> dict[str, Any]:
        ips = [{**each, "ip": names["pqr".index(each["ip"])]} for each in part.get("ips", ())]
        return {**part, "ips": ips} if ips else part

    return [(of_part(spec), of_part(status), who, through) for spec, status, who, through in writes]


@given(_WRITES, st.lists(_NAMES, min_size=3, max_size=3))
@settings(max_examples=300, deadline=None)
def test_cached_results_equal_computed_ones_whatever_the_addresses(writes: list[Any], rounds: list[list[str]]) -> None:
    kept = fresh()
    for hour, names in enumerate(rounds):
        remembered = histories(lambda: kept, renamed(writes, names), hour)
        anew = histories(fresh, renamed(writes, names), hour)
        assert json.dumps(remembered) == json.dumps(anew)


@given(_WRITES)
@settings(max_examples=200, deadline=None)
def test_cached_results_equal_computed_ones(writes: list[Any]) -> None:
    kept = fresh()
    for hour in (1, 2, 1):
        remembered = histories(lambda: kept, writes, hour)
        anew = histories(fresh, writes, hour)
        assert json.dumps(remembered) == json.dumps(anew)


def test_cached_results_have_the_times_of_the_object() -> None:
    managers = fresh()
    writes = [({"a": "x"}, {}, "me", False), ({"a": "x"}, {"b": "x"}, "you", True)]
    for hour in (1, 2):
        entries = histories(lambda: managers, writes, hour)[-1]["metadata"]["managedFields"]
        assert [(entry["manager"], entry["time"]) for entry in entries] == [
            ("me", f"2024-05-06T{hour:02}:00:00Z"),
            ("you", f"2024-05-06T{hour:02}:00:01Z"),
        ]


def test_objects_that_differ_in_their_owners_share_a_result() -> None:
    manager = FieldManager(KIND, {KIND.api_version: None})
    head = {"apiVersion": KIND.api_version, "kind": KIND.kind}
    for number in range(200):
        owners = {".": {}, f'k:{{"uid":"{number}"}}': {}}
        entry = {
            "manager": "me",
            "operation": "Update",
            "apiVersion": KIND.api_version,
            "time": "2024-05-06T01:00:00Z",
            "fieldsType": "FieldsV1",
            "fieldsV1": {"f:metadata": {"f:ownerReferences": owners}},
        }
        live = {**head, "metadata": {"name": "a", "uid": "u", "managedFields": [entry]}}
        written = manager.update(live, {**live, "spec": number}, "me", "2024-05-06T02:00:00Z")
        [found] = written["metadata"]["managedFields"]
        assert found["fieldsV1"] == {"f:metadata": {"f:ownerReferences": owners}, "f:spec": {}}
    assert len(manager._update_cache._known) == 1
