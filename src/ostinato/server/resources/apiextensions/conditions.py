"""Conditions of a CustomResourceDefinition: NamesAccepted, Established, Terminating."""

from __future__ import annotations

from typing import Any

from ostinato.server.resources.strategy import Json

CLEANUP = "customresourcecleanup.apiextensions.k8s.io"  # finalizer: remains until the objects are deleted


def condition(kind: str, status: str, reason: str, message: str) -> Json:
    return {"lastTransitionTime": None, "message": message, "reason": reason, "status": status, "type": kind}


def find(definition: Json, kind: str) -> Json | None:
    conditions: list[Json] = definition.get("status", {}).get("conditions") or []
    return next((found for found in conditions if found["type"] == kind), None)


def is_true(definition: Json, kind: str) -> bool:
    found = find(definition, kind)
    return found is not None and found["status"] == "True"


def with_condition(status: dict[str, Any], new: Json, now: str) -> dict[str, Any]:
    """Return the status with a condition set; lastTransitionTime changes with the condition's status."""
    conditions: list[Json] = list(status.get("conditions") or [])
    for i, old in enumerate(conditions):
        if old["type"] == new["type"]:
            unchanged = old["status"] == new["status"] and old.get("lastTransitionTime")
            conditions[i] = {**new, "lastTransitionTime": old["lastTransitionTime"] if unchanged else now}
            break
    else:
        conditions.append({**new, "lastTransitionTime": now})
    return {**status, "conditions": conditions}
