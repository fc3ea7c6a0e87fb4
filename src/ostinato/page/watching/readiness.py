"""Readiness of objects, with the reason if they are not ready.

By the conventions of Kubernetes: conditions `Ready`, `Available`, `Complete`, `Failed`; the phase of Pods; counts of
replicas; `observedGeneration`. An object without a status is ready when it exists.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ostinato.page.facts import Readiness

Json = dict[str, Any]


class Ready(NamedTuple):
    state: Readiness
    message: str = ""


def readiness(instance: Json) -> Ready:
    metadata, status = _dict(instance.get("metadata")), _dict(instance.get("status"))
    if metadata.get("deletionTimestamp"):
        held = ", ".join(map(str, metadata.get("finalizers") or ()))
        return Ready("progressing", f"being deleted; finalizers: {held}" if held else "being deleted")
    if instance.get("kind") == "Pod" and instance.get("apiVersion") == "v1":
        return _of_pod(status)
    conditions = {str(each.get("type")): each for each in _list(status.get("conditions"))}
    if (found := _failed(conditions)) is not None:
        return found
    if (found := _outdated(metadata, status)) is not None:
        return found
    if (found := _replicas(_dict(instance.get("spec")), status)) is not None:
        return found
    return _by_conditions(conditions, has_status=bool(status))


def _failed(conditions: dict[str, Json]) -> Ready | None:
    for kind, bad in (("Failed", "True"), ("ReplicaFailure", "True"), ("Stalled", "True")):
        if (found := conditions.get(kind)) is not None and found.get("status") == bad:
            return Ready("failed", _text(found))
    progressing = conditions.get("Progressing")
    if progressing is not None and progressing.get("status") == "False":
        return Ready("failed", _text(progressing))
    return None


def _outdated(metadata: Json, status: Json) -> Ready | None:
    observed, generation = status.get("observedGeneration"), metadata.get("generation")
    if isinstance(observed, int) and isinstance(generation, int) and observed < generation:
        return Ready("progressing", f"generation {generation} is not observed yet (last: {observed})")
    return None


def _replicas(spec: Json, status: Json) -> Ready | None:
    wanted = spec.get("replicas", status.get("desiredNumberScheduled"))
    if not isinstance(wanted, int):
        return None
    ready = status.get("readyReplicas", status.get("numberReady", 0)) or 0
    updated = status.get("updatedReplicas", status.get("updatedNumberScheduled"))
    message = f"{ready} of {wanted} ready"
    if isinstance(updated, int) and updated < wanted:
        message += f", {updated} updated"
    elif ready >= wanted:
        return Ready("ready", message)
    return Ready("progressing", message)


def _by_conditions(conditions: dict[str, Json], *, has_status: bool) -> Ready:
    for kind in ("Ready", "Available", "Complete", "Succeeded", "Established", "Bound"):
        found = conditions.get(kind)
        if found is not None:
            state: Readiness = "ready" if found.get("status") == "True" else "progressing"
            return Ready(state, "" if state == "ready" else _text(found))
    return Ready("unknown" if conditions else "ready", "" if has_status or not conditions else "no status")


def _of_pod(status: Json) -> Ready:
    phase = status.get("phase")
    if phase == "Succeeded":
        return Ready("ready", "completed")
    if phase == "Failed":
        return Ready("failed", str(status.get("message") or status.get("reason") or "failed"))
    for container in _list(status.get("initContainerStatuses")) + _list(status.get("containerStatuses")):
        waiting = _dict(_dict(container.get("state")).get("waiting"))
        reason = str(waiting.get("reason") or "")
        if reason.endswith(("BackOff", "Error", "InvalidImageName")):
            return Ready("failed", f"{container.get('name')}: {reason} {waiting.get('message') or ''}".strip())
    conditions = {str(each.get("type")): each for each in _list(status.get("conditions"))}
    scheduled = conditions.get("PodScheduled")
    if scheduled is not None and scheduled.get("status") == "False":
        return Ready("progressing", _text(scheduled))
    ready = conditions.get("Ready")
    if ready is not None and ready.get("status") == "True":
        return Ready("ready", str(phase or ""))
    return Ready("progressing", _text(ready) if ready is not None else str(phase or "Pending"))


def _text(condition: Json) -> str:
    reason, message = str(condition.get("reason") or ""), str(condition.get("message") or "")
    return ": ".join(filter(None, (reason, message))) or f"{condition.get('type')} is {condition.get('status')}"


def _dict(value: object) -> Json:
    return value if isinstance(value, dict) else {}


def _list(value: object) -> list[Json]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []
