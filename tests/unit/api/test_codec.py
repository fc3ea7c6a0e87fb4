from __future__ import annotations

import copy
import uuid
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ostinato.api.codec import (
    ObjectError,
    WrongKind,
    from_dict,
    from_json,
    list_from_json,
    raw_list_from_json,
    to_dict,
    to_json,
)
from ostinato.api.meta import Condition, DeleteOptions, LabelSelector, ObjectMeta, OwnerReference
from ostinato.api.object import CustomResource, kind_of, origin
from ostinato.api.quantity import Quantity
from ostinato.api.serializer.header import Header, read_header
from ostinato.api.struct import Struct
from ostinato.api.time import Duration, MicroTime, Time


class Part(Struct):
    name: str
    cpu: Quantity | None = None


class Template(Struct):
    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)
    spec: Part


class WidgetStatus(Struct):
    phase: str = ""
    conditions: list[Condition] = []


class WidgetSpec(Struct):
    replicas: int
    ratio: float = 1.0
    paused: bool = False
    parts: list[Part] = []
    limits: dict[str, Quantity] = {}
    secret: bytes = b""
    port: int | str = 0
    either: Part | list[str] | None = None
    extra: Any = None
    since: Time | None = None
    renewed: MicroTime | None = None
    timeout: Duration | None = None
    selector: LabelSelector | None = None
    template: Template | None = None
    templates: list[Template] = []
    named: dict[str, Template] = {}
    starts: Time
    token: uuid.UUID | None = None


class Widget(CustomResource, group="example.dev", version="v1"):
    spec: WidgetSpec
    status: WidgetStatus = msgspec.field(default_factory=WidgetStatus)


class Plain(CustomResource, version="v1"):
    pass


START = Time.parse("2026-01-31T12:00:00Z")


def a_widget(**spec: Any) -> Widget:
    return Widget(metadata=ObjectMeta(name="a", namespace="default"), spec=WidgetSpec(replicas=1, starts=START, **spec))


def a_document(**spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "example.dev/v1",
        "kind": "Widget",
        "metadata": {"name": "a", "namespace": "default"},
        "spec": {"replicas": 1, "starts": "2026-01-31T12:00:00Z", **spec},
    }


# Writing


def test_api_version_and_kind_are_written_first() -> None:
    assert to_json(a_widget()) == (
        b'{"apiVersion":"example.dev/v1","kind":"Widget","metadata":{"name":"a","namespace":"default"},'
        b'"spec":{"replicas":1,"starts":"2026-01-31T12:00:00Z"}}'
    )
    assert list(to_dict(a_widget())) == ["apiVersion", "kind", "metadata", "spec"]


def test_an_object_with_nothing_in_it_is_its_kind() -> None:
    assert to_json(Plain()) == b'{"apiVersion":"v1","kind":"Plain"}'
    assert to_dict(Plain()) == {"apiVersion": "v1", "kind": "Plain"}
    assert from_json(Plain, to_json(Plain())) == Plain()


def test_a_struct_that_is_not_an_object_has_no_type_meta() -> None:
    assert to_json(DeleteOptions(grace_period_seconds=0)) == b'{"gracePeriodSeconds":0}'
    assert to_dict(DeleteOptions(dry_run=["All"])) == {"dryRun": ["All"]}


def test_bytes_and_dict_say_the_same() -> None:
    widget = a_widget(limits={"cpu": Quantity.parse("100m")}, secret=b"\x00\xff", since=START)
    assert msgspec.json.decode(to_json(widget)) == to_dict(widget)


def test_an_empty_status_is_not_written_wherever_it_stands() -> None:
    template = Template(spec=Part(name="p"))
    widget = a_widget(template=template, templates=[template], named={"x": template})
    written = to_dict(widget)
    assert "status" not in written
    assert written["spec"]["template"] == {"spec": {"name": "p"}}
    assert written["spec"]["templates"] == [{"spec": {"name": "p"}}]
    assert written["spec"]["named"] == {"x": {"spec": {"name": "p"}}}
    assert widget.spec.template is template  # writing changes nothing
    assert template.metadata == ObjectMeta()


def test_a_status_in_which_something_is_set_is_written() -> None:
    widget = a_widget(template=Template(metadata=ObjectMeta(name="t"), spec=Part(name="p")))
    widget.status.phase = "Ready"
    assert to_dict(widget)["status"] == {"phase": "Ready"}
    assert to_dict(widget)["spec"]["template"]["metadata"] == {"name": "t"}
    named = a_widget(named={"x": Template(metadata=ObjectMeta(name="t"), spec=Part(name="p"))})
    assert to_dict(named)["spec"]["named"]["x"]["metadata"] == {"name": "t"}


def test_an_optional_struct_that_is_empty_is_written() -> None:
    assert to_dict(a_widget(selector=LabelSelector()))["spec"]["selector"] == {}


def test_leaves_are_texts_on_the_wire() -> None:
    widget = a_widget(
        parts=[Part(name="p", cpu=Quantity.parse("1500m"))],
        since=START,
        renewed=MicroTime.parse("2026-01-31T12:00:00.000001Z"),
        timeout=Duration.parse("1m30s"),
        secret=b"hello",
    )
    spec = to_dict(widget)["spec"]
    assert spec["parts"] == [{"name": "p", "cpu": "1500m"}]
    assert spec["since"] == "2026-01-31T12:00:00Z"
    assert spec["renewed"] == "2026-01-31T12:00:00.000001Z"
    assert spec["timeout"] == "1m30s"
    assert spec["secret"] == "aGVsbG8="
    assert from_dict(Widget, to_dict(widget)) == widget
    assert from_json(Widget, to_json(widget)) == widget


def test_the_zero_time_is_null() -> None:
    widget = Widget(spec=WidgetSpec(replicas=1, starts=Time.parse("0001-01-01T00:00:00Z")))
    assert to_dict(widget)["spec"]["starts"] is None


def test_a_union_is_written_as_the_alternative_it_holds() -> None:
    for either in (Part(name="p"), ["a"], None):
        widget = a_widget(either=either)
        assert from_dict(Widget, to_dict(widget)) == widget


class Choice(Struct):
    template: Template | list[str] | None = None
    anything: Any | None = None


def test_an_empty_struct_in_a_union_is_left_out_too() -> None:
    assert to_dict(Choice(template=Template(spec=Part(name="p")))) == {"template": {"spec": {"name": "p"}}}
    assert to_dict(Choice(template=["a"])) == {"template": ["a"]}
    assert from_dict(Choice, {"template": ["a"], "anything": {"x": None}}).anything == {"x": None}


def test_a_value_without_a_json_form_is_rejected() -> None:
    with pytest.raises(NotImplementedError, match="has no JSON form"):
        to_json(a_widget(extra=object()))

    class Odd(Struct):
        number: complex = 0j

    with pytest.raises(NotImplementedError, match="has no JSON form"):
        from_json(Odd, b'{"number":1}')


# Reading


@pytest.mark.parametrize(
    "data",
    [
        b'{"apiVersion":"v1","kind":"Plain","metadata":{"name":"a"}}',
        b'{"kind":"Plain","apiVersion":"v1","metadata":{"name":"a"}}',
        b'{"metadata":{"name":"a"},"kind":"Plain","apiVersion":"v1"}',
        b'{"metadata":{"name":"a"}}',
        b'{"metadata":{"name":"a"},"kind":null,"apiVersion":""}',
        b' { "kind" : "Plain", "metadata" : { "name" : "a" } } ',
    ],
)
def test_the_kind_may_stand_anywhere_or_be_missing(data: bytes) -> None:
    assert from_json(Plain, data).metadata.name == "a"
    assert from_dict(Plain, msgspec.json.decode(data)).metadata.name == "a"


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ({"apiVersion": "v1", "kind": "Pod"}, "expected v1, Kind=Plain, got v1, Kind=Pod"),
        ({"apiVersion": "v2", "kind": "Plain"}, "expected v1, Kind=Plain, got v2, Kind=Plain"),
        ({"kind": "Pod"}, "expected v1, Kind=Plain, got v1, Kind=Pod"),
        ({"apiVersion": "a/b"}, "expected v1, Kind=Plain, got a/b, Kind=Plain"),
    ],
)
def test_an_object_of_another_kind_is_rejected(said: dict[str, str], message: str) -> None:
    with pytest.raises(WrongKind, match=message):
        from_dict(Plain, said)
    with pytest.raises(WrongKind, match=message):
        from_json(Plain, msgspec.json.encode(said))


def test_the_kind_of_a_class_without_kind_is_not_checked() -> None:
    assert from_json(CustomResource, b'{"kind":"X","metadata":{"name":"a"}}').metadata.name == "a"


def test_null_is_the_same_as_nothing() -> None:
    nothing = dict.fromkeys(("ratio", "paused", "parts", "limits", "secret", "port", "since", "template"))
    document = a_document(**nothing)
    document["status"] = None
    document["metadata"] |= {"labels": None, "ownerReferences": None, "generation": None, "creationTimestamp": None}
    before = copy.deepcopy(document)
    assert from_dict(Widget, document) == a_widget()
    assert document == before
    assert from_json(Widget, msgspec.json.encode(document)) == a_widget()


def test_a_required_field_that_is_missing_is_zero() -> None:
    widget = from_json(Widget, b'{"spec":{"parts":[{}],"template":{}}}')
    assert widget.spec.replicas == 0
    assert widget.spec.parts == [Part(name="")]
    assert widget.spec.template == Template(spec=Part(name=""))
    assert widget.spec.starts.is_zero
    assert from_json(Widget, b"{}").spec.replicas == 0


def test_null_items_and_values_are_zero() -> None:
    widget = from_dict(Widget, a_document(parts=[None], limits={"cpu": None}, named={"x": None}, either=[None]))
    assert widget.spec.parts == [Part(name="")]
    assert widget.spec.limits == {"cpu": Quantity()}
    assert widget.spec.named == {"x": Template(spec=Part(name=""))}
    assert widget.spec.either == [""]


class Zeros(Struct):
    text: str
    number: float
    flag: bool
    data: bytes
    wait: Duration
    moment: MicroTime
    amount: Quantity
    port: int | str
    items: list[str]
    entries: dict[str, str]
    maybe: str | None
    value: Any


def test_every_type_has_a_zero() -> None:
    assert from_dict(Zeros, {}) == Zeros(
        text="",
        number=0.0,
        flag=False,
        data=b"",
        wait=Duration(),
        moment=MicroTime.parse("0001-01-01T00:00:00.000000Z"),
        amount=Quantity(),
        port=0,
        items=[],
        entries={},
        maybe=None,
        value=None,
    )


def test_unknown_fields_are_no_error() -> None:
    assert from_dict(Widget, a_document(added_in_a_newer_version={"a": [1]})) == a_widget()


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        ({"replicas": "1"}, "spec.replicas: expected int, got str"),
        ({"replicas": True}, "spec.replicas: expected int, got bool"),
        ({"replicas": 1.5}, "spec.replicas: expected int, got float"),
        ({"ratio": "1"}, "spec.ratio: expected float, got str"),
        ({"paused": 1}, "spec.paused: expected bool, got int"),
        ({"parts": {}}, "spec.parts: expected list, got dict"),
        ({"parts": [{"name": "a"}, "b"]}, "spec.parts[1]: expected Part, got str"),
        ({"parts": [{"name": 3}]}, "spec.parts[0].name: expected str, got int"),
        ({"limits": []}, "spec.limits: expected dict, got list"),
        (
            {"limits": {"cpu": "x"}},
            (
                "spec.limits[cpu]: expected Quantity: quantities must match the regular expression "
                "'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
            ),
        ),
        ({"secret": 1}, "spec.secret: expected base64 text, got int"),
        ({"secret": "?"}, "spec.secret: expected base64 text"),
        ({"port": []}, "spec.port: expected int | str, got list"),
        ({"port": True}, "spec.port: expected int | str, got bool"),
        ({"either": 1}, "spec.either: expected Part | list, got int"),
        ({"since": 1}, "spec.since: expected Time, got int"),
        (
            {"since": "yesterday"},
            (
                'spec.since: expected Time: parsing time "yesterday" as "2006-01-02T15:04:05Z07:00": '
                'cannot parse "yesterday" as "2006"'
            ),
        ),
        ({"named": {"x": {"spec": []}}}, "spec.named[x].spec: expected Part, got list"),
        ({"token": "x"}, "Invalid UUID - at `$.spec.token`"),
    ],
)
def test_a_value_of_another_type_is_an_error_that_names_object_and_field(spec: dict[str, Any], problem: str) -> None:
    document = a_document(**spec)
    for read in (lambda: from_dict(Widget, document), lambda: from_json(Widget, msgspec.json.encode(document))):
        with pytest.raises(ObjectError) as caught:
            read()
        assert str(caught.value) == f"Widget default/a: {problem}"


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ({"metadata": []}, "Widget: metadata: expected ObjectMeta, got list"),
        ({"metadata": {"name": 1, "namespace": "n"}}, "Widget n: metadata.name: expected str, got int"),
        ({"metadata": {"labels": 1}}, "Widget: metadata.labels: expected dict, got int"),
    ],
)
def test_an_error_names_as_much_of_the_object_as_it_can(document: dict[str, Any], message: str) -> None:
    with pytest.raises(ObjectError) as caught:
        from_dict(Widget, document)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    "data", [b"", b"{", b'{"metadata":{"resourceVersion":"\xff"}}', b"[" * 100_000, b'{"x":' * 100_000]
)
def test_invalid_json_is_an_error(data: bytes) -> None:
    with pytest.raises(ObjectError, match=r"^Widget: "):
        from_json(Widget, data)
    with pytest.raises(ObjectError):
        read_header(data)
    with pytest.raises(ObjectError):
        raw_list_from_json(data)


@pytest.mark.parametrize("rest", [b'"spec":1e400}', b'"metadata":{"name":1e400}}', b'"more":1e400,'])
def test_a_number_that_is_too_large_is_an_error(rest: bytes) -> None:
    head = b'{"apiVersion":"example.dev/v1","kind":"Widget",'
    with pytest.raises(ObjectError, match=r"^Widget: Number out of range"):
        from_json(Widget, head + rest)


@pytest.mark.parametrize("data", [b"[]", b"1", b'"a"', b"null"])
def test_json_that_is_not_an_object_is_an_error(data: bytes) -> None:
    with pytest.raises(ObjectError):
        from_json(Condition, data)
    with pytest.raises(ObjectError):
        raw_list_from_json(data)


def test_a_document_must_be_a_dict() -> None:
    with pytest.raises(ObjectError, match="Widget: expected dict, got list"):
        from_dict(Widget, [])  # type: ignore[arg-type]


_json = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.floats(allow_nan=False) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=5,
)
_spec = st.dictionaries(st.sampled_from(WidgetSpec.__struct_encode_fields__), _json, max_size=6)


@settings(max_examples=200)
@given(st.dictionaries(st.sampled_from(["metadata", "spec", "status", "kind"]), _spec | _json, max_size=4))
def test_any_document_is_read_or_rejected_and_reading_again_gives_the_same(document: dict[str, Any]) -> None:
    before = copy.deepcopy(document)
    try:
        widget = from_dict(Widget, document)
    except ObjectError:
        return
    finally:
        assert document == before
    assert from_dict(Widget, to_dict(widget)) == widget
    assert from_json(Widget, to_json(widget)) == widget


# Lists


def test_a_list_is_read_item_by_item() -> None:
    data = (
        b'{"kind":"PlainList","apiVersion":"v1","metadata":{"resourceVersion":"7","continue":"x"},'
        b'"items":[{"metadata":{"name":"a"}},{"metadata":{"name":"b"},"new":1}]}'
    )
    answer = list_from_json(Plain, data)
    assert [item.metadata.name for item in answer.items] == ["a", "b"]
    assert answer.metadata.resource_version == "7"
    assert answer.metadata.continue_ == "x"
    assert origin(answer.items[1]) == b'{"metadata":{"name":"b"},"new":1}'
    assert kind_of(answer.items[0]).gvk.kind == "Plain"


def test_the_items_of_a_raw_list_are_bytes() -> None:
    raw = raw_list_from_json(b'{"kind":"PlainList","apiVersion":"v1","items":[{"a": 1}]}')
    assert (raw.kind, raw.api_version) == ("PlainList", "v1")
    assert [bytes(item) for item in raw.items] == [b'{"a": 1}']


def test_a_list_of_nothing_may_be_null() -> None:
    assert raw_list_from_json(b'{"items":null,"metadata":null}').items == []
    assert list_from_json(Plain, b"{}").items == []


def test_items_that_are_no_list_are_an_error() -> None:
    with pytest.raises(ObjectError, match=r"not a list of objects: Expected `array \| null`"):
        raw_list_from_json(b'{"items":{}}')


# Headers


def test_a_header_is_read_without_the_rest() -> None:
    header = read_header(
        b'{"spec":{"huge":[1,2,3]},"metadata":{"name":"a","namespace":"default","uid":"u","resourceVersion":"5",'
        b'"generation":2,"labels":{"app":"x"},"finalizers":["f"],"deletionTimestamp":"2026-01-31T12:00:00Z",'
        b'"ownerReferences":[{"apiVersion":"v1","kind":"Pod","name":"p","uid":"1"},'
        b'{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"r","uid":"2","controller":true}]}}'
    )
    assert str(header.key) == "default/a"
    assert (header.uid, header.resource_version, header.generation) == ("u", "5", 2)
    assert header.labels == {"app": "x"}
    assert header.finalizers == ["f"]
    assert header.deletion_timestamp == "2026-01-31T12:00:00Z"
    assert header.controller == OwnerReference(
        api_version="apps/v1", kind="ReplicaSet", name="r", uid="2", controller=True
    )


def test_a_header_forgives_what_objects_do() -> None:
    assert read_header(b"{}") == Header()
    assert read_header(b'{"metadata":null}') == Header()
    assert read_header(b'{"metadata":{"labels":null,"name":null,"ownerReferences":[{}]}}').name == ""
    assert Header().controller is None


def test_a_header_with_a_wrong_type_is_an_error() -> None:
    with pytest.raises(ObjectError, match=r"metadata\.labels: expected dict, got list"):
        read_header(b'{"metadata":{"labels":[]}}')
