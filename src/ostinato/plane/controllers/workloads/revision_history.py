"""Revision history of StatefulSets and DaemonSets: one ControllerRevision per template.

    history = History(ctx.client, daemonset, selector, "controller-revision-hash")
    revisions = await history.load()
    current, collisions = await history.revise(revisions, collisions)

- The revision of the current template has the highest number. A restored template reuses its revision with a new
  number.
- A revision is named after its owner and a hash of the template; a collision count in the owner's status resolves hash
  collisions.
- A revision stores a patch that restores the template, as `kubectl rollout undo` applies it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from ostinato.api.codec import ObjectError, from_dict, to_dict
from ostinato.api.errors import AlreadyExists
from ostinato.api.meta import ObjectMeta
from ostinato.api.owners import controller_reference_to
from ostinato.api.selectors.labels import Selector
from ostinato.cache import CachedClient
from ostinato.client.patching import MergePatch
from ostinato.kinds.apps_v1 import ControllerRevision, DaemonSet, StatefulSet
from ostinato.kinds.core_v1 import PodTemplateSpec
from ostinato.plane.ownership.controller_refs import claim_entries
from ostinato.world.ids import hash_text

_MAX_PREFIX: Final = 223  # of a name


class History:
    """Revisions of one owner. The informer of ControllerRevisions needs the index `BY_CONTROLLER`."""

    def __init__(self, client: CachedClient, owner: StatefulSet | DaemonSet, selector: Selector, label: str) -> None:
        """`label`: label of a revision that holds its hash."""
        self._client = client
        self._owner = owner
        self._label = label
        self._selector = selector

    async def load(self) -> list[ControllerRevision]:
        """Adopt and release revisions; return the owner's, oldest first."""
        found = await claim_entries(self._client, self._owner, self._selector, ControllerRevision)
        return sorted((entry.read(ControllerRevision) for entry in found), key=_age)

    async def revise(self, revisions: Sequence[ControllerRevision], collisions: int) -> tuple[ControllerRevision, int]:
        """Return the revision of the current template, created or renumbered if necessary, and the collision count."""
        wanted = patch_to(self._owner.spec.template)
        newest = max((each.revision for each in revisions), default=0)
        equal = [each for each in revisions if _is_patch(each.data, wanted)]
        if not equal:
            return await self._create(wanted, newest + 1, collisions)
        found = equal[-1]
        if found is not revisions[-1]:
            change = MergePatch({"revision": newest + 1, "metadata": {"uid": found.metadata.uid}})
            found = await self._client.patch(ControllerRevision, found.metadata, change)
        return found, collisions

    async def truncate(self, unused: Sequence[ControllerRevision], excess: int) -> None:
        """Delete the oldest `excess` of the unused revisions."""
        for each in unused[: max(excess, 0)]:
            await self._client.delete(each, missing_ok=True)

    async def _create(self, wanted: dict[str, Any], revision: int, collisions: int) -> tuple[ControllerRevision, int]:
        owner = self._owner
        while True:
            hashed = hash_of(wanted, collisions)
            made = ControllerRevision(
                metadata=ObjectMeta(
                    name=f"{owner.metadata.name[:_MAX_PREFIX]}-{hashed}",
                    namespace=owner.metadata.namespace,
                    labels={**owner.spec.template.metadata.labels, self._label: hashed},
                    annotations=dict(owner.metadata.annotations),
                    owner_references=[controller_reference_to(owner)],
                ),
                data=wanted,
                revision=revision,
            )
            try:
                return await self._client.create(made), collisions
            except AlreadyExists:
                there = await self._client.live.get(ControllerRevision, made.metadata, missing=None)
                if there is None:
                    continue  # deleted in between
                if _is_patch(there.data, wanted):  # maybe of a former owner of the same name, about to be collected
                    return there, collisions
                collisions += 1


def patch_to(template: PodTemplateSpec) -> dict[str, Any]:
    """Return the patch that sets this template, with sorted keys: its users compare it as bytes."""
    patch = {"spec": {"template": {**to_dict(template), "$patch": "replace"}}}
    found: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(patch, order="sorted"))
    return found


def template_of(revision: ControllerRevision) -> PodTemplateSpec:
    """Return the template of a revision. Raises `ObjectError` if it has none."""
    return from_dict(PodTemplateSpec, _template_in(revision.data))


def hash_of(patch: Mapping[str, Any], collisions: int) -> str:
    """Return the revision hash: FNV-1 of patch and collision count, in Kubernetes' safe alphabet."""
    value = 0x811C9DC5
    for byte in msgspec.json.encode(patch, order="sorted") + str(collisions).encode():
        value = (value * 0x01000193) & 0xFFFFFFFF ^ byte
    return hash_text(value)


def _age(revision: ControllerRevision) -> tuple[int, str, str]:
    created = revision.metadata.creation_timestamp
    return revision.revision, str(created or ""), revision.metadata.name


def _is_patch(recorded: Any, wanted: dict[str, Any]) -> bool:
    """Return whether a revision stores this template, with or without defaults."""
    if recorded == wanted:
        return True
    try:
        return patch_to(from_dict(PodTemplateSpec, _template_in(recorded))) == wanted
    except ObjectError:
        return False


def _template_in(data: Any) -> dict[str, Any]:
    spec = data.get("spec") if isinstance(data, dict) else None
    template = spec.get("template") if isinstance(spec, dict) else None
    if not isinstance(template, dict):
        raise ObjectError("ControllerRevision: data.spec.template: missing")
    return {name: value for name, value in template.items() if name != "$patch"}
