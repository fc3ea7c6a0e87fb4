"""Handlers: what informers tell, taken into the snapshot and the queue.

- A Pod with a node counts on it; one without, for a profile of ours, is queued; one that has finished is gone.
- Whatever may let a waiting Pod fit is passed on to the queue.
- Most changes of Pods with a node are of their status, which matters to nobody here: they are not even decoded.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

import msgspec

from ostinato.api.struct import Struct
from ostinato.cache.events import Added, Deleted, Event, Updated
from ostinato.cache.store.entry import Entry
from ostinato.plane.scheduler.cache.listers import Listers
from ostinato.plane.scheduler.cache.node_info import NodeFacts, read_node
from ostinato.plane.scheduler.cache.pod_info import PodInfo, PodReader
from ostinato.plane.scheduler.cache.snapshot import Snapshot
from ostinato.plane.scheduler.framework.events import NODE, POD, Action, ClusterEvent, node_changes, pod_changes
from ostinato.plane.scheduler.nominator import Nominator
from ostinato.plane.scheduler.queue import SchedulingQueue


class _Spec(Struct):
    node_name: str = ""


class _Status(Struct):
    phase: str = ""


class _PodSummary(Struct):
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
        self._pods: dict[str, PodInfo] = {}  # all that have not finished, by uid
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
        """A Pod has a node: newly, or it has changed."""
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
        """A Pod has no node: it is new, or it has changed."""
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
        """A Pod takes nothing of its node any more; whether it had one."""
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

    # Others

    def service(self, event: Event) -> None:  # noqa: ARG002 - any may change which Pods belong together
        self._listers.services += 1

    def other(self, resource: str) -> Callable[[Event], None]:
        """A handler of objects that plugins look up."""

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
    """Those that had to give way to a Pod."""
    return lambda other: other.priority <= pod.priority
