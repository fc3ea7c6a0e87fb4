"""Protobuf: every stable kind as Go writes it, there and back; and what is not protobuf."""

from __future__ import annotations

import base64
import json
from contextlib import suppress
from pathlib import Path as File
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ostinato.api.protobuf import (
    CONTENT_TYPE,
    EncodeError,
    decode,
    decode_watch_event,
    encode,
    frame,
    has_protobuf,
    unframe,
    watch_event,
)
from ostinato.api.protobuf.decoding import read_message
from ostinato.api.protobuf.encoding import write_message
from ostinato.api.protobuf.tables import fields_of
from ostinato.api.protobuf.varint import read_varint, signed, varint
from ostinato.api.wire import DecodeError

VECTORS = json.loads((File(__file__).parents[3] / "data/protobuf/vectors.json").read_text())
POD = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}}
SCHEMA = "k8s.io.apiextensions_apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps"


def name(vector: dict[str, Any]) -> str:
    return f"{vector['apiVersion']}-{vector['kind']}"


@pytest.mark.parametrize("vector", VECTORS, ids=name)
def test_what_go_wrote_is_read_as_go_reads_it(vector: dict[str, Any]) -> None:
    assert decode(base64.b64decode(vector["proto"])) == vector["json"]


@pytest.mark.parametrize("vector", VECTORS, ids=name)
def test_what_is_written_means_the_same_and_is_mostly_the_same_bytes(vector: dict[str, Any]) -> None:
    data = base64.b64decode(vector["proto"])
    written = encode(vector["json"])
    assert decode(written) == vector["json"]
    if b'k":"' not in data and vector["kind"] not in ("SecretList", "Secret"):
        # JSON inside an object may be spaced and escaped in other ways, and empty bytes may be absent
        assert written == data


def minimal(api_version: str, kind: str, **fields: Any) -> dict[str, Any]:
    return {"apiVersion": api_version, "kind": kind, **fields}


@pytest.mark.parametrize(
    ("obj", "decoded"),
    [
        (minimal("v1", "ConfigMap", data={"b": "2", "a": "1"}), {"data": {"a": "1", "b": "2"}}),
        (minimal("v1", "Secret", data={"k": "AAE="}), {"data": {"k": "AAE="}}),
        (minimal("rbac.authorization.k8s.io/v1", "Role"), {"rules": None}),
        (minimal("v1", "Pod", spec={"volumes": [{"name": "v", "emptyDir": {}}]}, metadata={"name": "a"}),
         {"spec": {"volumes": [{"name": "v", "emptyDir": {}}], "containers": None}, "status": {}}),
    ],
)  # fmt: skip
def test_defaults_of_go_stand_where_nothing_was_sent(obj: dict[str, Any], decoded: dict[str, Any]) -> None:
    read = decode(encode(obj))
    assert {key: read[key] for key in decoded} == decoded


def test_items_of_a_list_bear_no_kind() -> None:
    pods = minimal("v1", "PodList", items=[POD, POD], metadata={"resourceVersion": "7"})
    read = decode(encode(pods))
    assert read["metadata"] == {"resourceVersion": "7"}
    assert [item["metadata"]["name"] for item in read["items"]] == ["a", "a"]
    assert "kind" not in read["items"][0]


def test_fields_that_the_message_does_not_have_are_left_out() -> None:
    assert encode({**POD, "foo": 1}) == encode(POD)


@pytest.mark.parametrize("api_version", ["v1", "apps/v1", "meta.k8s.io/v1"])
def test_options_and_statuses_belong_to_every_group(api_version: str) -> None:
    options = minimal(api_version, "DeleteOptions", gracePeriodSeconds=0, propagationPolicy="Background")
    assert decode(encode(options)) == options
    status = minimal(api_version, "Status", status="Failure", code=404, details={"name": "a", "kind": "pods"})
    assert decode(encode(status)) == {**status, "metadata": {}}


@pytest.mark.parametrize(
    ("api_version", "kind", "has"),
    [
        ("v1", "Pod", True),
        ("apps/v1", "DeploymentList", True),
        ("rbac.authorization.k8s.io/v1", "ClusterRole", True),
        ("flowcontrol.apiserver.k8s.io/v1", "FlowSchema", True),
        ("internal.apiserver.k8s.io/v1alpha1", "StorageVersion", True),
        ("apiextensions.k8s.io/v1", "CustomResourceDefinition", True),
        ("apiregistration.k8s.io/v1", "APIService", True),
        ("meta.k8s.io/v1", "PartialObjectMetadata", True),
        ("meta.k8s.io/v1", "Table", False),
        ("example.dev/v1", "Widget", False),
        ("example.dev/v1", "Status", True),
        ("", "", False),
    ],
)
def test_built_in_kinds_have_protobuf_and_others_do_not(api_version: str, kind: str, has: bool) -> None:
    assert has_protobuf(api_version, kind) is has


@pytest.mark.parametrize(
    "obj",
    [
        {},
        {"apiVersion": 1, "kind": []},
        minimal("example.dev/v1", "Widget"),
        minimal("v1", "Pod", metadata="x"),
        minimal("v1", "Pod", metadata={"name": 1}),
        minimal("v1", "Pod", metadata={"generation": "1"}),
        minimal("v1", "Pod", metadata={"generation": 2**70}),
        minimal("v1", "Pod", metadata={"creationTimestamp": "yesterday"}),
        minimal("v1", "Pod", metadata={"labels": {"a": 1}}),
        minimal("v1", "Pod", spec={"containers": 1}),
        minimal("v1", "Secret", data={"a": "not base64!"}),
    ],
)
def test_an_object_of_another_shape_is_rejected(obj: dict[str, Any]) -> None:
    with pytest.raises(EncodeError):
        encode(obj)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"k8s",
        b'{"kind":"Pod"}',
        b"k8s\x00",
        b"k8s\x00\x0a\xff",
        encode(POD)[:-5],
        encode(POD)[:30],
        b"k8s\x00\x0a\x0d\x0a\x02v1\x12\x07Binding\x12\x05\x0a\x10abc",  # a message longer than what holds it
        b"k8s\x00\x0a\x09\x0a\x02v1\x12\x03Pod\x12\x02\x0b\x0c",  # groups
        b"k8s\x00\x0a\x09\x0a\x02v1\x12\x03Pod\x12\x0c" + b"\xff" * 12,  # a number without end
        b"k8s\x00\x0a\x0f\x0a\x0bexample/dev\x12\x00\x12\x00",
    ],
)
def test_broken_data_is_rejected(data: bytes) -> None:
    with pytest.raises(DecodeError):
        decode(data)


def test_a_time_out_of_range_is_rejected() -> None:
    stamp = b"\x08" + varint(2**62)
    with pytest.raises(DecodeError, match="time out of range"):
        read_message("k8s.io.apimachinery.pkg.apis.meta.v1.Time", stamp)


def test_durations_are_text_in_json() -> None:
    message = "k8s.io.apimachinery.pkg.apis.meta.v1.Duration"
    for text in ("1h0m0.5s", "0s", "-3ms"):
        assert read_message(message, write_message(message, text)) == text
    assert read_message(message, write_message(message, None)) == "0s"


def test_a_message_that_ends_within_a_field_is_rejected() -> None:
    with pytest.raises(DecodeError):
        read_message(SCHEMA, b"\x49\x00\x00")  # a double, field 9
    with pytest.raises(DecodeError):
        read_message("k8s.io.api.core.v1.Pod", b"\x0a\x02\x38\x80\x12\x00")  # a number that leaves its message


def test_unknown_fields_are_skipped() -> None:
    extra = varint(1000 << 3) + b"\x01" + varint(1001 << 3 | 1) + b"12345678" + varint(1002 << 3 | 2) + b"\x02ab"
    extra += varint(1003 << 3 | 5) + b"1234"
    message = "k8s.io.api.core.v1.LocalObjectReference"
    assert read_message(message, b"\x0a\x01x" + extra) == {"name": "x"}
    with pytest.raises(DecodeError):
        read_message(message, varint(1001 << 3 | 1) + b"1")


def test_numbers_are_read_packed_and_one_by_one() -> None:
    message = "k8s.io.api.core.v1.PodSecurityContext"
    one_by_one = write_message(message, {"supplementalGroups": [1, 300, -1]})
    packed = b"\x22" + varint(len(b"\x01\xac\x02" + varint(-1))) + b"\x01\xac\x02" + varint(-1)
    assert read_message(message, one_by_one) == {"supplementalGroups": [1, 300, -1]}
    assert read_message(message, packed) == {"supplementalGroups": [1, 300, -1]}


def test_entries_of_a_map_may_lack_key_or_value() -> None:
    message = "k8s.io.api.core.v1.ConfigMap"
    data = b"\x12\x03\x0a\x01k" + b"\x12\x05\x12\x01v\x18\x01"
    assert read_message(message, data)["data"] == {"k": "", "": "v"}
    with pytest.raises(DecodeError):
        read_message(message, b"\x12\x03\x0a\x09k")


def test_schemas_within_schemas_are_bounded() -> None:
    def nested(depth: int) -> dict[str, Any]:
        schema: dict[str, Any] = {"type": "object"}
        for _ in range(depth):
            schema = {"properties": {"a": schema}}
        return schema

    read = read_message(SCHEMA, write_message(SCHEMA, nested(100)))
    assert read == nested(100)
    (number,) = [field.number for field in fields_of(SCHEMA) if field.name == "not"]
    data = b""
    for _ in range(2000):
        data = varint(number << 3 | 2) + varint(len(data)) + data
    with pytest.raises(DecodeError):
        read_message(SCHEMA, data)


def test_lists_within_lists_are_bounded() -> None:
    data = b""
    for _ in range(1500):
        inner = b"\x12" + varint(len(b"\x0a" + varint(len(data)) + data)) + b"\x0a" + varint(len(data)) + data
        data = b"k8s\x00\x0a\x0a\x0a\x02v1\x12\x04List\x12" + varint(len(inner)) + inner
    with pytest.raises(DecodeError):
        decode(data)


def test_an_object_too_deep_to_write_is_rejected() -> None:
    schema: dict[str, Any] = {}
    for _ in range(3000):
        schema = {"not": schema}
    versions = [{"name": "v1", "schema": {"openAPIV3Schema": schema}}]
    with pytest.raises(EncodeError):
        encode(minimal("apiextensions.k8s.io/v1", "CustomResourceDefinition", spec={"versions": versions}))


@pytest.mark.parametrize(
    "schema",
    [
        {"items": {"type": "string"}},
        {"items": [{"type": "string"}, {}]},
        {"additionalProperties": False},
        {"additionalProperties": True},
        {"additionalProperties": {"type": "string"}},
        {"dependencies": {"a": ["b", "c"], "d": {"type": "string"}}},
        {"default": {"a": [1, None]}, "enum": ["a", 1, None], "maximum": 1.5, "$ref": "x", "$schema": "y"},
        {"x-kubernetes-list-map-keys": ["a"], "x-kubernetes-preserve-unknown-fields": False},
    ],
)
def test_schemas_of_custom_resources_survive(schema: dict[str, Any]) -> None:
    assert read_message(SCHEMA, write_message(SCHEMA, schema)) == schema


def test_events_of_a_watch_come_in_frames() -> None:
    event = watch_event("ADDED", encode(POD))
    frames, rest = unframe(event + event + event[:10])
    assert rest == event[:10]
    assert [decode_watch_event(data)["type"] for data in frames] == ["ADDED", "ADDED"]
    assert decode_watch_event(frames[0])["object"]["metadata"] == {"name": "a"}
    assert unframe(b"") == ([], b"")
    assert unframe(frame(b"x")) == ([b"x"], b"")


def test_a_frame_that_is_too_long_is_rejected_before_it_is_read() -> None:
    with pytest.raises(DecodeError, match="longer than 100"):
        unframe(b"\x7f\xff\xff\xff", limit=100)


def test_the_object_of_a_watch_event_may_be_json() -> None:
    data = b"\x0a\x05ADDED\x12\x09\x0a\x07" + b'{"a":1}'
    assert decode_watch_event(data) == {"type": "ADDED", "object": {"a": 1}}
    assert decode_watch_event(b"\x12\x02\x10\x01") == {"type": "", "object": None}
    with pytest.raises(DecodeError):
        decode_watch_event(b"\x12\x02\x0a\x07")


def test_the_content_type_is_that_of_kubernetes() -> None:
    assert CONTENT_TYPE == "application/vnd.kubernetes.protobuf"


@given(st.integers(-(2**63), 2**63 - 1))
def test_numbers_read_back(number: int) -> None:
    data = varint(number)
    value, end = read_varint(data, 0)
    assert (signed(value, 64), end) == (number, len(data))


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(VECTORS), st.data())
def test_any_damage_is_read_or_rejected(vector: dict[str, Any], data: st.DataObject) -> None:
    raw = bytearray(base64.b64decode(vector["proto"]))
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(raw) - 1))
        raw[at] = data.draw(st.integers(0, 255))
    with suppress(DecodeError):
        decode(bytes(raw[: data.draw(st.integers(0, len(raw)))]))


@settings(max_examples=100, deadline=None)
@given(st.binary(max_size=300))
def test_any_bytes_are_read_or_rejected(data: bytes) -> None:
    for message in (SCHEMA, "k8s.io.api.core.v1.Pod"):
        with suppress(DecodeError):
            read_message(message, data)
    with suppress(DecodeError):
        decode(b"k8s\x00\x0a\x09\x0a\x02v1\x12\x03Pod\x12" + varint(len(data)) + data)
