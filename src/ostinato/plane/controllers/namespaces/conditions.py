"""The five deletion conditions of a terminating namespace, with reason and message of their False status."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Final

import msgspec

from ostinato.api.gvk import GroupVersion, GroupVersionResource
from ostinato.api.time import Time
from ostinato.kinds.core_v1 import NamespaceCondition, NamespaceStatus

DISCOVERY: Final = "NamespaceDeletionDiscoveryFailure"
PARSING: Final = "NamespaceDeletionGroupVersionParsingFailure"
CONTENT: Final = "NamespaceDeletionContentFailure"
REMAINING: Final = "NamespaceContentRemaining"
FINALIZERS: Final = "NamespaceFinalizersRemaining"

_WELL: Final = {
    DISCOVERY: ("ResourcesDiscovered", "All resources successfully discovered"),
    PARSING: ("ParsedGroupVersions", "All legacy kube types successfully parsed"),
    CONTENT: ("ContentDeleted", "All content successfully deleted, may be waiting on finalization"),
    REMAINING: ("ContentRemoved", "All content successfully removed"),
    FINALIZERS: ("ContentHasNoFinalizers", "All content-preserving finalizers finished"),
}


class DeletionFindings(msgspec.Struct):
    """Result of one attempt to delete the content of a namespace."""

    undiscovered: dict[GroupVersion, Exception] = {}
    errors: list[Exception] = []
    remaining: Counter[GroupVersionResource] = msgspec.field(default_factory=Counter)
    finalizers: Counter[str] = msgspec.field(default_factory=Counter)
    pods_remain: bool = False  # other kinds were not deleted and are not counted

    def count(self, gvr: GroupVersionResource, finalizers: Iterable[list[str]]) -> bool:
        """Count the remaining objects of a kind by finalizer; return whether any remain."""
        found = False
        for each in finalizers:
            self.remaining[gvr] += 1
            self.finalizers.update(each)
            found = found or bool(each)
        return found

    def failures(self) -> dict[str, tuple[str, str]]:
        """Return reason and message of the conditions with status True."""
        failures: dict[str, tuple[str, str]] = {}
        if self.undiscovered:
            detail = ", ".join(sorted(f"{version}: {error}" for version, error in self.undiscovered.items()))
            error = f"unable to retrieve the complete list of server APIs: {detail}"
            failures[DISCOVERY] = (
                "DiscoveryFailed",
                f"Discovery failed for some groups, {len(self.undiscovered)} failing: {error}",
            )
        if self.errors:
            detail = ", ".join(sorted(map(str, self.errors)))
            failures[CONTENT] = (
                "ContentDeletionFailed",
                f"Failed to delete all resource types, {len(self.errors)} remaining: {detail}",
            )
        if self.remaining and not self.pods_remain:
            detail = ", ".join(
                sorted(
                    f"{gvr.resource}.{gvr.group} has {count} resource instances"
                    for gvr, count in self.remaining.items()
                )
            )
            failures[REMAINING] = ("SomeResourcesRemain", f"Some resources are remaining: {detail}")
        if self.finalizers and not self.pods_remain:
            detail = ", ".join(
                sorted(f"{name} in {count} resource instances" for name, count in self.finalizers.items())
            )
            failures[FINALIZERS] = (
                "SomeFinalizersRemain",
                f"Some content in the namespace has finalizers remaining: {detail}",
            )
        return failures


def update_conditions(status: NamespaceStatus, findings: DeletionFindings, now: Time) -> bool:
    """Update the conditions; return whether one changed."""
    changed = False
    failures = findings.failures()
    for kind, well in _WELL.items():
        reason, message = failures.get(kind, well)
        truth = "True" if kind in failures else "False"
        known = next((each for each in status.conditions if each.type == kind), None)
        if known is None:
            known = NamespaceCondition(type=kind, status="", last_transition_time=now)
            status.conditions = [*status.conditions, known]
        if (known.status, known.reason, known.message) != (truth, reason, message):
            if known.status != truth:
                known.last_transition_time = now
            known.status, known.reason, known.message = truth, reason, message
            changed = True
    return changed
