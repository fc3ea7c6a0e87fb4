"""Classes and their schemas agree: what the one takes, the other does.

For families of types with constraints that msgspec enforces, a value that a class reads is taken by a server, what a
server keeps is read by the class, and what the class writes is kept.
"""

from __future__ import annotations

import copy
import enum
import types
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from ostinato.api.codec import from_dict, to_dict
from ostinato.api.markers import Ge, Le, Len, MultipleOf, Pattern
from ostinato.api.quantity import Quantity
from ostinato.api.serializer.scalars import decode_scalar, encode_scalar
from ostinato.api.struct import Struct
from ostinato.api.time import Duration, Time
from ostinato.crd import schema_of
from ostinato.server.schema.structural.defaulting import apply_defaults
from ostinato.server.schema.structural.list_types import duplicates
from ostinato.server.schema.structural.node import Structural
from ostinato.server.schema.structural.pruning import prune
from ostinato.server.schema.validation.check import compiled, fits_table


class Phase(enum.Enum):
    UP = "Up"
    DOWN = "Down"


class Http(Struct, tag="http"):
    port: Annotated[int, msgspec.Meta(ge=1, le=9)]


class Exec(Struct, tag="exec"):
    command: list[str] = []
    shell: str | None = None


class Inner(Struct):
    name: Annotated[str, msgspec.Meta(min_length=1)]
    depth: Annotated[int, msgspec.Meta(lt=5)] = 2


TEXT = "ab-/ "
SCALARS = st.sampled_from(
    [
        str,
        int,
        bool,
        Phase,
        Literal["a", "b"],
        Literal[1, 2],
        int | str,
        Annotated[int, msgspec.Meta(ge=0)],
        Annotated[int, msgspec.Meta(gt=-2, lt=3)],
        Annotated[int, msgspec.Meta(le=3, multiple_of=2)],
        Annotated[str, msgspec.Meta(min_length=1, max_length=2)],
        Annotated[str, msgspec.Meta(pattern="^a.*b")],
        Inner,
        Http | Exec,
    ]
)


def containers(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    sizes = st.sampled_from([None, msgspec.Meta(max_length=1), msgspec.Meta(min_length=1)])

    def sized(kind: Any, size: msgspec.Meta | None) -> Any:
        return kind if size is None else Annotated[kind, size]

    return st.one_of(
        st.builds(lambda item, size: sized(list[item], size), inner, sizes),
        st.builds(lambda item, size: sized(dict[str, item], size), inner, sizes),
        st.builds(lambda item: list[item | None], inner),
        st.builds(lambda item: dict[str, item | None], inner),
    )


TYPES = st.recursive(SCALARS, containers, max_leaves=3)
NAMES = ("alpha", "beta_gamma", "from_")


@st.composite
def classes(draw: st.DrawFn) -> type[Struct]:
    """A struct with a few fields, some of them required."""
    annotations: dict[str, Any] = {}
    namespace: dict[str, Any] = {"__annotations__": annotations, "__module__": __name__}
    for name in NAMES[: draw(st.integers(1, 3))]:
        kind = draw(TYPES)
        match draw(st.sampled_from(["required", "optional", "required or null"])):
            case "required":
                annotations[name] = kind
            case "required or null":
                annotations[name] = kind | None
            case _:
                annotations[name], namespace[name] = kind | None, None
    return type(Struct)("Sample", (Struct,), namespace)


JSON = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-5, 12),
        st.sampled_from(["Up", "a", "b", "http", "exec"]),
        st.text(TEXT, max_size=3),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=2),
        st.dictionaries(
            st.sampled_from(["alpha", "betaGamma", "from", "name", "depth", "type", "port", "command"]),
            inner,
            max_size=3,
        ),
    ),
    max_leaves=8,
)
OBJECTS = st.dictionaries(st.sampled_from(["alpha", "betaGamma", "from"]), JSON, max_size=3)


def reads(cls: type[Struct], value: Any) -> bool:
    """Whether the class takes a value as it stands, constraints and all."""
    try:
        msgspec.convert(value, cls, dec_hook=decode_scalar)
    except msgspec.ValidationError:
        return False
    return True


def kept(schema: dict[str, Any], value: Any) -> Any:
    """What a server keeps of a value; None if it refuses it."""
    node = Structural(schema)
    found = prune(node, copy.deepcopy(value))
    apply_defaults(node, found)
    return found if fits_table(compiled(schema), found) and not duplicates(node, found) else None


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_a_class_and_a_server_take_the_same_values(data: st.DataObject) -> None:
    cls = data.draw(classes())
    schema = schema_of(cls)
    value = data.draw(st.one_of(OBJECTS, like(cls)))
    stored = kept(schema, value)
    if reads(cls, value):
        assert stored is not None, (cls.__annotations__, schema)
    if stored is not None:
        assert reads(cls, stored), (cls.__annotations__, schema)


def like(cls: type[Struct]) -> st.SearchStrategy[Any]:
    """Values that a class reads, but for its constraints."""
    hints = {info.encode_name: info.type for info in msgspec.structs.fields(cls)}
    return st.fixed_dictionaries({name: _value(hint) for name, hint in hints.items()})


def _value(hint: Any) -> st.SearchStrategy[Any]:
    source = get_origin(hint)
    if source is Annotated:
        return _value(get_args(hint)[0])
    if source in (Union, types.UnionType):
        return st.one_of([_value(each) for each in get_args(hint)])
    if hint is types.NoneType:
        return st.none()
    if source is Literal:
        return st.sampled_from(get_args(hint))
    if source is list:
        return st.lists(_value(get_args(hint)[0]), max_size=2)
    if source is dict:
        return st.dictionaries(st.text(TEXT, max_size=2), _value(get_args(hint)[1]), max_size=2)
    if hint is Phase:
        return st.sampled_from(["Up", "Down"])
    if hint is Http:
        return st.fixed_dictionaries({"type": st.just("http"), "port": st.integers(0, 10)})
    if hint is Exec:
        return st.fixed_dictionaries({"type": st.just("exec")}, optional={"shell": st.text(TEXT)})
    if hint is Inner:
        return st.fixed_dictionaries({"name": st.text(TEXT, max_size=2)}, optional={"depth": st.integers(0, 6)})
    return {str: st.text(TEXT, max_size=3), int: st.integers(-3, 6), bool: st.booleans()}[hint]


@settings(max_examples=60, deadline=None)
@given(classes())
def test_the_markers_of_ostinato_say_the_same_as_the_constraints_of_msgspec(cls: type[Struct]) -> None:
    ours = {
        msgspec.Meta(ge=0): (Ge(0),),
        msgspec.Meta(min_length=1, max_length=2): (Len(1, 2),),
        msgspec.Meta(le=3, multiple_of=2): (Le(3), MultipleOf(2)),
        msgspec.Meta(pattern="^a.*b"): (Pattern("^a.*b"),),
        msgspec.Meta(max_length=1): (Len(at_most=1),),
        msgspec.Meta(min_length=1): (Len(1),),
    }
    annotations = {name: _translated(hint, ours) for name, hint in cls.__annotations__.items()}
    namespace: dict[str, Any] = {"__annotations__": annotations, "__module__": __name__}
    namespace |= {info.name: None for info in msgspec.structs.fields(cls) if not info.required}
    assert schema_of(type(Struct)("Sample", (Struct,), namespace)) == schema_of(cls)


def _translated(hint: Any, ours: dict[msgspec.Meta, tuple[Any, ...]]) -> Any:
    source = get_origin(hint)
    if source is Annotated:
        inner, meta = get_args(hint)
        return Annotated[(_translated(inner, ours), *ours.get(meta, (meta,)))]
    if source in (Union, types.UnionType):
        return Union[tuple(_translated(each, ours) for each in get_args(hint))]  # noqa: UP007
    if source in (list, dict):
        return source[tuple(_translated(each, ours) for each in get_args(hint))]
    return hint


class Written(Struct):
    """What has forms of its own on the wire."""

    size: Quantity = Quantity("1")
    wait: Duration = Duration(0)
    since: Time | None = None
    data: bytes = b""
    inner: Inner | None = None
    phases: set[Phase] = set()


WRITTEN = st.builds(
    Written,
    size=st.builds(
        lambda n, s: Quantity(f"{n}{s}"), st.integers(-(10**6), 10**6), st.sampled_from(["", "m", "Ki", "G"])
    ),
    wait=st.builds(Duration, st.integers(-(10**14), 10**14)),
    since=st.one_of(st.none(), st.builds(Time.from_unix, st.integers(0, 2**33))),
    data=st.binary(max_size=5),
    inner=st.one_of(st.none(), st.builds(Inner, name=st.text(TEXT, min_size=1), depth=st.integers(-3, 4))),
    phases=st.sets(st.sampled_from(Phase)),
)


@settings(max_examples=60, deadline=None)
@given(WRITTEN)
def test_what_a_class_writes_a_server_keeps_and_the_class_reads_again(written: Written) -> None:
    value = to_dict(written)
    stored = kept(schema_of(Written), value)
    assert stored is not None
    assert from_dict(Written, stored) == written
    assert msgspec.to_builtins(written.size, enc_hook=encode_scalar) == stored["size"]
