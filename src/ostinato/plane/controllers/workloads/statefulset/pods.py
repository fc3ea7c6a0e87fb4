"""Pods of a StatefulSet: ordinal, name, identity labels and claims."""

from __future__ import annotations

import re
from typing import Final

import msgspec

from ostinato.api.struct import BuiltinStruct
from ostinato.kinds.apps_v1 import StatefulSet
from ostinato.kinds.core_v1 import PersistentVolumeClaimVolumeSource, Pod, PodTemplateSpec, Volume
from ostinato.plane.controllers.workloads.pod_template import pod_from_template
from ostinato.plane.objects.pod_state import PodState, PodStateSpec

NAME_LABEL: Final = "statefulset.kubernetes.io/pod-name"
INDEX_LABEL: Final = "apps.kubernetes.io/pod-index"
REVISION_LABEL: Final = "controller-revision-hash"

_NUMBERED: Final = re.compile(r"(.*)-([0-9]+)", re.DOTALL)
_LARGEST: Final = 2**31 - 1


class ClaimSource(BuiltinStruct):
    claim_name: str = ""


class MemberVolume(BuiltinStruct):
    name: str = ""
    persistent_volume_claim: ClaimSource | None = None


class MemberSpec(PodStateSpec):
    volumes: list[MemberVolume] = []


class Member(PodState, version="v1", kind="Pod", plural="pods"):
    """A Pod with its volumes."""

    spec: MemberSpec = msgspec.field(default_factory=MemberSpec)

    @property
    def ordinal(self) -> int:
        """Ordinal; -1 if the name has none."""
        return split(self.metadata.name)[1]

    @property
    def revision(self) -> str:
        """Name of the revision that it was created from."""
        return self.metadata.labels.get(REVISION_LABEL, "")


def split(name: str) -> tuple[str, int]:
    """Split a Pod name into StatefulSet name and ordinal; "" and -1 if it has no ordinal."""
    found = _NUMBERED.fullmatch(name)
    if found is None:
        return "", -1
    number = int(found[2]) if len(found[2]) <= len(str(_LARGEST)) else _LARGEST + 1
    return found[1], number if number <= _LARGEST else -1


def first_ordinal(owner: StatefulSet) -> int:
    return owner.spec.ordinals.start or 0 if owner.spec.ordinals is not None else 0


def ordinals(owner: StatefulSet) -> range:
    """Return the desired ordinals."""
    first = first_ordinal(owner)
    return range(first, first + replicas(owner))


def replicas(owner: StatefulSet) -> int:
    return 1 if owner.spec.replicas is None else owner.spec.replicas


def member_name(owner: StatefulSet, ordinal: int) -> str:
    return f"{owner.metadata.name}-{ordinal}"


def new_member(owner: StatefulSet, template: PodTemplateSpec, revision: str, ordinal: int) -> Pod:
    """Return the Pod of an ordinal, from the template of a revision."""
    pod = pod_from_template(template, owner)
    name = pod.metadata.name = member_name(owner, ordinal)
    pod.metadata.labels |= {**identity(name), REVISION_LABEL: revision}
    pod.spec.hostname = name
    pod.spec.subdomain = owner.spec.service_name or None
    claims = claim_names(owner, ordinal)
    own = [
        Volume(name=volume, persistent_volume_claim=PersistentVolumeClaimVolumeSource(claim_name=claim))
        for volume, claim in claims.items()
    ]
    pod.spec.volumes = [*own, *(each for each in pod.spec.volumes if each.name not in claims)]
    return pod


def identity(name: str) -> dict[str, str]:
    """Return the identity labels."""
    return {NAME_LABEL: name, INDEX_LABEL: str(split(name)[1])}


def claim_names(owner: StatefulSet, ordinal: int) -> dict[str, str]:
    """Return claim names by volume name."""
    return {
        template.metadata.name: f"{template.metadata.name}-{member_name(owner, ordinal)}"
        for template in owner.spec.volume_claim_templates
    }


def has_identity(member: Member) -> bool:
    return member.metadata.labels.get(NAME_LABEL) == member.metadata.name


def has_storage(owner: StatefulSet, member: Member) -> bool:
    """Return whether the Pod's volumes refer to the claims of its ordinal."""
    claimed = {
        volume.name: volume.persistent_volume_claim.claim_name
        for volume in member.spec.volumes
        if volume.persistent_volume_claim is not None
    }
    return all(claimed.get(volume) == claim for volume, claim in claim_names(owner, member.ordinal).items())
