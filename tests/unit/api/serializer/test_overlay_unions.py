"""Structs with tags, and generic ones: read with nulls in them, and updated without a loss."""

from __future__ import annotations

from typing import Annotated, Any, Generic, TypeVar

import pytest

from ostinato.api.codec import ObjectError, from_dict
from ostinato.api.markers import ListMap
from ostinato.api.object import CustomResource
from ostinato.api.serializer.overlay import overlay
from ostinato.api.struct import Struct

T = TypeVar("T")


class Http(Struct, tag="http"):
    port: int


class Exec(Struct, tag="exec"):
    command: list[str] = []
    shell: str | None = None


class Page(Struct, Generic[T]):
    items: list[T] = []
    first: T | None = None


class Probes(Page[Exec]):
    pass


class Spec(Struct):
    probe: Http | Exec | None = None
    all: list[Http | Exec] = []
    keyed: Annotated[list[Http | Exec], ListMap("type")] = []
    page: Page[Exec] | None = None
    probes: Probes | None = None


class Widget(CustomResource, group="example.dev", version="v1"):
    spec: Spec


def document(**spec: Any) -> dict[str, Any]:
    return {"apiVersion": "example.dev/v1", "kind": "Widget", "metadata": {"name": "a"}, "spec": spec}


def test_a_tagged_struct_is_read_by_its_tag_though_something_is_null_or_missing() -> None:
    read = from_dict(Widget, document(all=None, probe={"type": "exec", "command": None, "new": 1}))
    assert read.spec == Spec(probe=Exec())
    read = from_dict(Widget, document(all=[{"type": "exec", "shell": "sh"}, {"type": "http"}]))
    assert read.spec == Spec(all=[Exec(shell="sh"), Http(port=0)])


def test_a_tag_that_no_struct_has_is_an_error_that_names_it() -> None:
    with pytest.raises(ObjectError, match=r"Invalid value 'tcp' - at `\$.spec.probe.type`"):
        from_dict(Widget, document(all=None, probe={"type": "tcp"}))


def test_a_field_of_a_tagged_struct_that_is_cleared_is_gone_and_unknown_ones_stay() -> None:
    raw = document(probe={"type": "exec", "command": ["a"], "shell": "sh", "new": 1})
    widget = from_dict(Widget, raw)
    assert isinstance(widget.spec.probe, Exec)
    widget.spec.probe.shell = None
    assert overlay(raw, widget)["spec"] == {"probe": {"type": "exec", "command": ["a"], "new": 1}}


@pytest.mark.parametrize(
    ("before", "after", "written"),
    [
        ({"type": "http", "port": 3, "new": 1}, Exec(shell="sh"), {"type": "exec", "shell": "sh"}),
        ({"type": "exec", "command": ["a"], "new": 1}, Http(port=1), {"type": "http", "port": 1}),
    ],
)
def test_of_a_struct_with_another_tag_nothing_is_kept(
    before: dict[str, Any], after: Http | Exec, written: dict[str, Any]
) -> None:
    raw = document(probe=before)
    widget = from_dict(Widget, raw)
    widget.spec.probe = after
    assert overlay(raw, widget)["spec"] == {"probe": written}


@pytest.mark.parametrize("name", ["all", "keyed"])
def test_items_with_tags_keep_what_is_unknown_when_others_go(name: str) -> None:
    raw = document(**{name: [{"type": "http", "port": 3, "new": 1}, {"type": "exec", "shell": "x", "new": 2}]})
    widget = from_dict(Widget, raw)
    getattr(widget.spec, name).pop(0)
    assert overlay(raw, widget)["spec"] == {name: [{"type": "exec", "shell": "x", "new": 2}]}


@pytest.mark.parametrize("name", ["page", "probes"])
def test_a_generic_struct_keeps_what_is_unknown(name: str) -> None:
    raw = document(**{name: {"items": [{"type": "exec", "shell": "x", "new": 1}], "new": 2}})
    widget = from_dict(Widget, raw)
    getattr(widget.spec, name).items[0].shell = "y"
    assert overlay(raw, widget)["spec"] == {name: {"items": [{"type": "exec", "shell": "y", "new": 1}], "new": 2}}
