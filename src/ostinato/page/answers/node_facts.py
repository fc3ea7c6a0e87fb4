"""Answers about nodes: whether they are ready, and what their Pods take."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final

import msgspec

from ostinato.api.gvk import GroupVersionKind
from ostinato.api.quantity import Quantity
from ostinato.cache.store.entry import Entry
from ostinato.page.facts import Fact
from ostinato.page.watching.cluster import Cluster

_ENDED: Final = ("Succeeded", "Failed")
_POD: Final = GroupVersionKind("", "v1", "Pod")
_NODE: Final = GroupVersionKind("", "v1", "Node")


class NodeFact(Fact, frozen=True, kw_only=True):
    """`cpu`, `memory`: shares that the requests of its Pods take, from 0 to 1."""

    name: str
    ready: bool
    pods: int
    capacity: int
    cpu: float
    memory: float
    taints: int


class NodeFacts:
    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._requests: dict[tuple[str, str], _Requests] = {}  # of Pods, by uid and resourceVersion

    def nodes(self) -> list[NodeFact]:
        used = self._used()
        found = [_node_fact(entry, used.get(entry.key.name, _NOTHING)) for entry in self._cluster.entries(_NODE)]
        return sorted(found, key=lambda each: (len(each.name), each.name))

    def _used(self) -> dict[str, _Used]:
        """Return what the Pods of each node request together. Those that have ended take nothing."""
        known, self._requests = self._requests, {}
        total: dict[str, _Used] = {}
        for entry in self._cluster.entries(_POD):
            state = (entry.uid, entry.resource_version)
            requests = self._requests[state] = known.get(state) or _requests(entry)
            if requests.node:
                used = total.get(requests.node)
                if used is None:
                    used = total[requests.node] = _Used()
                used.pods += 1
                used.cpu += requests.cpu
                used.memory += requests.memory
        return total


class _Used(msgspec.Struct):
    """What the Pods of a node request together."""

    pods: int = 0
    cpu: float = 0.0
    memory: float = 0.0


_NOTHING: Final = _Used()


class _Requests(msgspec.Struct, frozen=True, gc=False):
    """What a Pod requests. `node`: "" if it takes nothing of a node."""

    node: str = ""
    cpu: float = 0.0
    memory: float = 0.0


# Only these fields are decoded, and no metadata, in a tenth of the time of the whole object.


class _Resources(msgspec.Struct, frozen=True):
    requests: dict[str, Any] | None = None


class _Container(msgspec.Struct, frozen=True):
    resources: _Resources | None = None


class _PodSpec(msgspec.Struct, frozen=True, rename="camel"):
    node_name: str | None = None
    containers: list[_Container] | None = None


class _PodStatus(msgspec.Struct, frozen=True):
    phase: str | None = None


class _Pod(msgspec.Struct, frozen=True):
    spec: _PodSpec = _PodSpec()
    status: _PodStatus = _PodStatus()


class _Condition(msgspec.Struct, frozen=True):
    type: str = ""
    status: str = ""


class _NodeSpec(msgspec.Struct, frozen=True):
    taints: list[msgspec.Raw] | None = None


class _NodeStatus(msgspec.Struct, frozen=True):
    allocatable: dict[str, Any] | None = None
    capacity: dict[str, Any] | None = None
    conditions: list[_Condition] | None = None


class _Node(msgspec.Struct, frozen=True):
    spec: _NodeSpec = _NodeSpec()
    status: _NodeStatus = _NodeStatus()


_decode_pod = msgspec.json.Decoder(_Pod).decode
_decode_node = msgspec.json.Decoder(_Node).decode


def _requests(entry: Entry) -> _Requests:
    content = entry.content  # begins with a comma, if there is any
    pod = _decode_pod(b"{" + content[1:]) if content[:1] == b"," else _Pod()
    if not pod.spec.node_name or pod.status.phase in _ENDED:
        return _Requests()
    requests = [(each.resources or _Resources()).requests or {} for each in pod.spec.containers or ()]
    return _Requests(
        pod.spec.node_name,
        sum(_number(each.get("cpu")) for each in requests),
        sum(_number(each.get("memory")) for each in requests),
    )


def _node_fact(entry: Entry, used: _Used) -> NodeFact:
    node = _decode_node(entry.data)
    capacity = node.status.allocatable or node.status.capacity or {}
    return NodeFact(
        name=entry.key.name,
        ready=any(each.type == "Ready" and each.status == "True" for each in node.status.conditions or ()),
        pods=used.pods,
        capacity=int(_number(capacity.get("pods"))),
        cpu=_share(used.cpu, _number(capacity.get("cpu"))),
        memory=_share(used.memory, _number(capacity.get("memory"))),
        taints=len(node.spec.taints or ()),
    )


def _number(quantity: object) -> float:
    return _parsed(quantity) if isinstance(quantity, str | int | float) else 0.0


@lru_cache(maxsize=1024)  # most Pods request the same
def _parsed(quantity: str | float) -> float:
    try:
        return Quantity.from_json(quantity).nanos / 1e9
    except ValueError:
        return 0.0


def _share(used: float, capacity: float) -> float:
    return min(1.0, used / capacity) if capacity else 0.0
