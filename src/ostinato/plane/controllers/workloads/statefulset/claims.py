"""PersistentVolumeClaims of a StatefulSet's Pods, created from its templates before the Pods.

A claim is kept when its Pod is deleted and reused by the next Pod of the ordinal, unless the retention policy sets an
owner (`retention`).
"""

from __future__ import annotations

import copy

from ostinato.api.errors import AlreadyExists, APIError
from ostinato.api.meta import ObjectMeta
from ostinato.api.object import Object
from ostinato.api.owners import controller_reference_to
from ostinato.controllers import Context
from ostinato.kinds.apps_v1 import StatefulSet
from ostinato.kinds.core_v1 import PersistentVolumeClaim
from ostinato.plane.controllers.workloads.statefulset import retention
from ostinato.plane.controllers.workloads.statefulset.pods import claim_names, member_name, ordinals, split
from ostinato.plane.objects.pod_state import PodState


class ClaimError(Exception):
    """The claims of a Pod are not available."""


class PodClaims:
    """Claims of one StatefulSet, for one sync."""

    def __init__(self, ctx: Context, owner: StatefulSet) -> None:
        self._ctx = ctx
        self._client = ctx.client
        self._owner = owner
        self._made: set[str] = set()  # created in this sync, with their owners

    async def has_stale_claim(self, ordinal: int) -> bool:
        """Return whether a claim is owned by an earlier Pod of the ordinal: its deletion must be awaited."""
        policy = self._owner.spec.persistent_volume_claim_retention_policy
        if policy is None or policy.when_scaled != "Delete":
            return False
        pod = PodState(metadata=ObjectMeta(name=member_name(self._owner, ordinal)))
        for claim in await self._claims(ordinal):
            if retention.has_stale_reference(claim.metadata.owner_references, pod):
                return True
        return False

    async def create_missing(self, ordinal: int) -> None:
        """Create missing claims. Raises `ClaimError` if one cannot be created or is terminating."""
        problems: list[str] = []
        for template in self._owner.spec.volume_claim_templates:
            claim = self._new(template, ordinal)
            name = claim.metadata.name
            existing = await self._client.get(PersistentVolumeClaim, claim.metadata, missing=None)
            if existing is None:
                problems += await self._create(claim, member_name(self._owner, ordinal))
            elif existing.metadata.deletion_timestamp is not None:
                problems.append(f"pvc {name} is being deleted")
        if problems:
            raise ClaimError(problems[0] if len(problems) == 1 else f"[{', '.join(problems)}]")

    async def owners_match(self, pod: Object) -> bool:
        """Return whether the claims of a Pod have the owners of the retention policy."""
        ordinal = split(pod.metadata.name)[1]
        condemned = ordinal not in ordinals(self._owner)
        return all(
            retention.matches_policy(claim.metadata.owner_references, self._owner, pod, is_condemned=condemned)
            for claim in await self._claims(ordinal)
        )

    async def update_owners(self, pod: Object) -> None:
        """Set the owners of the retention policy on the claims of a Pod."""
        owner, ordinal = self._owner, split(pod.metadata.name)[1]
        condemned = ordinal not in ordinals(owner)
        for claim in await self._claims(ordinal):
            references = claim.metadata.owner_references
            if retention.has_conflicting_controller(references, owner, pod):
                self._ctx.event(
                    owner,
                    "ConflictingController",
                    f"PersistentVolumeClaim {claim.metadata.name} has a conflicting OwnerReference that acts as a "
                    "manging controller, the retention policy is ignored for this claim",
                    kind="Warning",
                )
            if not retention.matches_policy(references, owner, pod, is_condemned=condemned):
                claim.metadata.owner_references = retention.with_policy(references, owner, pod, is_condemned=condemned)
                await self._client.update(claim)

    async def _claims(self, ordinal: int) -> list[PersistentVolumeClaim]:
        """Return the existing claims of a Pod that were not created in this sync."""
        names = [name for name in claim_names(self._owner, ordinal).values() if name not in self._made]
        namespace = self._owner.metadata.namespace
        found = [
            await self._client.get(PersistentVolumeClaim, name, namespace=namespace, missing=None) for name in names
        ]
        return [claim for claim in found if claim is not None]

    def _new(self, template: PersistentVolumeClaim, ordinal: int) -> PersistentVolumeClaim:
        owner = self._owner
        claim = copy.deepcopy(template)
        metadata = template.metadata
        wanted = retention.desired_owner(owner, is_condemned=False)
        return PersistentVolumeClaim(
            metadata=ObjectMeta(
                name=f"{metadata.name}-{member_name(owner, ordinal)}",
                namespace=owner.metadata.namespace,
                labels={**metadata.labels, **owner.spec.selector.match_labels},
                annotations=dict(metadata.annotations),
                finalizers=list(metadata.finalizers),
                owner_references=[] if wanted is None else [controller_reference_to(owner)],
            ),
            spec=claim.spec,
        )

    async def _create(self, claim: PersistentVolumeClaim, pod: str) -> list[str]:
        """Create a claim; return error messages."""
        owner, name = self._owner, claim.metadata.name
        try:
            await self._client.create(claim)
        except APIError as error:
            if not isinstance(error, AlreadyExists):
                note = f"Create Claim {name} for Pod {pod} in StatefulSet {owner.metadata.name} failed error: {error}"
                self._ctx.event(owner, "FailedCreate", note, kind="Warning")
            return [f"failed to create PVC {name}: {error}"]
        self._made.add(name)
        note = f"Create Claim {name} Pod {pod} in StatefulSet {owner.metadata.name} success"
        self._ctx.event(owner, "SuccessfulCreate", note)
        return []
