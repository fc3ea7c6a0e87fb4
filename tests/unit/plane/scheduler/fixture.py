"""Scheduler fixture: nodes and Pods without a server.

fixture = SchedulerFixture(node("a", cpu="2"), node("b", labels={"zone": "x"}))
fixture.put(pod("old", cpu="1"), "a")
assert fixture.where(pod("new", cpu="2")) == "b"
assert fixture.reasons(pod("huge", cpu="4")) == {"a": ["Insufficient cpu"], "b": ["Insufficient cpu"]}
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from typing import Any, TypeVar

import msgspec

from ostinato.api.object import Object, kind_of
from ostinato.cache.store.entry import CollectionInfo, Entry
from ostinato.cache.store.entry_decoder import EntryDecoder
from ostinato.kinds.core_v1 import Node, Pod
from ostinato.plane.scheduler import default_plugins
from ostinato.plane.scheduler.cache.listers import Listers
from ostinato.plane.scheduler.cache.node_info import read_node
from ostinato.plane.scheduler.cache.pod_info import PodInfo, PodReader
from ostinato.plane.scheduler.cache.snapshot import Snapshot
from ostinato.plane.scheduler.framework.interface import Cycle
from ostinato.plane.scheduler.framework.local_results import WeightedPlugin
from ostinato.plane.scheduler.framework.runtime import FitError, Framework, Profile, ScheduleResult
from ostinato.plane.scheduler.framework.search import run_filters
from ostinato.plane.scheduler.nominator import Nominator
from ostinato.plane.scheduler.preempt import Outcome, Preemption
from ostinato.world.rng import Rng

Json = dict[str, Any]
O = TypeVar("O", bound=Object)  # noqa: E741
_numbers = count(1)


def node(
    name: str,
    *,
    cpu: str = "8",
    memory: str = "32Gi",
    pods: str = "110",
    labels: dict[str, str] | None = None,
    taints: Sequence[Json] = (),
    unschedulable: bool = False,
    images: Sequence[Json] = (),
    more: dict[str, str] | None = None,
) -> Json:
    amounts = {"cpu": cpu, "memory": memory, "pods": pods, "ephemeral-storage": "100Gi", **(more or {})}
    return {
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, **(labels or {})}},
        "spec": {"taints": list(taints), "unschedulable": unschedulable},
        "status": {"allocatable": amounts, "images": list(images)},
    }


def pod(
    name: str = "p",
    *,
    namespace: str = "default",
    labels: dict[str, str] | None = None,
    cpu: str = "",
    memory: str = "",
    owners: Sequence[Json] = (),
    **spec: Any,
) -> Json:
    requests = {key: value for key, value in (("cpu", cpu), ("memory", memory)) if value}
    containers = [{"name": "app", "image": "app:1", "resources": {"requests": requests}}]
    metadata = {"name": name, "namespace": namespace, "labels": labels or {}, "ownerReferences": list(owners)}
    return {"metadata": metadata, "spec": {"containers": containers, **spec}}


def entry(kind: type[Object], given: Json) -> Entry:
    number = next(_numbers)
    metadata = {"uid": f"uid-{number}", "resourceVersion": str(number), **given["metadata"]}
    return EntryDecoder(CollectionInfo(kind_of(kind))).decode(msgspec.json.encode({**given, "metadata": metadata}))


class KnownObjects(Listers):
    """Listers of objects that a test adds."""

    def put(self, kind: type[Object], *given: Json) -> None:
        self._stores.setdefault(kind, _Entries())
        for each in given:
            made = entry(kind, each)
            self._stores[kind].entries_by_key[made.key] = made  # type: ignore[attr-defined]
        self.services += 1

    def put_pod(self, made: Entry) -> None:
        if self._pods is None:
            self._pods = _Entries()  # type: ignore[assignment]
        self._pods.entries_by_key[made.key] = made  # type: ignore[union-attr]


class _Entries:
    def __init__(self) -> None:
        self.entries_by_key: dict[Any, Entry] = {}

    def get(self, key: Any) -> Entry | None:
        return self.entries_by_key.get(key)

    def entries(self, namespace: str = "") -> list[Entry]:
        return [each for each in self.entries_by_key.values() if not namespace or each.key.namespace == namespace]


class SchedulerFixture:
    def __init__(self, *nodes: Json, plugins: tuple[WeightedPlugin, ...] | None = None, percentage: int = 0) -> None:
        self.snapshot = Snapshot()
        self.listers = KnownObjects()
        self.nominator = Nominator()
        self.reader = PodReader()
        profile = Profile("default-scheduler", plugins or default_plugins(), percentage)
        self.framework = Framework(profile, self.snapshot, self.listers, self.nominator, Rng(1))
        self.preemption = Preemption(self.snapshot, self.listers, self.nominator, Rng(2))
        self.put_nodes(*nodes)

    def put_nodes(self, *nodes: Json) -> None:
        for each in nodes:
            self.snapshot.put_node(read_node(entry(Node, each)))

    def read(self, given: Json) -> PodInfo:
        made = entry(Pod, given)
        self.listers.put_pod(made)
        return self.reader.read(made)

    def put(self, given: Json, where: str) -> PodInfo:
        """Add a Pod to a node."""
        info = self.read(given).on(where)
        self.snapshot.put_pod(info)
        return info

    def try_(self, given: Json) -> ScheduleResult | FitError | None:
        return self.framework.schedule(self.read(given))

    def where(self, given: Json) -> str:
        """Return the selected node; "" if none is feasible."""
        found = self.try_(given)
        return found.node.name if isinstance(found, ScheduleResult) else ""

    def place(self, given: Json) -> str:
        """Schedule a Pod and add it to its node."""
        found = self.try_(given)
        if not isinstance(found, ScheduleResult):
            return ""
        self.snapshot.put_pod(found.cycle.pod.on(found.node.name))
        return found.node.name

    def fits(self, given: Json) -> set[str]:
        """Return all feasible nodes."""
        refused = set(self.reasons(given))
        return {each.name for each in self.snapshot.nodes} - refused

    def reasons(self, given: Json) -> dict[str, list[str]]:
        """Return the rejection reasons by node."""
        info = self.read(given)
        state = self.framework._state_of(info)
        cycle = Cycle(info, self.snapshot, self.listers, state.memo)
        filters, refused = self.framework._pre_filter(cycle, state.results)
        if refused is not None:
            return {each.name: list(refused.reasons) for each in self.snapshot.nodes}
        found = {each.name: run_filters(filters, each) for each in self.snapshot.nodes}
        return {name: list(status.reasons) for name, status in found.items() if status is not None}

    def message(self, given: Json) -> str:
        """Return the message for an unschedulable Pod."""
        found = self.try_(given)
        assert isinstance(found, FitError)
        return found.diagnosis.message(self.preemption.find(found).message)

    def preempt(self, given: Json) -> Outcome:
        found = self.try_(given)
        assert isinstance(found, FitError)
        return self.preemption.find(found)
