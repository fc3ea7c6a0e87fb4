"""Naming controller's rules: accepted names of a definition, without conflicts in its group.

A name that another definition of the group has is not accepted until that definition releases it. Names accepted
earlier are kept.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ostinato.api.text.go_format import quote
from ostinato.server.resources.apiextensions.conditions import condition, find, with_condition
from ostinato.server.resources.strategy import Json

_CONFLICTS = (("plural", "PluralConflict"), ("singular", "SingularConflict"))
_KIND_CONFLICTS = (("kind", "KindConflict"), ("listKind", "ListKindConflict"))


def named_status(definition: Json, group: Iterable[Json], now: str) -> dict[str, Any] | None:
    """The status with the accepted names; None if it is unchanged. `group`: all definitions of the group."""
    wanted: Json = definition["spec"]["names"]
    status: dict[str, Any] = definition["status"]
    accepted: Json = status["acceptedNames"]
    if wanted == accepted:
        return None
    names, verdict = _accept(wanted, accepted, [other["status"]["acceptedNames"] for other in group])
    before = find(definition, "NamesAccepted")
    if (
        names == accepted
        and before is not None
        and all(before[f] == verdict[f] for f in ("status", "reason", "message"))
    ):
        return None
    status = with_condition({**status, "acceptedNames": names}, verdict, now)
    established = find(definition, "Established")
    if (established is None or established["status"] != "True") and verdict["status"] == "True":
        established = condition("Established", "False", "Installing", "the initial names have been accepted")
    elif established is None:
        established = condition("Established", "False", "NotAccepted", "not all names are accepted")
    return with_condition(status, established, now)


def _accept(wanted: Json, accepted: Json, others: list[Json]) -> tuple[Json, Json]:
    resources = {name for names in others for name in (names.get("plural"), names.get("singular"))}
    resources |= {name for names in others for name in names.get("shortNames") or ()}
    kinds = {name for names in others for name in (names.get("kind"), names.get("listKind"))}
    result = dict(accepted)
    reason = message = ""
    for field, conflict in _CONFLICTS:
        if _free(wanted.get(field, ""), accepted.get(field, ""), resources):
            result[field] = wanted.get(field, "")
        else:
            reason, message = conflict, _in_use(wanted[field])
    short = wanted.get("shortNames") or []
    taken = [name for name in short if name not in (accepted.get("shortNames") or ()) and name in resources]
    if taken:
        texts = list(dict.fromkeys(map(_in_use, taken)))
        reason, message = "ShortNamesConflict", texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
    else:
        _set_or_drop(result, "shortNames", short)
    for field, conflict in _KIND_CONFLICTS:
        if _free(wanted.get(field, ""), accepted.get(field, ""), kinds):
            result[field] = wanted.get(field, "")
        else:
            reason, message = conflict, _in_use(wanted[field])
    _set_or_drop(result, "categories", wanted.get("categories") or [])
    if reason:
        return result, condition("NamesAccepted", "False", reason, message)
    return result, condition("NamesAccepted", "True", "NoConflicts", "no conflicts found")


def _free(wanted: str, accepted: str, used: set[Any]) -> bool:
    return wanted == accepted or wanted not in used


def _in_use(name: str) -> str:
    return f"{quote(name)} is already in use"


def _set_or_drop(names: Json, field: str, values: list[str]) -> None:
    if values:
        names[field] = values
    else:
        names.pop(field, None)
