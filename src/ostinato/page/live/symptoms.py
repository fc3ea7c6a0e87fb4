"""Symptoms of objects: alarms from what is watched, whoever writes it.

| alarm | sign |
|---|---|
| `stuck-deletion` | a deletionTimestamp that passed a while ago; names the finalizers, and who would remove them |
| `crash-loop` | a container in CrashLoopBackOff |
| `lease` | the Lease of an election changed its holder without being released |
"""

from __future__ import annotations

from typing import Final

from ostinato.cache.store.entry import Entry
from ostinato.page.facts import Alarm, Ref
from ostinato.page.live.alarms import Alarms
from ostinato.page.live.finalizers import holder_of
from ostinato.page.live.graph import LiveGraph
from ostinato.page.watching.cluster import Cluster
from ostinato.page.watching.readiness import readiness
from ostinato.page.watching.trees import seconds_of
from ostinato.world import Clock

_STUCK: Final = 15.0  # seconds after the deletionTimestamp, which includes the grace period of Pods
_LASTING: Final = 10.0  # seconds; renewed by each check
_LEASE_SECONDS: Final = 300.0
_MAX_STUCK: Final = 50
_CRASHING: Final = b'"CrashLoopBackOff"'


class Symptoms:
    def __init__(self, clock: Clock, cluster: Cluster, alarms: Alarms, graph: LiveGraph) -> None:
        self._clock = clock
        self._cluster = cluster
        self._alarms = alarms
        self._graph = graph
        self._crashing: dict[str, Ref] = {}  # Pods by uid
        cluster.on_pod = self._saw_pod
        cluster.on_lease = self._saw_lease

    def check(self) -> None:
        """Look for symptoms; called every few seconds."""
        now = self._clock.wall()
        self._check_deletions(now)
        for uid, ref in [*self._crashing.items()]:
            entry = self._cluster.find(ref)
            if entry is None or not _is_crashing(entry):
                del self._crashing[uid]
                continue
            alarm = Alarm(
                id=f"crash-loop/{uid}",
                severity="error",
                type="crash-loop",
                at=now,
                ref=ref,
                message=f"{ref}: a container crashes again and again",
                detail=readiness(entry.dict()).message,
            )
            self._alarms.raise_(alarm, now, _LASTING)
        self._alarms.expire(now)

    def _check_deletions(self, now: float) -> None:
        found = 0
        for entry in self._cluster.entries():
            since = seconds_of(entry.deletion_timestamp)
            if since is None or now - since < _STUCK:
                continue
            found += 1
            if found > _MAX_STUCK:
                return
            self._alarms.raise_(self._stuck(entry, since, now), now, _LASTING)

    def _stuck(self, entry: Entry, since: float, now: float) -> Alarm:
        ref = Ref.of(entry.collection.info.gvk, entry.key, entry.uid)
        instance = entry.dict()
        finalizers = [*(entry.header.finalizers or ()), *((instance.get("spec") or {}).get("finalizers") or ())]
        details = [f"{each}: {holder_of(each, instance, self._graph)}" for each in finalizers]
        held = f"finalizer {', '.join(finalizers)}" if finalizers else "nothing in the object"
        return Alarm(
            id=f"stuck-deletion/{entry.uid}",
            severity="warning",
            type="stuck-deletion",
            at=since,
            ref=ref,
            message=f"{ref} is being deleted for {_minutes(now - since)}, held by {held}",
            detail="; ".join(details) or "its node has not confirmed that its containers ended",
        )

    def _saw_pod(self, entry: Entry) -> None:
        if _is_crashing(entry):
            self._crashing[entry.uid] = Ref.of(entry.collection.info.gvk, entry.key, entry.uid)

    def _saw_lease(self, before: Entry, after: Entry) -> None:
        old, new = ((each.dict().get("spec") or {}).get("holderIdentity") or "" for each in (before, after))
        if not old or not new or old == new:
            return  # it was released or acquired, as it should be
        now = self._clock.wall()
        ref = Ref.of(after.collection.info.gvk, after.key, after.uid)
        alarm = Alarm(
            id=f"lease/{after.uid}",
            severity="warning",
            type="lease",
            at=now,
            ref=ref,
            message=f"{old} lost {ref}; {new} holds it now",
            detail="the holder did not renew it in time: it ended, was suspended, or cannot reach the API server",
        )
        self._alarms.raise_(alarm, now, _LEASE_SECONDS)


def _is_crashing(entry: Entry) -> bool:
    """Whether a container waits in CrashLoopBackOff. Most Pods need no decoding."""
    return _CRASHING in entry.content


def _minutes(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"
