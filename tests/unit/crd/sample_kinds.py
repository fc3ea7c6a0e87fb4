"""Kinds that use all that definitions can say."""

from __future__ import annotations

import enum
from typing import Annotated, Any, Literal

import msgspec

from ostinato.api.markers import (
    AnyResource,
    AtLeastOneOf,
    AtMostOneOf,
    ClientDefault,
    Column,
    DefinitionMeta,
    Deprecated,
    Doc,
    ExactlyOneOf,
    Example,
    ExternalDocs,
    Format,
    Ge,
    Gt,
    Immutable,
    Inexact,
    Int32,
    Int64,
    Le,
    Len,
    ListAtomic,
    ListMap,
    ListSet,
    Lt,
    MapAtomic,
    MultipleOf,
    Nullable,
    Pattern,
    PreserveUnknown,
    RawSchema,
    Rule,
    Scale,
    Schemaless,
    Selectable,
    ServerDefault,
    Stored,
    Title,
    Unserved,
    marked,
)
from ostinato.api.meta import Condition, LabelSelector, ObjectMeta
from ostinato.api.object import CustomResource
from ostinato.api.quantity import Quantity
from ostinato.api.struct import Struct
from ostinato.api.time import Duration, MicroTime, Time
from ostinato.kinds.core_v1 import PodTemplateSpec


class Protocol(enum.StrEnum):
    TCP = "TCP"
    UDP = "UDP"


class Port(Struct):
    port: Annotated[Int32, Ge(1), Le(65535)]
    protocol: Protocol = Protocol.TCP
    name: str | None = None


class Reference(Struct, atomic=True):
    kind: str
    name: Annotated[str, Len(1)]


class Http(Struct, tag="http"):
    path: Annotated[str, Pattern("^/")] = "/"
    port: int


class Command(Struct, tag="command"):
    command: list[str]


@marked(
    Rule("self.least <= self.most", message="least is above most"),
    Rule("!has(self.step) || self.step > 0", message_expression="'step must be above 0'", field_path=".step"),
)
class Range(Struct):
    """A range of numbers; both ends count."""

    least: int = 0
    most: int = 10
    step: int | None = None


@marked(ExactlyOneOf("config_map", "secret"), AtMostOneOf("secret", "optional"), AtLeastOneOf("config_map", "secret"))
class Source(Struct):
    config_map: str | None = None
    secret: str | None = None
    optional: Annotated[bool, ClientDefault()] = False


@marked(PreserveUnknown())
class Loose(Struct):
    known: str = "yes"


class Tree(Struct):
    value: str = ""
    children: Annotated[list[Tree], Schemaless()] = []


class WidgetSpec(Struct):
    """What a widget should be."""

    replicas: Annotated[Int32, Ge(0), Column("Desired")] = 1
    """How many there are."""
    image: Annotated[str, Len(1, 255), Pattern("^[a-z]"), Example("nginx:1")] = "nginx"
    color: Annotated[Literal["red", "blue"] | None, Column(priority=1), Selectable()] = None
    size: Annotated[str, Immutable()]
    optional_but_fixed: Annotated[str | None, Immutable()] = None
    even: Annotated[int, MultipleOf(2), Gt(0), Lt(100)] = 2
    big: Int64 | None = None
    share: Annotated[float, Inexact(), Ge(0), Le(1)] | None = None
    precise: Annotated[float | None, Format("double")] = None
    memory: Quantity = Quantity("64Mi")
    interval: Duration = Duration(30 * 10**9)
    not_before: Time | None = None
    exactly_at: MicroTime | None = None
    secret: bytes | None = None
    address: Annotated[str, Format("ipv4")] | None = None
    target: int | str = 80
    ports: Annotated[list[Port], ListMap("port", "protocol"), Len(at_most=10)] = []
    tags: Annotated[list[Annotated[str, Len(at_most=20)]], ListSet(), Len(at_most=5)] = []
    unique: set[int] = set()
    args: Annotated[list[str], ListAtomic()] = []
    matrix: list[list[int]] = []
    labels: Annotated[dict[str, Annotated[str, Len(at_most=63)]], Len(at_most=10)] = {}
    frozen: Annotated[dict[str, str], MapAtomic()] = {}
    nothing_or_text: list[str | None] = []
    nullable: Annotated[str | None, Nullable()] = None
    reference: Reference | None = None
    check: Http | Command | None = None
    range: Range = msgspec.field(default_factory=Range)
    source: Source | None = None
    loose: Loose | None = None
    tree: Tree | None = None
    anything: Any = None
    settings: dict[str, Any] = {}
    embedded: AnyResource | None = None
    selector: LabelSelector | None = None
    template: PodTemplateSpec | None = None
    template_metadata: ObjectMeta | None = None
    level: Annotated[int | None, ServerDefault(3), Title("Level")] = None
    documented: Annotated[str, Doc("Said here."), ExternalDocs("https://example.dev", "more")] = ""
    not_root: Annotated[str, RawSchema({"not": {"enum": ["root"]}})] = "nobody"


class WidgetStatus(Struct):
    replicas: int = 0
    selector: str = ""
    ready_since: Annotated[Time | None, Column("Ready")] = None
    conditions: Annotated[list[Condition], ListMap("type")] = []


@marked(
    Column("Image", "spec.image", description="what runs"),
    Column("Age", ".metadata.creationTimestamp"),
    Scale("spec.replicas", "status.replicas", "status.selector"),
    Selectable("spec.image"),
    DefinitionMeta(labels={"app": "widgets"}, annotations={"note": "made of types"}),
    Rule("self.metadata.name != 'forbidden'", message="this name is forbidden"),
    Stored(),
)
class Widget(CustomResource, group="example.dev", version="v1", short_names=["wd"], categories=["all", "toys"]):
    """A widget."""

    spec: WidgetSpec
    status: WidgetStatus | None = None


class OldSpec(Struct):
    replicas: int = 1


@marked(Deprecated("use example.dev/v1"))
class WidgetV1Beta1(
    CustomResource,
    group="example.dev",
    version="v1beta1",
    kind="Widget",
    short_names=["wd"],
    categories=["all", "toys"],
):
    spec: OldSpec


@marked(Unserved())
class WidgetV1Alpha1(CustomResource, group="example.dev", version="v1alpha1", kind="Widget"):
    spec: OldSpec


class Gadget(CustomResource, group="example.dev", version="v1", namespaced=False):
    value: str = "x"
