"""Reconciliation of bootstrap roles and bindings: missing rules and subjects are restored at start.

Added rules, subjects and labels are kept. Objects annotated `rbac.authorization.kubernetes.io/autoupdate: "false"` are
not changed.
"""

from __future__ import annotations

from typing import Any

from ostinato.server.access.authorization.rules import Rule, missing

Json = dict[str, Any]

_PROTECTED = "rbac.authorization.kubernetes.io/autoupdate"


def reconciled(current: Json, wanted: Json) -> Json:
    """The role or binding with everything that the bootstrap one has; `current` itself if nothing is missing."""
    metadata: Json = current["metadata"]
    if (metadata.get("annotations") or {}).get(_PROTECTED) == "false":
        return current
    change: Json = {}
    for field in ("annotations", "labels"):
        expected: Json = wanted["metadata"].get(field) or {}
        found: Json = metadata.get(field) or {}
        if not expected.keys() <= found.keys():
            metadata = change["metadata"] = {**metadata, field: expected | found}
    change |= _of_binding(current, wanted) if "roleRef" in wanted else _of_role(current, wanted)
    return {**current, **change} if change else current


def _of_role(current: Json, wanted: Json) -> Json:
    change: Json = {}
    held, expected = current.get("rules") or [], wanted.get("rules") or []
    lacking = [] if held == expected else missing(map(Rule, held), map(Rule, expected))
    if lacking:
        change["rules"] = [*held, *lacking]
    before, after = current.get("aggregationRule"), wanted.get("aggregationRule")
    if after is None:
        return change | ({"aggregationRule": None} if before is not None else {})
    known = (before or {}).get("clusterRoleSelectors") or []
    absent = [selector for selector in after["clusterRoleSelectors"] if selector not in known]
    return change | ({"aggregationRule": {"clusterRoleSelectors": [*known, *absent]}} if absent else {})


def _of_binding(current: Json, wanted: Json) -> Json:
    subjects, expected = current.get("subjects") or [], wanted.get("subjects") or []
    if current["roleRef"] != wanted["roleRef"]:
        return {"roleRef": wanted["roleRef"], "subjects": expected}
    absent = [subject for subject in expected if subject not in subjects]
    return {"subjects": [*subjects, *absent]} if absent else {}
