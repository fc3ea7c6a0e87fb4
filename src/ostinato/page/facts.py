"""Facts: what the live page shows, in the form of its protocol (docs/dev/page.md). Times: seconds since the epoch."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Literal

import msgspec

from ostinato.api.gvk import GroupVersionKind, NamespacedName
from ostinato.controllers.reports.observing import RunResult

Verb = Literal["create", "update", "delete", "status"]
Readiness = Literal["ready", "progressing", "failed", "unknown"]
AlarmType = Literal["hot-loop", "stuck-deletion", "conflicts", "throttled", "webhook", "lease", "backlog", "crash-loop"]


class Fact(msgspec.Struct, frozen=True, rename="camel"):
    """Base of all facts."""


class Ref(Fact, frozen=True):
    """Names an object. `namespace` is "" for a cluster-scoped one; `uid` is "" if it is unknown."""

    api_version: str
    kind: str
    namespace: str
    name: str
    uid: str = ""

    @classmethod
    def of(cls, gvk: GroupVersionKind, key: NamespacedName, uid: str = "") -> Ref:
        return cls(api_version_of(gvk), gvk.kind, key.namespace, key.name, uid)

    @property
    def gvk(self) -> GroupVersionKind:
        return gvk_of(self.api_version, self.kind)

    @property
    def key(self) -> NamespacedName:
        return NamespacedName(self.namespace, self.name)

    def __str__(self) -> str:
        return f"{self.kind} {self.key}"


class State(Fact, frozen=True):
    """An object at a resourceVersion; "" if that is unknown."""

    ref: Ref
    resource_version: str


class Difference(Fact, frozen=True):
    """A field that a write changed. None: absent."""

    path: str
    old: Any = None
    new: Any = None


class Write(Fact, frozen=True, kw_only=True):
    """A change of an object, with its author."""

    id: str
    at: float
    ref: Ref
    verb: Verb
    author: str
    manager: str
    resource_version: str
    reconcile: str | None
    summary: str
    diff: list[Difference] | msgspec.UnsetType = msgspec.UNSET


class Reconcile(Fact, frozen=True, kw_only=True):
    """One run of a controller, or one decision of the scheduler. `explanations`: why it acts, in its own words."""

    id: str
    at: float  # when it ended
    controller: str
    key: str
    seconds: float
    waited: float
    result: RunResult
    error: str | None = None
    reasons: list[str] = []
    causes: list[State] = []
    writes: list[State] = []
    explanations: list[str] = []


class ControllerStats(Fact, frozen=True, kw_only=True):
    """A controller in the last second. `reason`: why it is behind; "" if it is not."""

    name: str
    depth: int = 0
    workers: int = 0
    busy: int = 0
    rate: float = 0.0  # runs a second
    p50: float = 0.0  # seconds of a run
    p99: float = 0.0
    errors: float = 0.0  # a second
    retries: float = 0.0  # a second
    oldest: float = 0.0  # seconds for which the oldest key waits
    reason: str = ""


class Alarm(Fact, frozen=True, kw_only=True):
    id: str
    severity: Literal["warning", "error"]
    type: AlarmType
    at: float
    ref: Ref | None = None
    controller: str | None = None
    message: str
    detail: str = ""


class Node(Fact, frozen=True):
    """Of the graph: a kind, a controller, or the users."""

    id: str
    type: Literal["kind", "controller", "user"]
    label: str


class Edge(Fact, frozen=True):
    """Of the graph; `from` is a keyword of Python."""

    source: str = msgspec.field(name="from")
    target: str = msgspec.field(name="to")
    type: Literal["watches", "writes"] = "writes"
    primary: bool = False  # of a watch: the kind that the controller reconciles


class Count(Fact, frozen=True):
    """Writes along an edge that a batch has counted only."""

    source: str = msgspec.field(name="from")
    target: str = msgspec.field(name="to")
    n: int = 0


class Graph(Fact, frozen=True):
    nodes: list[Node]
    edges: list[Edge]


class Batch(Fact, frozen=True, kw_only=True):
    """What happened in about a quarter of a second."""

    at: float
    writes: list[Write] = []
    reconciles: list[Reconcile] = []
    controllers: list[ControllerStats] = []
    alarms: list[Alarm] | None = None
    dropped: int = 0
    counts: list[Count] | msgspec.UnsetType = msgspec.UNSET
    graph: Graph | msgspec.UnsetType = msgspec.UNSET


class Tree(Fact, frozen=True, kw_only=True):
    """An object and those that it owns."""

    ref: Ref
    ready: Readiness
    message: str
    created: float | None
    deleting: float | None
    children: list[Tree] = []


class Step(Fact, frozen=True, kw_only=True):
    """Of a chain of causes, newest first.

    - `also`: of a reconcile, further causes that are as relevant as the next step.
    - `who`, `why`: of the last step: the user; the controller and the reason that it gave; why the cause is unknown.
    - `n`: of skipped steps, their number.
    """

    type: Literal["write", "reconcile", "user", "reason", "unknown", "skipped"]
    write: Write | msgspec.UnsetType = msgspec.UNSET
    reconcile: Reconcile | msgspec.UnsetType = msgspec.UNSET
    also: list[Write] = []
    who: str | msgspec.UnsetType = msgspec.UNSET
    why: str | msgspec.UnsetType = msgspec.UNSET
    n: int | msgspec.UnsetType = msgspec.UNSET


class Denied(Fact, frozen=True):
    """What the page may not see, and why."""

    what: str
    why: str


# A cluster has a few hundred kinds, and each report of a write names one.


@lru_cache(maxsize=1024)
def gvk_of(api_version: str, kind: str) -> GroupVersionKind:
    """Parse a kind. Raises ValueError if `api_version` is malformed."""
    return GroupVersionKind.of(api_version, kind)


@lru_cache(maxsize=1024)
def api_version_of(gvk: GroupVersionKind) -> str:
    return gvk.api_version


@lru_cache(maxsize=1024)
def kind_node(gvk: GroupVersionKind) -> str:
    """Return the id of a kind in the graph."""
    return f"kind:{gvk.api_version}/{gvk.kind}"


def controller_node(name: str) -> str:
    """Return the id of a controller in the graph."""
    return f"controller:{name}"


USER_NODE = "user"
