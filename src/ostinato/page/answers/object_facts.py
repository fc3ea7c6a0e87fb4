"""Answers about one object: as YAML with owners, its Events, conditions over time, writes; and why it was written.

An object that is gone is answered from the history, with `gone`.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from ostinato.api.errors import APIError
from ostinato.client.client import Client
from ostinato.client.transport.protocol import TransportError
from ostinato.client.views import Unstructured
from ostinato.page.answers.cluster_facts import ClusterFacts
from ostinato.page.answers.query import NotFound, Query
from ostinato.page.answers.yaml_lines import Line, owner_name, yaml_lines
from ostinato.page.facts import Fact, Readiness, Ref, Step, Write
from ostinato.page.history.chain import chain
from ostinato.page.history.change import Change
from ostinato.page.history.history import History
from ostinato.page.live.finalizers import holder_of
from ostinato.page.live.stream import SETTLED
from ostinato.page.masking import shown
from ostinato.page.watching.cluster import Cluster
from ostinato.page.watching.readiness import Ready, readiness
from ostinato.page.watching.trees import seconds_of
from ostinato.world import Clock

Json = dict[str, Any]

MAX_WRITES: Final = 50
MAX_CHILDREN: Final = 100
_MAX_EVENTS: Final = 100
_MAX_CONDITIONS: Final = 200
_EVENT: Final = Unstructured.of("v1", "Event")


class EventFact(Fact, frozen=True, kw_only=True):
    at: float | None
    type: str
    reason: str
    message: str
    count: int
    source: str = msgspec.field(name="from")


class ConditionFact(Fact, frozen=True, kw_only=True):
    at: float | None
    type: str
    status: str
    reason: str
    message: str


class FinalizerFact(Fact, frozen=True):
    name: str
    holder: str | None


class ObjectFact(Fact, frozen=True, kw_only=True):
    ref: Ref
    lines: list[Line]
    owners: list[str]
    events: list[EventFact]
    conditions: list[ConditionFact]
    writes: list[Write]
    children: list[Write]
    ready: Readiness
    message: str
    finalizers: list[FinalizerFact]
    deleting: float | None
    gone: float | None


class Chain(Fact, frozen=True):
    """`origins`: the first causes of all branches, that of the chain first."""

    chain: list[Step]
    origins: list[Step]


class ObjectFacts:
    def __init__(self, clock: Clock, client: Client, cluster: Cluster, facts: ClusterFacts, history: History) -> None:
        self._clock = clock
        self._client = client
        self._cluster = cluster
        self._facts = facts
        self._history = history

    async def object(self, query: Query) -> ObjectFact:
        ref, instance, gone = self._find(query.ref())
        changes = self._history.changes.of_object(ref)
        metadata = instance.get("metadata") or {}
        if instance.get("kind") == "Secret":
            instance = shown(instance)
        ready = Ready("unknown", "deleted") if gone is not None else readiness(instance)
        finalizers = [*(metadata.get("finalizers") or ()), *((instance.get("spec") or {}).get("finalizers") or ())]
        return ObjectFact(
            ref=ref,
            lines=yaml_lines(instance),
            owners=[*dict.fromkeys(owner_name(each) for each in metadata.get("managedFields") or ())],
            events=await self._events(ref),
            conditions=_conditions(instance, changes),
            writes=[each.with_diff() for each in reversed(changes[-MAX_WRITES:])],
            children=self._children(ref),
            ready=ready.state,
            message=ready.message,
            finalizers=[FinalizerFact(each, holder_of(each, instance, self._history.graph)) for each in finalizers],
            deleting=seconds_of(metadata.get("deletionTimestamp")),
            gone=gone,
        )

    async def why(self, query: Query) -> Chain:
        """Return the chain of causes of a write; of the last one that was not about the status, for an object."""
        history = self._history
        if number := query.text("write"):
            change = history.changes.get(number)
            if change is None:
                raise NotFound(f"write {number} is older than the history of this page")
            return await self._chain(change)
        ref = query.ref()
        changes = history.changes.of_object(ref)
        if not changes:
            self._find(ref)
            unknown = Step(type="unknown", why=f"{ref} has not changed since this page began to watch it")
            return Chain([unknown], [unknown])
        others = [each for each in changes if each.shown().verb != "status"]
        return await self._chain((others or changes)[-1])

    async def _chain(self, change: Change) -> Chain:
        await self._clock.sleep(change.at + SETTLED - self._clock.wall())
        return Chain(*chain(change, self._history.changes, self._history.runs))

    def _find(self, ref: Ref) -> tuple[Ref, Json, float | None]:
        """Return the object with its whole reference; when it was removed, if it is gone."""
        entry = self._cluster.find(ref)
        if entry is not None:
            return Ref.of(entry.collection.info.gvk, entry.key, entry.uid), entry.dict(), None
        changes = self._history.changes.of_object(ref)
        if not changes:
            raise NotFound(f"{ref} does not exist, or its kind is not watched")
        last = changes[-1]
        return last.ref, last.states()[1], last.at

    async def _events(self, ref: Ref) -> list[EventFact]:
        fields = {"involvedObject.name": ref.name, "involvedObject.kind": ref.kind}
        if ref.uid:
            fields["involvedObject.uid"] = ref.uid
        try:
            found = await self._client.list(_EVENT, namespace=ref.namespace or "default", fields=fields)
        except (APIError, TransportError):  # not permitted, or the server restarts
            return []
        events = sorted(map(_event, found), key=lambda each: each.at or 0.0, reverse=True)
        return events[:_MAX_EVENTS]

    def _children(self, ref: Ref) -> list[Write]:
        """Return the creations and deletions of objects below one, newest first."""
        below = self._facts.owners().below(ref.uid)
        below.add(ref.uid)
        found: list[Change] = []
        for change in self._history.changes.all():  # owners are created before what they own
            if change.uid not in below and not below.isdisjoint(change.owners):
                below.add(change.uid)
            if change.uid in below and change.uid != ref.uid and (change.type != "update" or change.is_deletion):
                found.append(change)
        return [each.shown() for each in reversed(found[-MAX_CHILDREN:])]


def _event(event: Json) -> EventFact:
    source = event.get("source") or {}
    at = event.get("lastTimestamp") or event.get("eventTime") or event.get("firstTimestamp")
    series = event.get("series") or {}
    return EventFact(
        at=seconds_of(series.get("lastObservedTime") or at),
        type=str(event.get("type") or ""),
        reason=str(event.get("reason") or ""),
        message=str(event.get("message") or ""),
        count=int(series.get("count") or event.get("count") or 1),
        source=str(event.get("reportingComponent") or source.get("component") or ""),
    )


def _conditions(instance: Json, changes: list[Change]) -> list[ConditionFact]:
    """Return the conditions over time, newest first: those of the history, and the current ones."""
    found: dict[tuple[str, str, str, str], ConditionFact] = {}
    states = [(change.states()[1], change.at) for change in changes[-_MAX_CONDITIONS:]]
    for state, at in [*states, (instance, None)]:
        for each in (state.get("status") or {}).get("conditions") or ():
            if not isinstance(each, dict):
                continue
            known = seconds_of(each.get("lastTransitionTime"))
            condition = ConditionFact(
                at=at if known is None else known,
                type=str(each.get("type") or ""),
                status=str(each.get("status") or ""),
                reason=str(each.get("reason") or ""),
                message=str(each.get("message") or ""),
            )
            found.setdefault((condition.type, condition.status, condition.reason, condition.message), condition)
    return sorted(found.values(), key=lambda each: each.at or 0.0, reverse=True)[:_MAX_CONDITIONS]
