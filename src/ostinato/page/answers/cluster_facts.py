"""Answers about the cluster: the owner trees, and the nodes."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from ostinato.api.gvk import GroupVersionKind
from ostinato.api.quantity import Quantity
from ostinato.api.selectors import labels as label_selectors
from ostinato.cache.store.entry import Entry
from ostinato.page.answers.query import BadQuery, Query
from ostinato.page.facts import Fact, Tree
from ostinato.page.watching.cluster import Cluster
from ostinato.page.watching.trees import MAX_OBJECTS, Filter, Known, Owners, Trees
from ostinato.world import Clock

_FRESH: Final = 1.0  # seconds for which owners are reused
_ENDED: Final = ("Succeeded", "Failed")
_POD: Final = GroupVersionKind("", "v1", "Pod")


class Objects(Fact, frozen=True, kw_only=True):
    roots: list[Tree]
    total: int
    kinds: list[str]
    namespaces: list[str]


class NodeFact(Fact, frozen=True, kw_only=True):
    """`cpu`, `memory`: shares that the requests of its Pods take, from 0 to 1."""

    name: str
    ready: bool
    pods: int
    capacity: int
    cpu: float
    memory: float
    taints: int


class ClusterFacts:
    def __init__(self, clock: Clock, cluster: Cluster) -> None:
        self._clock = clock
        self._cluster = cluster
        self._owners = Owners(())
        self._read_at = float("-inf")
        self._requests: dict[tuple[str, str], _Requests] = {}  # of Pods, by uid and resourceVersion
        self._known: Known = {}

    def owners(self) -> Owners:
        """Return the owner references of all objects, at most a second old."""
        now = self._clock.monotonic()
        if now - self._read_at > _FRESH:
            self._owners, self._read_at = Owners(self._cluster.entries()), now
        return self._owners

    async def objects(self, query: Query) -> Objects:
        wanted = _filter(query)
        owners = self.owners()
        roots, total = owners.select(wanted)
        self._known = {uid: known for uid, known in self._known.items() if owners.get(uid) is not None}
        trees = Trees(owners, wanted, self._clock, self._known)
        trees.left = query.count("limit", 1_000, MAX_OBJECTS)
        shown: list[Tree] = []
        for root in roots:
            if trees.left <= 0:
                break
            shown.append(await trees.build(root))
        kinds = sorted({f"{each.api_version}/{each.kind}" for each in self._cluster.kinds})
        namespaces = {entry.key.namespace for entry in self._cluster.entries()} - {""}
        return Objects(
            roots=shown,
            total=total,
            kinds=kinds,
            namespaces=sorted(namespaces),
        )

    def nodes(self) -> list[NodeFact]:
        used = self._used()
        found = [
            self._node(entry, used.get(entry.key.name, _Requests()))
            for entry in self._cluster.entries(GroupVersionKind("", "v1", "Node"))
        ]
        return sorted(found, key=lambda each: (len(each.name), each.name))

    def _used(self) -> dict[str, _Requests]:
        """Return what the Pods of each node request together. Those that have ended take nothing."""
        known, self._requests = self._requests, {}
        total: dict[str, _Requests] = {}
        for entry in self._cluster.entries(_POD):
            state = (entry.uid, entry.resource_version)
            requests = self._requests[state] = known.get(state) or _requests(entry)
            if requests.node:
                before = total.get(requests.node, _Requests())
                total[requests.node] = _Requests(
                    requests.node, before.cpu + requests.cpu, before.memory + requests.memory, before.pods + 1
                )
        return total

    @staticmethod
    def _node(entry: Entry, used: _Requests) -> NodeFact:
        instance = entry.dict()
        status = instance.get("status") or {}
        capacity = status.get("allocatable") or status.get("capacity") or {}
        ready = any(
            each.get("type") == "Ready" and each.get("status") == "True" for each in status.get("conditions") or ()
        )
        return NodeFact(
            name=entry.key.name,
            ready=ready,
            pods=used.pods,
            capacity=int(_number(capacity.get("pods"))),
            cpu=_share(used.cpu, _number(capacity.get("cpu"))),
            memory=_share(used.memory, _number(capacity.get("memory"))),
            taints=len((instance.get("spec") or {}).get("taints") or ()),
        )


class _Requests(msgspec.Struct, frozen=True):
    node: str = ""
    cpu: float = 0.0
    memory: float = 0.0
    pods: int = 0


def _requests(entry: Entry) -> _Requests:
    instance = entry.dict()
    if (instance.get("status") or {}).get("phase") in _ENDED:
        return _Requests()
    spec: dict[str, Any] = instance.get("spec") or {}
    requests = [(each.get("resources") or {}).get("requests") or {} for each in spec.get("containers") or ()]
    return _Requests(
        spec.get("nodeName") or "",
        sum(_number(each.get("cpu")) for each in requests),
        sum(_number(each.get("memory")) for each in requests),
    )


def _filter(query: Query) -> Filter:
    labels = query.text("labels")
    try:
        selector = label_selectors.parse(labels) if labels else None
    except ValueError as error:
        raise BadQuery(f"labels: {error}") from None
    return Filter(
        kind=query.text("kind"),
        namespace=query.text("namespace"),
        labels=selector,
        text=query.text("q").lower(),
        deleting=query.flag("deleting"),
        root=query.text("root"),
    )


def _number(text: object) -> float:
    try:
        return Quantity.from_json(text).nanos / 1e9
    except ValueError:
        return 0.0


def _share(used: float, capacity: float) -> float:
    return min(1.0, used / capacity) if capacity else 0.0
