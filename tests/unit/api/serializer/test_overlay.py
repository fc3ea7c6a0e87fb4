from __future__ import annotations

import copy
from dataclasses import dataclass, field
from typing import Annotated, Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from ostinato.api.codec import from_dict, to_dict
from ostinato.api.markers import ListMap, PatchMerge
from ostinato.api.meta import ObjectMeta
from ostinato.api.object import CustomResource
from ostinato.api.quantity import Quantity
from ostinato.api.serializer.overlay import overlay
from ostinato.api.struct import Struct


class Rule(Struct):
    path: str = ""
    weight: int = 1


class Port(Struct):
    port: int
    protocol: str = "TCP"
    rules: list[Rule] = []


class Spec(Struct):
    replicas: int = 1
    image: str | None = None
    tags: list[str] = []
    cpu: Quantity | None = None
    ports: Annotated[list[Port], ListMap("port", "protocol")] = []
    hosts: Annotated[list[Rule], PatchMerge("path")] = []
    by_name: dict[str, Rule] = {}
    nested: list[list[Rule]] = []
    rule: Rule | None = None
    either: Rule | bool | None = None
    extra: Any = None


class Scales(CustomResource, group="example.dev", version="v1"):
    weight: float = 0.5
    weights: list[float] = []
    matrix: list[list[float]] = []
    by_name: dict[str, float] = {}


def test_an_integer_is_not_rewritten_as_a_float() -> None:
    raw = {"weight": 1, "weights": [1, 2], "matrix": [[1, 2], []], "byName": {"a": 3}}
    scales = from_dict(Scales, {"apiVersion": "example.dev/v1", "kind": "Scales", "metadata": {}, **raw})
    assert msgspec.json.encode(overlay(raw, scales)).endswith(msgspec.json.encode(raw)[1:])
    scales.weights[1] = 2.5
    assert overlay(raw, scales)["weights"] == [1, 2.5]


@dataclass
class Plan:
    """What others make of it, they write in fields of their own."""

    size: int
    note: str | None = None
    rules: list[Rule] = field(default_factory=list)


class Planned(CustomResource, group="example.dev", version="v1"):
    plan: Plan
    others: list[Plan] = []


def test_a_dataclass_keeps_what_it_does_not_know_and_forgives_what_structs_do() -> None:
    item = {"size": 2, "new": {"b": 1}, "rules": [{"path": "a", "new": 2}]}
    raw = {"metadata": {}, "plan": {**item, "note": "x"}, "others": [item]}
    planned = from_dict(Planned, raw)
    planned.plan.size, planned.plan.note = 3, None
    planned.others[0].rules[0].path = "b"
    changed = {"size": 2, "new": {"b": 1}, "rules": [{"path": "b", "new": 2}]}
    written = overlay(raw, planned)
    assert written["plan"] == {**item, "size": 3}
    assert written["others"] == [changed]
    assert from_dict(Planned, {"metadata": {}, "plan": {"rules": None}}).plan == Plan(size=0)


class Status(Struct):
    phase: str = ""


class Widget(CustomResource, group="example.dev", version="v1"):
    spec: Spec
    status: Status = msgspec.field(default_factory=Status)


def document(**spec: Any) -> dict[str, Any]:
    return {"apiVersion": "example.dev/v1", "kind": "Widget", "metadata": {"name": "a"}, "spec": spec}


def changed(raw: dict[str, Any], **spec: Any) -> dict[str, Any]:
    """The spec after an update that sets these attributes."""
    before = copy.deepcopy(raw)
    widget = from_dict(Widget, raw)
    for name, value in spec.items():
        setattr(widget.spec, name, value)
    result = overlay(raw, widget)
    assert raw == before
    updated: dict[str, Any] = result["spec"]
    return updated


def test_unknown_fields_survive_wherever_they_stand() -> None:
    raw = document(image="a", new={"x": 1})
    raw["metadata"]["new"] = 1
    raw["status"] = {"new": 2}
    raw["future"] = [1]
    widget = from_dict(Widget, raw)
    widget.spec.image = "b"
    assert overlay(raw, widget) == {
        "apiVersion": "example.dev/v1",
        "kind": "Widget",
        "metadata": {"name": "a", "new": 1},
        "spec": {"image": "b", "new": {"x": 1}},
        "status": {"new": 2},
        "future": [1],
    }


def test_a_known_field_that_is_cleared_is_gone() -> None:
    raw = document(image="a", tags=["x"], rule={"path": "/", "new": 1}, byName={"r": {"new": 1}})
    assert changed(raw, image=None, rule=None) == {"tags": ["x"], "byName": {"r": {"new": 1}}}


def test_a_known_field_that_is_set_to_its_default_is_written() -> None:
    raw = document(replicas=2, tags=["x"], byName={"r": {"new": 1}})
    assert changed(raw, replicas=1, tags=[], by_name={}) == {"replicas": 1, "tags": [], "byName": {}}


def test_a_known_field_that_is_set_is_added() -> None:
    assert changed(document(), image="b", replicas=0) == {"image": "b", "replicas": 0}


def test_an_explicit_default_is_kept() -> None:
    assert changed(document(replicas=1, tags=[]), image="b") == {"replicas": 1, "tags": [], "image": "b"}


def test_a_replaced_status_keeps_only_unknown_fields() -> None:
    for status, left in (({"phase": "Ready", "new": 1}, {"new": 1}), ({"phase": "Ready"}, None), ({}, {})):
        raw = {**document(), "status": status}
        widget = from_dict(Widget, raw)
        widget.status = Status()
        assert overlay(raw, widget).get("status") == left


class Backup(Struct):
    target: Port = msgspec.field(default_factory=lambda: Port(port=80))


class Archive(CustomResource, group="example.dev", version="v1"):
    spec: Backup


def test_an_explicit_struct_default_is_kept() -> None:
    for target in ({"port": 80}, {"port": 80, "new": 1}, {"port": 80, "protocol": "TCP"}):
        raw = {"apiVersion": "example.dev/v1", "kind": "Archive", "metadata": {}, "spec": {"target": target}}
        assert overlay(raw, from_dict(Archive, raw)) == raw


def test_items_of_a_keyed_list_are_found_by_their_keys() -> None:
    raw = document(
        ports=[
            {"port": 80, "protocol": "TCP", "new": "a"},
            {"port": 80, "protocol": "UDP", "new": "b"},
            {"port": 443, "protocol": "TCP", "new": "c"},
        ]
    )
    ports = [Port(port=443), Port(port=53), Port(port=80, protocol="UDP", rules=[Rule(path="/")])]
    assert changed(raw, ports=ports) == {
        "ports": [
            {"port": 443, "protocol": "TCP", "new": "c"},
            {"port": 53},
            {"port": 80, "protocol": "UDP", "new": "b", "rules": [{"path": "/"}]},
        ]
    }


def test_a_merge_key_serves_where_no_list_map_is_declared() -> None:
    raw = document(hosts=[{"path": "/a", "new": 1}, {"path": "/b", "new": 2}])
    assert changed(raw, hosts=[Rule(path="/b", weight=5)]) == {"hosts": [{"path": "/b", "new": 2, "weight": 5}]}


def test_items_without_keys_are_found_by_place_if_their_number_is_the_same() -> None:
    raw = document(ports=[{"port": 80, "rules": [{"path": "/a", "new": 1}, {"path": "/b", "new": 2}]}])
    ports = [Port(port=80, rules=[Rule(path="/x"), Rule(path="/b")])]
    assert changed(raw, ports=ports)["ports"][0]["rules"] == [{"path": "/x", "new": 1}, {"path": "/b", "new": 2}]


def test_items_without_keys_are_found_by_what_they_say_if_their_number_changed() -> None:
    raw = document(
        ports=[{"port": 80, "rules": [{"path": "/a", "new": 1}, {"path": "/b", "new": 2}]}],
        nested=[[{"path": "/a", "new": 1}], [{"path": "/b"}]],
    )
    ports = [Port(port=80, rules=[Rule(path="/b")])]
    spec = changed(raw, ports=ports, nested=[[Rule(path="/a")]])
    assert spec["ports"][0]["rules"] == [{"path": "/b", "new": 2}]
    assert spec["nested"] == [[{"path": "/a", "new": 1}]]


def test_a_map_list_with_invalid_items_is_replaced() -> None:
    assert changed(document(), ports=[Port(port=80)]) == {"ports": [{"port": 80}]}
    widget = Widget(spec=Spec(ports=[Port(port=80)], nested=[[Rule(path="/")]]))
    odd = document(ports=[1, None, {"port": 80, "new": 1}], nested=[1, {}])
    spec = overlay(odd, widget)["spec"]
    assert spec == {"ports": [{"port": 80, "new": 1}], "nested": [[{"path": "/"}]]}


def test_values_of_maps_are_found_by_name() -> None:
    raw = document(byName={"a": {"path": "/a", "new": 1}, "b": {"new": 2}})
    rules = {"a": Rule(path="/x"), "c": Rule(path="/c")}
    assert changed(raw, by_name=rules) == {"byName": {"a": {"path": "/x", "new": 1}, "c": {"path": "/c"}}}


def test_a_struct_in_a_union_keeps_its_unknown_fields() -> None:
    raw = document(either={"path": "/", "new": 1})
    assert changed(raw, either=Rule(path="/x")) == {"either": {"path": "/x", "new": 1}}
    assert changed(raw, either=True) == {"either": True}
    assert changed(document(either=True), either=Rule(path="/x")) == {"either": {"path": "/x"}}


def test_what_means_the_same_keeps_its_form() -> None:
    assert changed(document(cpu="0.5"), image="b") == {"cpu": "0.5", "image": "b"}
    assert changed(document(cpu=2), image="b") == {"cpu": 2, "image": "b"}
    assert changed(document(cpu="0.5"), cpu=Quantity.parse("2")) == {"cpu": "2"}


def test_values_of_any_type_are_taken_as_they_are() -> None:
    assert changed(document(extra={"a": 1, "b": 2}), extra={"a": 3}) == {"extra": {"a": 3}}


def test_an_object_laid_over_something_else_is_itself() -> None:
    widget = Widget(metadata=ObjectMeta(name="a"), spec=Spec(image="b", by_name={"a": Rule(path="/")}, tags=["x"]))
    odd: dict[str, Any] = {"kind": "Other", "spec": [1], "metadata": "text"}
    assert overlay(odd, widget) == to_dict(widget)
    assert overlay({}, widget) == to_dict(widget)
    odd = {"spec": {"image": 5, "byName": [], "tags": {}, "ports": "x", "replicas": []}}
    assert overlay(odd, widget) == to_dict(widget)


_rule = st.fixed_dictionaries({}, optional={"path": st.sampled_from(["/a", "/b", "/c"]), "new": st.integers(0, 3)})
_port = st.fixed_dictionaries(
    {"port": st.integers(1, 3)}, optional={"rules": st.lists(_rule, min_size=1, max_size=2), "new": st.booleans()}
)
_spec = st.fixed_dictionaries(
    {},
    optional={
        "replicas": st.integers(0, 2),
        "image": st.text(max_size=2),
        "ports": st.lists(_port, max_size=3, unique_by=lambda port: port["port"]),
        "hosts": st.lists(_rule, max_size=3, unique_by=lambda rule: rule.get("path")),
        "byName": st.dictionaries(st.sampled_from("ab"), _rule, max_size=2),
        "rule": _rule,
        "cpu": st.sampled_from(["0.5", "1", "1000m"]),
        "new": st.lists(st.integers(), max_size=2),
    },
)


@settings(max_examples=150)
@given(_spec)
def test_an_object_that_did_not_change_is_written_back_as_it_was(spec: dict[str, Any]) -> None:
    raw = document(**spec)
    assert overlay(raw, from_dict(Widget, raw)) == raw


@settings(max_examples=150)
@given(_spec, _spec)
def test_reading_the_result_gives_the_typed_object_back(before: dict[str, Any], after: dict[str, Any]) -> None:
    widget = from_dict(Widget, document(**after))
    assert from_dict(Widget, overlay(document(**before), widget)) == widget


class Step(Struct):
    name: str
    weight: float = 1.0
    cpu: Quantity | None = None
    rule: Rule = msgspec.field(default_factory=Rule)
    plan: Plan | None = None


class Recipe(CustomResource, group="example.dev", version="v1"):
    spec: list[Step] = []


_step = st.fixed_dictionaries(
    {"name": st.sampled_from("ab")},
    optional={
        "weight": st.sampled_from([1, 1.0, 2]),
        "cpu": st.sampled_from([None, "0.5", "500m", 2]),
        "rule": _rule | st.just({"weight": 1}),
        "plan": st.fixed_dictionaries({"size": st.just(1)}, optional={"new": st.integers(0, 3)}),
        "new": st.integers(0, 3),
    },
)


@settings(max_examples=150)
@given(st.lists(_step, min_size=1, max_size=4), st.data())
def test_items_without_keys_stay_as_they_were_when_another_one_goes(steps: list[Any], data: st.DataObject) -> None:
    raw = {"apiVersion": "example.dev/v1", "kind": "Recipe", "metadata": {}, "spec": steps}
    recipe = from_dict(Recipe, raw)
    gone = data.draw(st.sampled_from([step for step in recipe.spec if recipe.spec.count(step) == 1] or [None]))
    if gone is None:  # of several that say the same, nobody can tell which has gone
        return
    left = [step for step, read in zip(steps, recipe.spec, strict=True) if read != gone]
    recipe.spec.remove(gone)
    found = overlay(raw, recipe)["spec"] if left else []
    assert [_without_empties(step) for step in found] == [_without_empties(step) for step in left]


def _without_empties(step: dict[str, Any]) -> dict[str, Any]:
    """Lists of a dataclass are made by a factory, and so are written though nothing is in them."""
    plan = step.get("plan")
    return step if plan is None else {**step, "plan": {name: value for name, value in plan.items() if value != []}}
