"""Pod conditions that the server sets."""

from __future__ import annotations

from ostinato.server.resources.strategy import Json


def set_pod_condition(status: Json, condition: Json, now: str) -> None:
    """Set a condition in a status; lastTransitionTime changes with its value. The list is replaced, not modified."""
    conditions = status.get("conditions", [])
    old = next((each for each in conditions if each.get("type") == condition["type"]), None)
    turned = old is None or old.get("status") != condition["status"]
    since = now if turned or old is None else old.get("lastTransitionTime")
    made = {"lastProbeTime": None, **condition, "lastTransitionTime": since}
    if old is None:
        status["conditions"] = [*conditions, made]
    else:
        status["conditions"] = [made if each is old else each for each in conditions]
