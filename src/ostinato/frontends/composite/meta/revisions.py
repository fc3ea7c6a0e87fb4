"""Revisions: rolling updates of children, one at a time, with the progress in ControllerRevision objects.

- A revision is the part of a parent that its history covers (`revisionHistory.fieldPaths`, default spec), and the names
  of the children that are at it. The hook is called for each revision that still has children.
- Each sync moves at most one child to the latest revision: the first that is not at it, in the order of the hook's
  answer, and only while all children at the latest revision exist, are up to date and pass the status checks.
- Revisions are written before children change, so that a restart continues where it stopped.
- The status of the parent gets the condition Updated.
"""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha1
from typing import Any, Final

import msgspec

from ostinato.api import accessors as access
from ostinato.api.codec import to_dict
from ostinato.api.gvk import GroupKind
from ostinato.api.object import KindInfo
from ostinato.api.owners import controller_reference_to
from ostinato.frontends.composite.meta.definitions import GROUP, VERSION, StatusChecks
from ostinato.frontends.kernel.sync import DeciderError, Json, Objects, SyncRequest, SyncResult

API_GROUP: Final = f"{GROUP}/apiGroup"
RESOURCE: Final = f"{GROUP}/resource"
_MAX_NAME: Final = 253

ChildKey = tuple[GroupKind, str]
"""A child by kind and by its name relative to the parent."""

IsUpdated = Callable[[Json, Json], Awaitable[bool]]
"""Whether an observed child is as desired: `await is_updated(observed, desired)`."""


@dataclass
class Revision:
    """A revision of a parent. `stored`: its ControllerRevision as it was read; None for a new one."""

    name: str
    parent: Json
    patch: Json
    stored: Json | None = None
    result: SyncResult = field(default_factory=SyncResult)
    desired: dict[ChildKey, Json] = field(default_factory=dict)
    claims: dict[ChildKey, None] = field(default_factory=dict)  # in order

    def document(self, labels: Mapping[str, str]) -> Json:
        """Return the ControllerRevision to store."""
        groups: dict[GroupKind, list[str]] = {}
        for kind, name in self.claims:
            groups.setdefault(kind, []).append(name)
        children = [
            {"apiGroup": kind.group, "kind": kind.kind, "names": names} for kind, names in groups.items() if names
        ]
        metadata: Json = {"name": self.name, "labels": dict(labels)}
        if access.namespace(self.parent):
            metadata["namespace"] = access.namespace(self.parent)
        metadata["ownerReferences"] = [to_dict(controller_reference_to(self.parent))]
        document: Json = {
            "apiVersion": f"{GROUP}/{VERSION}",
            "kind": "ControllerRevision",
            "metadata": metadata,
            "parentPatch": self.patch,
        }
        if children:
            document["children"] = children
        return document


@dataclass(frozen=True)
class RollingKind:
    """How children of a kind are updated, one at a time."""

    in_place: bool
    checks: StatusChecks | None


def relative_name(parent: Json, child: Json) -> str:
    """Return the name of a child, with its namespace if the parent is cluster-scoped."""
    return access.name(child) if access.namespace(parent) else str(access.key(child))


def child_key(parent: Json, child: Json) -> ChildKey:
    return access.gvk(child).group_kind, relative_name(parent, child)


def revisions_of(parent: Json, info: KindInfo, paths: Sequence[str], stored: Sequence[Json]) -> list[Revision]:
    """Return the revisions of a parent, the latest first; the others have its fields of their time."""
    patch = extract(parent, paths)
    latest = Revision(revision_name(info, access.uid(parent), patch), parent, patch)
    others: list[Revision] = []
    for each in stored:
        own = each.get("parentPatch") or {}
        if own == patch:
            latest.stored, latest.name, revision = each, access.name(each), latest
        else:
            former = insert(copy.deepcopy(parent), own, paths)
            revision = Revision(access.name(each), former, own, each)
            others.append(revision)
        revision.claims = dict.fromkeys(_claims(each))
    return [latest, *sorted(others, key=lambda each: each.name)]


async def decide_all(
    revisions: Sequence[Revision], request: SyncRequest, decide: Callable[[SyncRequest], Awaitable[SyncResult]]
) -> None:
    """Call the decider for each revision, concurrently."""

    async def one(revision: Revision) -> None:
        asked = msgspec.structs.replace(request, parent=revision.parent)
        revision.result = await decide(asked)
        children = revision.result.children or []
        revision.desired = {child_key(revision.parent, child): child for child in children}

    try:
        async with asyncio.TaskGroup() as group:
            for revision in revisions:
                group.create_task(one(revision))
    except ExceptionGroup as failed:
        raise failed.exceptions[0] from None


async def roll(
    revisions: Sequence[Revision],
    observed: Mapping[ChildKey, Json],
    kinds: Mapping[GroupKind, RollingKind],
    is_updated: IsUpdated,
) -> Json:
    """Move claims to the latest revision as far as the rollout may proceed; return the condition Updated."""
    latest, others = revisions[0], revisions[1:]
    owner_of = _settle(revisions, kinds)
    for key, child in latest.desired.items():
        if key[0] not in kinds or owner_of.get(key) is latest:
            continue
        owner, found = owner_of.get(key), observed.get(key)
        if owner is None or (found is not None and await is_updated(found, child)):
            _move(key, latest, others, owner_of)
    for key in latest.desired:
        if key[0] not in kinds or owner_of[key] is latest:
            continue
        waiting = await _waits_for(latest, observed, kinds, is_updated)
        if waiting:
            return _updated("False", "RolloutWaiting", waiting)
        _move(key, latest, others, owner_of)
        return _updated("False", "RolloutProgressing", f"updating {key[0].kind} {key[1]}")
    return _updated("True", "OnLatestRevision", f"latest ControllerRevision: {latest.name}")


def combined(revisions: Sequence[Revision]) -> SyncResult:
    """Return one result: the children of each revision that are at it, the status of the latest."""
    latest, others = revisions[0], [each for each in revisions[1:] if each.claims]
    desired = dict(latest.desired)
    for revision in others:
        for key in revision.claims:
            if key in desired and key in revision.desired:
                desired[key] = revision.desired[key]
    results = [latest.result, *(each.result for each in others)]
    delays = [each.resync_after for each in results if each.resync_after is not None]
    result = msgspec.structs.replace(latest.result, children=list(desired.values()))
    result.resync_after = min(delays, default=None)
    result.finalized = all(each.finalized for each in results)
    return result


def set_condition(status: Json, condition: Json) -> None:
    """Set a condition in a status."""
    conditions = status.get("conditions")
    if not isinstance(conditions, list):
        conditions = []
    kept = [each for each in conditions if not (isinstance(each, dict) and each.get("type") == condition["type"])]
    status["conditions"] = [*kept, condition]


def revision_name(info: KindInfo, uid: str, patch: Json) -> str:
    digest = sha1(uid.encode() + msgspec.json.encode(patch, order="deterministic"), usedforsecurity=False).hexdigest()
    prefix = f"{info.plural}.{info.gvk.group or 'core'}"[: _MAX_NAME - len(digest) - 1]
    return f"{prefix}-{digest}"


def revision_labels(info: KindInfo, own: Mapping[str, str]) -> dict[str, str]:
    """Return the labels of the ControllerRevisions of a parent. `own`: the labels that its selector selects."""
    return {**own, API_GROUP: info.gvk.group, RESOURCE: info.plural}


def extract(parent: Json, paths: Sequence[str]) -> Json:
    """Return the fields at these paths, as an object with nothing else."""
    patch: Json = {}
    for path in paths:
        found: Any = parent
        steps = path.split(".")
        for step in steps:
            found = found.get(step) if isinstance(found, dict) else None
        if found is not None:
            _set(patch, steps, found)
    return patch


def insert(parent: Json, patch: Json, paths: Sequence[str]) -> Json:
    """Set the fields of a patch in a parent."""
    for path in paths:
        found: Any = patch
        steps = path.split(".")
        for step in steps:
            found = found.get(step) if isinstance(found, dict) else None
        if found is not None:
            _set(parent, steps, copy.deepcopy(found))
    return parent


def _set(target: Json, steps: Sequence[str], value: Any) -> None:
    for step in steps[:-1]:
        inner = target.get(step)
        if not isinstance(inner, dict):
            inner = target[step] = {}
        target = inner
    target[steps[-1]] = value


def _claims(stored: Json) -> list[ChildKey]:
    found: list[ChildKey] = []
    for each in stored.get("children") or []:
        if isinstance(each, dict):
            kind = GroupKind(str(each.get("apiGroup") or ""), str(each.get("kind") or ""))
            found += [(kind, str(name)) for name in each.get("names") or []]
    return found


def _settle(revisions: Sequence[Revision], kinds: Mapping[GroupKind, RollingKind]) -> dict[ChildKey, Revision]:
    """Drop claims of children that are not desired any more or claimed twice; return the revision of each child."""
    latest, owner_of = revisions[0], {}
    for revision in revisions:
        kept: dict[ChildKey, None] = {}
        for key in revision.claims:
            if key[0] in kinds and key in latest.desired and key not in owner_of:
                owner_of[key] = revision
                kept[key] = None
        revision.claims = kept
    return owner_of


def _move(key: ChildKey, latest: Revision, others: Sequence[Revision], owner_of: dict[ChildKey, Revision]) -> None:
    for revision in others:
        revision.claims.pop(key, None)
    latest.claims[key] = None
    owner_of[key] = latest


async def _waits_for(
    latest: Revision,
    observed: Mapping[ChildKey, Json],
    kinds: Mapping[GroupKind, RollingKind],
    is_updated: IsUpdated,
) -> str:
    """Return what a rollout waits for; "" if it may proceed."""
    for key in latest.claims:
        kind, name = key[0].kind, key[1]
        child, rolling = observed.get(key), kinds[key[0]]
        if child is None:
            return f"missing child {kind} {name}"
        if not await is_updated(child, latest.desired[key]):
            return f"child {kind} {name} is not updated yet"
        status = child.get("status") if isinstance(child.get("status"), dict) else {}
        assert isinstance(status, dict)
        seen = status.get("observedGeneration")
        if rolling.in_place and isinstance(seen, int) and 0 < seen < access.generation(child):
            return f"child {kind} {name} hasn't observed its latest spec"
        problem = _failed_check(rolling.checks, status)
        if problem:
            return f"child {kind} {name} failed status check: {problem}"
    return ""


def _failed_check(checks: StatusChecks | None, status: Json) -> str:
    for check in () if checks is None else checks.conditions:
        listed = status.get("conditions")
        found = [each for each in listed if isinstance(each, dict)] if isinstance(listed, list) else []
        condition = next((each for each in found if each.get("type") == check.type), None)
        if condition is None:
            return f'required condition type missing: "{check.type}"'
        for name, wanted in (("status", check.status), ("reason", check.reason)):
            if wanted is not None and condition.get(name, "") != wanted:
                return f'"{check.type}" condition {name} is "{condition.get(name, "")}" (want "{wanted}")'
    return ""


def _updated(status: str, reason: str, message: str) -> Json:
    return {"type": "Updated", "status": status, "reason": reason, "message": message}


def check_paths(paths: Sequence[str]) -> None:
    """Raise DeciderError for a path that names no field."""
    for path in paths:
        if not all(path.split(".")):
            raise DeciderError(
                f"spec.parentResource.revisionHistory.fieldPaths: {path!r} is not a path such as spec.template"
            )


def by_key(parent: Json, objects: Objects) -> dict[ChildKey, Json]:
    """Return observed children by kind and relative name."""
    return {child_key(parent, child): child for found in objects.values() for child in found.values()}
