"""Retention policy: owners of the claims of a StatefulSet's Pods.

| whenDeleted | whenScaled | owner of the claim |
|---|---|---|
| Retain | Retain | none |
| Delete | Retain | the StatefulSet |
| Retain | Delete | the Pod, once it is condemned |
| Delete | Delete | the StatefulSet; the Pod, once it is condemned |

A claim with another controller, or with an owner reference to an earlier StatefulSet or Pod of the name, is not
changed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from ostinato.api.meta import OwnerReference
from ostinato.api.object import Object, kind_of
from ostinato.api.owners import controller_reference_to
from ostinato.kinds.apps_v1 import StatefulSet

Owner = Literal["set", "pod"] | None


def desired_owner(owner: StatefulSet, *, is_condemned: bool) -> Owner:
    """Return the desired owner of the claims of a Pod."""
    policy = owner.spec.persistent_volume_claim_retention_policy
    if policy is None:
        return None
    if policy.when_scaled == "Delete" and is_condemned:
        return "pod"
    return "set" if policy.when_deleted == "Delete" else None


def retains_all(owner: StatefulSet) -> bool:
    policy = owner.spec.persistent_volume_claim_retention_policy
    return policy is None or (policy.when_deleted != "Delete" and policy.when_scaled != "Delete")


def has_stale_reference(references: Sequence[OwnerReference], owner: Object) -> bool:
    """Return whether a reference names an earlier object of the same kind and name."""
    return any(_names(each, owner) and each.uid != owner.metadata.uid for each in references)


def has_conflicting_controller(references: Sequence[OwnerReference], owner: StatefulSet, pod: Object) -> bool:
    """Return whether another controller owns the claim although the policy requires an owner."""
    if retains_all(owner):
        return False
    for each in references:
        if _names(each, owner):
            if each.uid != owner.metadata.uid:
                return True
        elif _names(each, pod):
            if each.uid != pod.metadata.uid:
                return True
        elif each.controller:
            return True
    return False


def matches_policy(
    references: Sequence[OwnerReference], owner: StatefulSet, pod: Object, *, is_condemned: bool
) -> bool:
    """Return whether the references match the policy, or must not be changed."""
    if has_stale_reference(references, owner) or has_stale_reference(references, pod):
        return True
    ours = {each.uid: each for each in references if each.uid in (owner.metadata.uid, pod.metadata.uid)}
    if has_conflicting_controller(references, owner, pod):
        return not ours
    if any(not each.controller for each in ours.values()):
        return False
    wanted = _wanted(owner, pod, is_condemned=is_condemned)
    return set(ours) == (set() if wanted is None else {wanted.metadata.uid})


def with_policy(
    references: Sequence[OwnerReference], owner: StatefulSet, pod: Object, *, is_condemned: bool
) -> list[OwnerReference]:
    """Return the references that the policy requires."""
    others = [each for each in references if not _names(each, owner) and not _names(each, pod)]
    wanted = _wanted(owner, pod, is_condemned=is_condemned)
    if wanted is None or has_conflicting_controller(references, owner, pod):
        return others
    return [*others, controller_reference_to(wanted)]


def _wanted(owner: StatefulSet, pod: Object, *, is_condemned: bool) -> Object | None:
    wanted = desired_owner(owner, is_condemned=is_condemned)
    return None if wanted is None else pod if wanted == "pod" else owner


def _names(reference: OwnerReference, owner: Object) -> bool:
    gvk = kind_of(owner).gvk
    return (reference.api_version, reference.kind, reference.name) == (gvk.api_version, gvk.kind, owner.metadata.name)
