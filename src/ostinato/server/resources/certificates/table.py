"""Table rows of the certificates.k8s.io group."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from ostinato.api.time import Duration
from ostinato.server.resources.strategy import Json
from ostinato.server.resources.tables.cells import NONE, Cells, age, human, name_of


def _signing_request(obj: Json, now: datetime) -> list[Any]:
    spec = obj.get("spec") or {}
    seconds = spec.get("expirationSeconds")
    return [
        name_of(obj),
        age(obj, now),
        spec.get("signerName") or NONE,
        spec.get("username", ""),
        NONE if seconds is None else human(Duration.of(seconds).to_timedelta()),
        _signing_state(obj.get("status") or {}),
    ]


def _signing_state(status: Json) -> str:
    kinds = {condition.get("type") for condition in status.get("conditions") or ()}
    words = ["Denied" if "Denied" in kinds else "Approved" if "Approved" in kinds else "Pending"]
    if "Failed" in kinds:
        words.append("Failed")
    if status.get("certificate"):
        words.append("Issued")
    return ",".join(words)


CELLS: dict[tuple[str, str], Cells] = {
    ("certificates.k8s.io", "certificatesigningrequests"): _signing_request,
}
