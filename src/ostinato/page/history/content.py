"""What a change changed: the specification or only the status, the scale; whether the object ended or got ready."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from ostinato.page.facts import Difference

Json = dict[str, Any]

_ENDED: Final = ("Failed", "Succeeded")
_REPLICAS: Final = "spec.replicas"


class Content(msgspec.Struct, frozen=True):
    """
    - `is_status`: only the status changed.
    - `is_specification`: more than status and metadata changed: `spec`, `data`, ...
    - `scaled`: by how much `spec.replicas` changed.
    - `has_ended`: a Pod or Job that had not failed or succeeded before has now.
    - `got_ready`: the condition Ready became True.
    """

    is_status: bool = False
    is_specification: bool = False
    scaled: int = 0
    has_ended: bool = False
    got_ready: bool = False


def content_of(before: Json | None, after: Json, found: Sequence[Difference]) -> Content:
    """`found`: the differences between the two states."""
    areas = {each.path.partition(".")[0].partition("[")[0] for each in found}
    scaled = 0
    for each in found:
        if each.path == _REPLICAS and isinstance(each.old, int) and isinstance(each.new, int):
            scaled = each.new - each.old
    return Content(
        is_status=areas == {"status"},
        is_specification=bool(areas - {"status", "metadata"}),
        scaled=scaled,
        has_ended=_phase(after) in _ENDED and _phase(before or {}) not in _ENDED,
        got_ready=_is_ready(after) and not _is_ready(before or {}),
    )


def _phase(instance: Json) -> object:
    status = instance.get("status")
    return status.get("phase") if isinstance(status, dict) else None


def _is_ready(instance: Json) -> bool:
    status = instance.get("status")
    conditions = status.get("conditions") if isinstance(status, dict) else None
    return any(
        isinstance(each, dict) and each.get("type") == "Ready" and each.get("status") == "True"
        for each in (conditions if isinstance(conditions, list) else ())
    )
