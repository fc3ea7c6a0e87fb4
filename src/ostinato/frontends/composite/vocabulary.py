"""Vocabulary of composite and decorator functions: what they are given, what they return, how children are updated."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final, TypeVar

import msgspec

from ostinato.api import accessors as access
from ostinato.api.accessors import AnyObject
from ostinato.api.codec import from_json
from ostinato.api.selectors.labels import Operator, parse
from ostinato.cache.informers import AnyKind
from ostinato.client.views import Typed, view_of
from ostinato.frontends.kernel.applier import Method, Strategy
from ostinato.frontends.kernel.related import Selection
from ostinato.frontends.kernel.sync import Json, Objects, Ready, SyncEvent, kind_key

T = TypeVar("T")
When = Callable[[Any], object]
"""Whether an object is decorated: a function of it."""

_OPERATORS: Final = {
    Operator.EQUALS: "In",
    Operator.DOUBLE_EQUALS: "In",
    Operator.IN: "In",
    Operator.NOT_EQUALS: "NotIn",
    Operator.NOT_IN: "NotIn",
    Operator.EXISTS: "Exists",
    Operator.DOES_NOT_EXIST: "DoesNotExist",
}


class Child(msgspec.Struct, frozen=True):
    """A kind of children, and how existing ones are updated; see `rolling`, `recreate` and `on_delete`."""

    kind: Any
    strategy: Strategy


def rolling(kind: AnyKind, *, recreate: bool = False, ready: Callable[[Json], Any] | None = None) -> Child:
    """Update one child after the other, while all updated ones are ready.

    - `recreate`: delete and create them instead of updating them. Defaults to False.
    - `ready`: the readiness of a child. Defaults to that of its kind.
    """
    method: Method = "RollingRecreate" if recreate else "RollingInPlace"
    return Child(kind, Strategy(method) if ready is None else Strategy(method, ready))


def recreate(kind: AnyKind) -> Child:
    """Delete a child that differs, and create it again."""
    return Child(kind, Strategy("Recreate"))


def on_delete(kind: AnyKind) -> Child:
    """Leave existing children as they are, until somebody deletes them."""
    return Child(kind, Strategy("OnDelete"))


def annotation(name: str, value: str | None = None) -> When:
    """Return a condition: the object has an annotation, with this value or with any."""
    return lambda instance: (found := access.annotations(instance).get(name)) is not None and value in (None, found)


def labels(selector: str) -> When:
    """Return a condition: the labels of the object match a selector, such as "app=web,!canary"."""
    parsed = parse(selector)
    return lambda instance: parsed.matches(access.labels(instance))


class Sync(msgspec.Struct, kw_only=True):
    """What a function decides besides objects.

    - `children`: the desired objects. Defaults to none.
    - `status`: replaces the status of the parent. Defaults to None, unchanged.
    - `labels`, `annotations`: of the parent; None removes one.
    - `resync_after`: seconds until the next call. Defaults to None: at the next change.
    - `ready`: the condition Ready of the parent.
    - `events`: about the parent.
    - `finalized`: the clean-up is complete; only of a `finalize` function. Defaults to True there.
    """

    children: Iterable[AnyObject] = ()
    status: Any = None
    labels: dict[str, str | None] = {}
    annotations: dict[str, str | None] = {}
    resync_after: float | None = None
    ready: Ready | None = None
    events: list[SyncEvent] = []
    finalized: bool | None = None


class Related(msgspec.Struct, frozen=True):
    """Other objects that a function needs to see.

    - `namespace`, `names`: default to all.
    - `labels`, `namespace_labels`: selectors such as "app=web", of the objects and of their namespaces.
    """

    kind: Any
    namespace: str = ""
    names: Sequence[str] = ()
    labels: str = ""
    namespace_labels: str = ""

    def selection(self) -> Selection:
        return Selection(
            gvk=view_of(self.kind).gvk,
            namespace=self.namespace,
            names=tuple(self.names),
            labels=_as_json(self.labels),
            namespace_labels=_as_json(self.namespace_labels),
        )


class Observed:
    """Objects in the cluster: `observed[Pod]` are those of a kind by name; `related` are those that it asked for.

    Names have a namespace in front, "team-a/web", if it is not that of the parent.
    """

    def __init__(self, home: str, children: Objects, related: Objects, *, finalizing: bool) -> None:
        self._home = home
        self._objects = children
        self._related = related
        self.finalizing = finalizing

    def __getitem__(self, kind: type[T] | AnyKind) -> dict[str, T]:
        view: Any = view_of(kind)
        found = self._objects.get(kind_key(view.gvk), {})
        cls = view.cls if isinstance(view, Typed) else None
        return {self._name(key): typed(each, cls) for key, each in found.items()}

    def __iter__(self) -> Iterator[Json]:
        for found in self._objects.values():
            yield from found.values()

    def __len__(self) -> int:
        return sum(len(found) for found in self._objects.values())

    @property
    def related(self) -> Observed:
        return Observed(self._home, self._related, {}, finalizing=self.finalizing)

    def _name(self, key: str) -> str:
        namespace, slash, name = key.rpartition("/")
        return name if slash and namespace == self._home else key


def typed(document: Json, cls: Any) -> Any:
    return document if cls is None else from_json(cls, msgspec.json.encode(document))


def _as_json(selector: str) -> Json | None:
    """Return a selector in the form of a LabelSelector."""
    if not selector:
        return None
    found: dict[str, Any] = {"matchExpressions": []}
    for each in parse(selector).requirements:
        operator = _OPERATORS.get(each.operator)
        if operator is None:
            raise ValueError(f"{selector!r}: the operator {each.operator!r} is not supported here")
        found["matchExpressions"].append({"key": each.key, "operator": operator, "values": list(each.values)})
    return found
