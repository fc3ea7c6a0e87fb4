"""What no schema can say is refused, with the class, the field, and what to write instead."""

from __future__ import annotations

import datetime
import decimal
import enum
import sys
import uuid
from collections.abc import Callable
from typing import Annotated, Any, Generic, TypeVar

import msgspec
import pytest

from ostinato.api.markers import (
    AtMostOneOf,
    Column,
    Enum,
    ExactlyOneOf,
    Ge,
    Immutable,
    Inexact,
    Le,
    Len,
    ListMap,
    ListSet,
    Lt,
    MultipleOf,
    Nullable,
    Pattern,
    PreserveUnknown,
    Rule,
    Schemaless,
    SchemaType,
    Stored,
    marked,
)
from ostinato.api.struct import Struct
from ostinato.crd import SchemaError, schema_of
from ostinato.crd.schema.patterns import _guess, matches, pattern_problem
from ostinato.kinds.apiextensions_v1 import JSONSchemaProps
from ostinato.kinds.apps_v1 import Deployment

T = TypeVar("T")


class Page(Struct, Generic[T]):
    items: list[T] = []


class Named(Struct):
    name: str
    host_name: str = ""
    tags: list[str] = []
    nick: str | None
    maybe: str | None = None


class Keyed(Struct):
    port: int
    protocol: str = "TCP"


class Bits(enum.Flag):
    A = 1


class Odd(enum.Enum):
    A = 1.5


class Http(Struct, tag="http"):
    port: int


class Web(Struct, tag="web"):
    port: str


@marked(Rule("self.port > 0"))
class Ruled(Struct, tag="ruled"):
    port: int


class Listed(msgspec.Struct, array_like=True):
    a: int = 0


class Plain: ...


def of(annotation: Any, **default: Any) -> type[msgspec.Struct]:
    """A class with one such field."""
    namespace: dict[str, Any] = {"__annotations__": {"field": annotation}, "__module__": __name__}
    if default:
        namespace["field"] = msgspec.field(**default)
    return type(Struct)("Sample", (Struct,), namespace)


@pytest.mark.parametrize(
    ("annotation", "told"),
    [
        (float, "use Quantity, or allow them with Annotated[float, Inexact()]"),
        (datetime.timedelta, "timedelta has no portable JSON form: use Duration"),
        (datetime.time, "use str"),
        (decimal.Decimal, "use Quantity"),
        (object, "use Any"),
        (Annotated[str, Nullable()], "str is not optional, which Nullable() requires: add | None"),
        (msgspec.Raw, "msgspec.Raw cannot be updated: use Any"),
        (None, "None is not a type for a field"),
        (Bits, "Bits is a set of flags"),
        (Odd, "use strings or integers"),
        (Plain, "Plain has no schema: use a Struct"),
        (Deployment, "Deployment is a whole object: use AnyResource"),
        (JSONSchemaProps, "JSONSchemaProps contains itself: use dict[str, Any]"),
        (Page, "~T is a type variable: set it where the class is used, Page[...]"),
        (Annotated[Any, Ge], "Ge is a class of markers: write Ge(...)"),
        (tuple[int, str], "has items of several types: use a Struct"),
        (dict[int, str], "JSON keys are strings: use dict[str, ...]"),
        (dict[uuid.UUID, str], "JSON keys are strings: use dict[str, ...]"),
        (dict[Annotated[str, Len(1)], str], "Len(1) does not apply to keys of a map: put a Rule on the field"),
        (int | bool, "int | bool cannot be expressed as a schema"),
        (str | list[str], "structs with tags, or a struct with one field for each and ExactlyOneOf"),
        (Http | Web, "port is not the same in Http and Web: rename one"),
        (Http | Ruled, "Ruled has rules, which would hold for all of the union"),
        (Http | Named, "Named has no tag: write class Named(Struct, tag=...)"),
        (Annotated[str, Ge(0)], "Ge(0) is for a number, and this is a string"),
        (Annotated[int, Len(1)], "and this is an integer"),
        (Annotated[int, Pattern("a")], "Pattern('a') is for"),
        (Annotated[bool, Ge(1)], "and this is a boolean"),
        (Annotated[str, ListSet()], "is for a list, and this is a string"),
        (Annotated[Any, Ge(1)], "and this is anything"),
        (Annotated[str, Enum(1)], "the values [1] are not of the type string"),
        (Annotated[int, Ge(5), Le(1)], "no value is valid: minimum is 5, maximum is 1"),
        (Annotated[int, Ge(0.5)], "Ge(0.5): servers would reject every integer"),
        (Annotated[int, Lt(9.5)], "Lt(9.5): servers would reject every integer"),
        (Annotated[int, MultipleOf(0.5)], "MultipleOf(0.5): servers would reject every"),
        (Annotated[float, Inexact(), MultipleOf(0.5)], "use an integer in a smaller unit"),
        (Annotated[Any, Rule("true")], "rules need a type: use dict[str, Any]"),
        (Annotated[Any, Immutable()], "rules need a type"),
        (
            Annotated[Named, ExactlyOneOf("name", "nick")],
            "applies to a class: write @marked(ExactlyOneOf('name', 'nick'))",
        ),
        (Annotated[Named, Stored()], "Stored() applies to a class"),
        (Annotated[str, Pattern("(?=a)")], "the pattern (?=a) is not in RE2's syntax"),
        (Annotated[list[Named], ListSet()], "items of a set are scalars, or structs with atomic=True"),
        (Annotated[list[str], ListMap("name")], "items of a ListMap are structs: use ListSet for scalars"),
        (Annotated[list[str | None], ListSet()], "items of a list that is a set cannot be None"),
        (set[frozenset[str]], "items of a set cannot be merged themselves: use list[...] for the inner one"),
        (Annotated[list[Named], ListMap("name", "name")], "ListMap('name', 'name'): duplicate key"),
        (Annotated[list[Named], ListMap("host_name")], "it is 'hostName' on the wire"),
        (Annotated[list[Named], ListMap("other")], "items have no such field, only name, hostName"),
        (Annotated[list[Named], ListMap("tags")], "a key must be a scalar"),
        (Annotated[list[Named], ListMap("nick")], "a key cannot be None"),
        (Annotated[list[Named], ListMap("maybe")], "a key must be required or have a default"),
        (list[Annotated[str, Immutable()]], "not available in a list without keys"),
        (list[Annotated[str, Rule("oldSelf == self")]], "make it a ListMap"),
        (list[Annotated[str, Column()]], "is inside a list or map"),
        (dict[str, Annotated[str, Column("A")]], "is inside a list or map"),
    ],
    ids=str,
)
def test_an_annotation_without_a_schema_is_reported(annotation: Any, told: str) -> None:
    with pytest.raises(SchemaError) as refused:
        schema_of(of(annotation))
    assert str(refused.value).startswith(("class Sample, field field", "class Page"))
    assert told in str(refused.value)


@marked(ExactlyOneOf("size", "name"))
class Counted(Struct):
    size: int = 0
    name: str = ""


@marked(AtMostOneOf("name", "nick"))
class Called(Struct):
    name: str
    nick: str | None = None


@pytest.mark.parametrize(
    ("cls", "told"),
    [
        (Counted, "ExactlyOneOf('size', 'name'): size is always set, as the server fills in its default: make it"),
        (Called, "AtMostOneOf('name', 'nick'): name is always set, as it is required: make it ... | None = None"),
    ],
)
def test_a_field_that_is_always_set_cannot_be_one_of_some(cls: type, told: str) -> None:
    with pytest.raises(SchemaError) as refused:
        schema_of(cls)
    assert told in str(refused.value)


@pytest.mark.parametrize(
    ("annotation", "default", "told"),
    [
        (Annotated[int, Ge(1)], 0, "0 is too small"),
        (Annotated[int, Le(1)], 5, "5 is too large"),
        (Annotated[int, msgspec.Meta(multiple_of=5)], 7, "7 is not a multiple of 5"),
        (Annotated[str, Len(5)], "a", "its length 1 is below the minimum 5"),
        (Annotated[str, Len(at_most=1)], "abc", "its length 3 is above the maximum 1"),
        (Annotated[str, Pattern("^b")], "abc", "'abc' does not match ^b"),
        (Annotated[str, Enum("A")], "B", "'B' is not one of 'A'"),
        (str, 5, "5 is not of type string"),
        (bool, "x", "'x' is not of type boolean"),
        (int, "x", "'x' is not of type integer"),
        (Annotated[float, SchemaType("number")], "x", "'x' is not of type number"),
        (int | str, 1.5, "1.5 is not of type integer or string"),
        (list[int], ("a",), "'a' is not of type integer"),
        (dict[str, int], 3, "3 is not of type object"),
        (list[int], 3, "3 is not of type array"),
        (Annotated[list[str], ListSet()], ("a", "b", "a"), "it contains 'a' twice"),
        (
            Annotated[list[Keyed], ListMap("port", "protocol")],
            (Keyed(port=1),) * 2,
            "it contains {'port': 1, 'protocol': 'TCP'}",
        ),
        (datetime.datetime, datetime.datetime(2020, 1, 1), "'2020-01-01T00:00:00' names no time zone"),  # noqa: DTZ001
    ],
)
def test_a_default_must_fit(annotation: Any, default: Any, told: str) -> None:
    with pytest.raises(SchemaError) as refused:
        schema_of(of(annotation, default=default))
    assert f"class Sample, field field: its default is invalid: {told}" in str(refused.value)


def test_a_default_that_json_cannot_hold_is_rejected() -> None:
    with pytest.raises(SchemaError, match="its default cannot be encoded as JSON"):
        schema_of(of(Any, default=Plain()))


def test_a_constraint_of_another_library_must_be_a_number() -> None:
    other = pytest.importorskip("annotated_types")
    with pytest.raises(SchemaError, match="cannot be part of a schema: Ge needs a number"):
        schema_of(of(Annotated[str, other.Ge("a")]))


class Node(Struct):
    children: list[Node] = []


class Left(Struct):
    right: Right | None = None


class Right(Struct):
    left: dict[str, Left] = {}


class Leaf(Struct):
    children: Annotated[list[Leaf], Schemaless()] = []


def test_a_class_that_contains_itself_is_rejected_with_the_way_it_does() -> None:
    with pytest.raises(SchemaError, match=r"class Node: it contains itself \(Node → Node\)"):
        schema_of(Node)
    with pytest.raises(SchemaError, match=r"Left → Right → Left.*Schemaless"):
        schema_of(Left)


def test_a_struct_that_is_written_as_a_list_is_rejected() -> None:
    with pytest.raises(SchemaError, match=r"class Listed: it is encoded as a list; remove array_like=True"):
        schema_of(of(Listed))


def test_a_class_may_contain_itself_where_anything_may_stand() -> None:
    assert schema_of(Leaf)["properties"]["children"] == {"x-kubernetes-preserve-unknown-fields": True}


def test_an_unknown_name_in_an_annotation_is_reported() -> None:
    class Local(Struct):
        other: Unknown  # type: ignore[name-defined]  # noqa: F821

    with pytest.raises(SchemaError, match="class Local: name 'Unknown' is not defined; annotations must be resolvable"):
        schema_of(Local)


def test_an_annotation_that_is_not_a_type_is_reported() -> None:
    class Local:
        __dataclass_fields__: dict[str, Any] = {}
        other: 5 | 7j  # type: ignore[valid-type]

    with pytest.raises(SchemaError, match="class Local: cannot evaluate an annotation"):
        schema_of(Local)


def test_a_rule_about_fields_needs_fields_that_exist() -> None:
    @marked(ExactlyOneOf("a", "c"))
    class Pair(Struct):
        a: int = 0

    with pytest.raises(SchemaError, match=r"class Pair: ExactlyOneOf\('a', 'c'\): there is no field c"):
        schema_of(Pair)


def test_a_rule_about_a_field_needs_a_name_that_rules_can_say() -> None:
    class Fixed(Struct):
        first: Annotated[str | None, Immutable()] = msgspec.field(name="1st", default=None)

    @marked(ExactlyOneOf("a", "b"))
    class Pair(Struct):
        a: str | None = None
        b: str | None = msgspec.field(name="$b", default=None)

    with pytest.raises(SchemaError, match=r"class Fixed, field first: '1st' cannot be escaped"):
        schema_of(Fixed)
    with pytest.raises(SchemaError, match=r"class Pair: '\$b' cannot be escaped as a CEL identifier; rename"):
        schema_of(Pair)


def test_a_marker_for_structs_may_stand_on_a_class_and_others_may_not() -> None:
    @marked(PreserveUnknown())
    class Open(Struct):
        a: int = 0

    @marked(Ge(1))
    class Wrong(Struct):
        a: int = 0

    assert schema_of(Open)["x-kubernetes-preserve-unknown-fields"]
    with pytest.raises(SchemaError, match=r"class Wrong: Ge\(1\) is for .*, and this is a map or struct"):
        schema_of(Wrong)


def test_markers_in_the_wrong_place_are_rejected() -> None:
    @marked(Schemaless())
    class Anything(Struct):
        a: int = 0

    @marked(Column("A", "spec.a"))
    class Part(Struct):
        a: int = 0

    with pytest.raises(SchemaError, match=r"class Anything: Schemaless\(\) applies to a field: write Annotated"):
        schema_of(Anything)
    with pytest.raises(SchemaError, match=r"class Part: Column\('A', '.spec.a'\) applies to a kind, not to a part"):
        schema_of(of(Part))


def test_an_enumeration_without_values_is_rejected() -> None:
    with pytest.raises(ValueError, match="Enum needs at least one value"):
        Enum()


@pytest.mark.parametrize("text", ["(?=a)", "(?!a)", "(?<=a)", "(?<!a)", r"(a)\1", r"a\Z", "a*+", "(?P=name)", "(?>a)"])
@pytest.mark.parametrize("problem", [pattern_problem, _guess])
def test_patterns_that_only_python_knows_are_found_with_and_without_re2(
    problem: Callable[[str], str], text: str
) -> None:
    assert problem(text)


@pytest.mark.parametrize("text", [r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", r"\\1", r"(?i)a+?", r"\d{3}", r"a\.b"])
@pytest.mark.parametrize("problem", [pattern_problem, _guess])
def test_patterns_of_re2_are_let_pass_with_and_without_it(problem: Callable[[str], str], text: str) -> None:
    assert problem(text) == ""


def test_without_re2_the_rest_is_left_to_the_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "re2", None)
    assert "RE2 does not support" in pattern_problem("(?=a)")
    assert pattern_problem("(") == ""
    assert matches("^b", "a")
