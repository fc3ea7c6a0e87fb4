"""The decision about plans as a decider, so that it can be recorded and replayed.

The request has everything that the decision depends on, also the time and the uid of a new run; the result is the
status to write, and Events.
"""

from __future__ import annotations

from typing import Any

import msgspec

from ostinato.api.codec import from_dict, to_dict
from ostinato.api.struct import Struct
from ostinato.api.time import Time
from ostinato.frontends.kernel.sync import SyncEvent, SyncRequest, SyncResult, Trigger
from ostinato.frontends.plans.api import InstanceStatus, OperatorVersionSpec, PlanExecution
from ostinato.frontends.plans.decisions.deciding import Note, Situation, Version, decide
from ostinato.frontends.plans.decisions.requests import Request

Json = dict[str, Any]


class _Data(Struct):
    """What a decision depends on, besides the object."""

    version: Json = {}
    before: Json | None = None
    parameters: dict[str, str] = {}
    generation: int = 0
    execution: Json = {}
    request: Json | None = None
    uid: str = ""
    now: str = ""


def decision_request(controller: str, instance: Json, status: InstanceStatus, situation: Situation) -> SyncRequest:
    """Return the request of a decision."""
    data = _Data(
        version=_version(situation.version),
        before=None if situation.before is None else _version(situation.before),
        parameters=dict(situation.parameters),
        generation=situation.generation,
        execution=to_dict(situation.execution),
        request=None if situation.request is None else to_dict(situation.request),
        uid=situation.new_uid(),
        now=str(situation.now),
    )
    metadata = {name: value for name, value in instance["metadata"].items() if name in ("name", "namespace", "uid")}
    parent = {"apiVersion": instance["apiVersion"], "kind": instance["kind"], "metadata": metadata}
    return SyncRequest(
        controller=controller,
        trigger=Trigger(type="Plan", data=to_dict(data)),
        parent={**parent, "status": to_dict(status)},
        finalizing=situation.is_deleting,
    )


async def decider(request: SyncRequest) -> SyncResult:
    """Decide what runs."""
    data = from_dict(_Data, request.trigger.data)
    situation = Situation(
        version=_read_version(data.version),
        before=None if data.before is None else _read_version(data.before),
        parameters=data.parameters,
        generation=data.generation,
        is_deleting=request.finalizing,
        execution=from_dict(PlanExecution, data.execution),
        request=None if data.request is None else from_dict(Request, data.request),
        new_uid=lambda: data.uid,
        now=Time.parse(data.now),
    )
    status = from_dict(InstanceStatus, (request.parent or {}).get("status") or {})
    events = [SyncEvent(each.reason, each.message, each.kind, each.plan) for each in decide(situation, status)]
    return SyncResult(status=to_dict(status), events=events)


def notes_of(result: SyncResult) -> list[Note]:
    return [Note(each.reason, each.note, each.type, each.action) for each in result.events]


def _version(version: Version) -> Json:
    """Return a version without its templates and tasks, which no decision depends on."""
    spec = msgspec.structs.replace(version.spec, templates={}, tasks=[])
    return {"name": version.name, "namespace": version.namespace, "spec": to_dict(spec)}


def _read_version(document: Json) -> Version:
    return Version(document["name"], document["namespace"], from_dict(OperatorVersionSpec, document["spec"]))
