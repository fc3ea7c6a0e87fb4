from __future__ import annotations

import msgspec
import pytest

from ostinato.api.codec import from_json, to_json
from ostinato.api.struct import Struct, wire_name


@pytest.mark.parametrize(
    ("attribute", "wire"),
    [
        ("replicas", "replicas"),
        ("available_replicas", "availableReplicas"),
        ("from_", "from"),
        ("continue_", "continue"),
        ("fields_v1", "fieldsV1"),
        ("match_any_of", "matchAnyOf"),
    ],
)
def test_attributes_are_camel_case_on_the_wire(attribute: str, wire: str) -> None:
    assert wire_name(attribute) == wire


class Rule(Struct):
    min_ready: int = 0
    from_: str = ""
    cluster_ip: str | None = msgspec.field(name="clusterIP", default=None)
    ready: bool = msgspec.field(default_factory=bool)


class Reference(Struct, atomic=True):
    name: str


class Inherited(Rule):
    owner: Reference  # required after optional ones: fields go by keyword


def test_fields_are_given_by_keyword_only() -> None:
    with pytest.raises(TypeError):
        Rule(1)  # type: ignore[misc]
    assert Inherited(owner=Reference(name="a"), min_ready=1).min_ready == 1


def test_a_default_is_not_written_but_the_value_of_a_factory_is() -> None:
    assert to_json(Rule()) == b'{"ready":false}'
    assert to_json(Rule(from_="a", cluster_ip="None", min_ready=3)) == (
        b'{"minReady":3,"from":"a","clusterIP":"None","ready":false}'
    )


def test_what_is_written_is_read_again() -> None:
    rule = Rule(from_="a", cluster_ip="None", ready=True)
    assert from_json(Rule, to_json(rule)) == rule


def test_a_struct_can_be_atomic() -> None:
    assert Reference.__atomic__
    assert not Rule.__atomic__
    assert not Inherited.__atomic__
