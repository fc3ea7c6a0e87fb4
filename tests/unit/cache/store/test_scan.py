"""Scanning: the fields that indexes go by are found on the way in."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from ostinato.api.object import kind_of
from ostinato.cache.store.entry import CollectionInfo
from ostinato.cache.store.entry_decoder import EntryDecoder
from ostinato.cache.store.indexes import by_field
from ostinato.cache.store.scan import Scan
from ostinato.cache.store.store import Store
from ostinato.kinds.core_v1 import Pod

NODE = ("spec", "nodeName")


def found(paths: list[tuple[str, ...]], value: dict[str, Any]) -> dict[str, Any] | None:
    scan = Scan(paths)
    return scan.fields(scan.read(msgspec.json.encode({"metadata": {"name": "a"}, **value})))


@pytest.mark.parametrize(
    ("paths", "value", "expected"),
    [
        ([], {"spec": {"nodeName": "n"}}, None),
        ([NODE], {"spec": {"nodeName": "n", "x": 1}}, {"spec.nodeName": "n"}),
        ([NODE], {"spec": {}}, {"spec.nodeName": None}),
        ([NODE], {"spec": None}, {"spec.nodeName": None}),
        ([NODE], {}, {"spec.nodeName": None}),
        ([NODE], {"spec": "a text"}, None),
        ([NODE], {"spec": {"nodeName": 7}}, {"spec.nodeName": 7}),
        ([NODE, ("spec", "hostname")], {"spec": {"hostname": "h"}}, {"spec.nodeName": None, "spec.hostname": "h"}),
        ([("type",), NODE], {"type": "Opaque"}, {"type": "Opaque", "spec.nodeName": None}),
        ([("spec", "my_name")], {"spec": {"my_name": "a", "myName": "b"}}, {"spec.my_name": "a"}),
        ([("my_name",)], {"my_name": "a", "myName": "b"}, {"my_name": "a"}),
        ([("spec",), NODE], {"spec": {"nodeName": "n"}}, {"spec": {"nodeName": "n"}}),
        ([NODE, ("spec",)], {"spec": {"nodeName": "n"}}, {"spec.nodeName": "n"}),
        ([("metadata", "name"), ("kind",), ("spec", "from"), ("spec", "a-b"), ("spec", "_a")], {}, None),
    ],
)
def test_fields_are_found_in_the_pass_over_the_object(
    paths: list[tuple[str, ...]], value: dict[str, Any], expected: dict[str, Any] | None
) -> None:
    assert found(paths, value) == expected


@pytest.mark.parametrize(
    "value", [{"spec": {"nodeName": "n"}}, {"spec": {"nodeName": 7}}, {"spec": "text"}, {"spec": {"nodeName": [1]}}, {}]
)
def test_an_index_has_the_same_values_whether_fields_are_found_on_the_way_in_or_not(value: dict[str, Any]) -> None:
    data = msgspec.json.encode({"metadata": {"name": "a"}, **value})
    index = by_field("spec.nodeName")
    values = []
    for fields in ([], [index.field]):
        store = Store([index])
        store.put(EntryDecoder(CollectionInfo(kind_of(Pod)), fields=fields).decode(data))
        values.append(store.index_values("spec.nodeName"))
    assert values[0] == values[1]


def test_indexes_see_the_transformed_object() -> None:
    data = msgspec.json.encode({"metadata": {"name": "a"}, "spec": {"nodeName": "before"}})
    decoder = EntryDecoder(
        CollectionInfo(kind_of(Pod)), fields=[NODE], transform=lambda pod: {**pod, "spec": {"nodeName": "after"}}
    )
    assert decoder.decode(data).fields == {"spec.nodeName": "after"}
