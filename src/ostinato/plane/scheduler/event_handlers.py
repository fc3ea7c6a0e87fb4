"""Event handlers: apply informer events to snapshot and queue.

- An assigned Pod is added to its node; a pending Pod of a known profile is queued; a finished Pod is removed.
- Events that may make pending Pods schedulable are passed to the queue.
- Most updates of assigned Pods change their status only; they are not decoded.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

import msgspec

from ostinato.api.struct import BuiltinStruct
from ostinato.cache.events import Added, Deleted, Event, Updated
from ostinato.cache.store.entry import Entry
from ostinato.plane.scheduler.cache.listers import Listers
from ostinato.plane.scheduler.cache.node_info import NodeFacts, read_node
from ostinato.plane.scheduler.cache.pod_info import PodInfo, PodReader
from ostinato.plane.scheduler.cache.snapshot import Snapshot
from ostinato.plane.scheduler.framework.events import NODE, POD, Action, ClusterEvent, node_changes, pod_changes
from ostinato.plane.scheduler.nominator import Nominator
from ostinato.plane.scheduler.queue import SchedulingQueue


class _Spec(BuiltinStruct):
    node_name: str = ""


class _Status(BuiltinStruct):
    phase: str = ""


class _PodSummary(BuiltinStruct):
    spec: _Spec = msgspec.field(default_factory=_Spec)
    status: _Status = msgspec.field(default_factory=_Status)


_glance = msgspec.json.Decoder(_PodSummary).decode


class EventHandlers:
    def __init__(
        self,
        profiles: Collection[str],
        snapshot: Snapshot,
        queue: SchedulingQueue,
        nominator: Nominator,
        listers: Listers,
    ) -> None:
        self._profiles = profiles
        self._snapshot = snapshot
        self._queue = queue
        self._nominator = nominator
        self._listers = listers
        self._reader = PodReader()
        self._pods: dict[str, PodInfo] = {}  # unfinished Pods, by uid
        self._facts: dict[str, NodeFacts] = {}

    # Pods

    def pod(self, event: Event) -> None:
        match event:
            case Added(object=entry):
                self._add(entry)
            case Updated(old=old, new=new):
                if old.resource_version != new.resource_version:
                    self._changed(old, new)
            case Deleted(last_known=entry):
                self._deleted(entry.uid)

    def _add(self, entry: Entry) -> None:
        pod = self._reader.read(entry)
        if pod.is_finished:
            self._deleted(pod.uid)
            return
        before = self._pods.get(pod.uid)
        self._pods[pod.uid] = pod
        if pod.node_name:
            self._assigned(before, pod)
        elif pod.scheduler_name in self._profiles:
            self._pending(before, pod)

    def _changed(self, old: Entry, new: Entry) -> None:
        known = self._pods.get(new.uid)
        if known is None or new.generation != old.generation or new.labels_json != old.labels_json:
            self._add(new)
            return
        assumed = not known.node_name and self._snapshot.is_assumed(new.uid)
        if not known.node_name and not assumed:
            self._add(new)
            return
        seen = _glance(new.data)
        if seen.status.phase in ("Succeeded", "Failed"):
            self._deleted(new.uid)
            return
        pod = PodInfo(new, known.shape, seen.spec.node_name, seen.status.phase, known.nominated)
        self._pods[new.uid] = pod
        if not pod.node_name:
            self._pending(known, pod)
        elif known.node_name and pod.is_being_deleted == known.is_being_deleted:
            self._snapshot.refresh(pod)
        else:
            self._assigned(known, pod)

    def _assigned(self, before: PodInfo | None, pod: PodInfo) -> None:
        """Handle a newly assigned or updated Pod."""
        if before is not None and before.node_name:
            self._snapshot.put_pod(pod)
            for event in pod_changes(before, pod):
                self._queue.move_all(event)
            return
        if not self._snapshot.confirm(pod):
            self._snapshot.put_pod(pod)
        self._queue.delete(pod.uid)
        self._nominator.remove(pod.uid)
        self._queue.move_all(ClusterEvent(POD, Action.ADD, new=pod))

    def _pending(self, before: PodInfo | None, pod: PodInfo) -> None:
        """Handle a new or updated pending Pod."""
        if self._snapshot.is_assumed(pod.uid):
            if pod.is_being_deleted:
                self._release(pod.uid)
            return
        self._queue.add(pod)
        promised = before.nominated if before is not None else ""
        if pod.nominated != promised:
            self._nominator.add(pod, pod.nominated)
            if promised and before is not None:
                self._queue.move_all(ClusterEvent(POD, Action.DELETE, old=before), _not_above(pod))

    def _deleted(self, uid: str) -> None:
        pod = self._pods.pop(uid, None)
        if pod is None:
            return
        self._queue.delete(uid)
        promised = self._nominator.remove(uid)
        if not self._release(uid) and promised:
            self._queue.move_all(ClusterEvent(POD, Action.DELETE, old=pod), _not_above(pod))

    def _release(self, uid: str) -> bool:
        """Remove a Pod from its node; return whether it had one."""
        pod = self._snapshot.remove_pod(uid)
        if pod is None:
            return False
        self._queue.move_all(ClusterEvent(POD, Action.DELETE, old=pod))
        return True

    # Nodes

    def node(self, event: Event) -> None:
        if isinstance(event, Deleted):
            known = self._facts.pop(event.key.name, None)
            if known is not None:
                self._snapshot.remove_node(known.name)
                self._queue.move_all(ClusterEvent(NODE, Action.DELETE, old=known))
            return
        facts = read_node(event.object)
        known = self._facts.get(facts.name)
        self._facts[facts.name] = facts
        if known is None:
            self._snapshot.put_node(facts)
            self._queue.move_all(ClusterEvent(NODE, Action.ADD, new=facts))
            return
        changes = node_changes(known, facts)
        if changes or known.images != facts.images or known.unschedulable != facts.unschedulable:
            self._snapshot.put_node(facts)
        for change in changes:
            self._queue.move_all(change)

    # Other kinds

    def service(self, event: Event) -> None:  # noqa: ARG002 - any Service may change default spreading
        self._listers.services += 1

    def other(self, resource: str) -> Callable[[Event], None]:
        """Return a handler for a kind that plugins look up."""

        def handle(event: Event) -> None:
            match event:
                case Added(object=entry):
                    self._queue.move_all(ClusterEvent(resource, Action.ADD, new=entry))
                case Updated(old=old, new=new) if old is not new:
                    self._queue.move_all(ClusterEvent(resource, Action.UPDATE, old, new))
                case Deleted(last_known=entry):
                    self._queue.move_all(ClusterEvent(resource, Action.DELETE, old=entry, new=entry))
                case _:
                    return

        return handle


def _not_above(pod: PodInfo) -> Callable[[PodInfo], bool]:
    """Return a predicate: Pods of no higher priority."""
    return lambda other: other.priority <= pod.priority
