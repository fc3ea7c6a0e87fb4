"""History: the templates that a StatefulSet or DaemonSet has had, each kept as a ControllerRevision.

    history = History(ctx.client, daemonset, selector, "controller-revision-hash")
    revisions = await history.load()
    current, collisions = await history.revise(revisions, collisions)

- A revision has a number: the one of the template that is wanted now has the highest. A template that comes back is the
  revision that it was, with a new number.
- Its name is the owner's and a hash of the template. Where that name is taken by another template, a count of
  collisions goes into the hash; the owner's status keeps it.
- What is kept is a patch, which makes the owner what it was: `kubectl rollout undo` sends it as it is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from ostinato.api.codec import ObjectError, from_dict, to_dict
from ostinato.api.errors import AlreadyExists
from ostinato.api.meta import ObjectMeta
from ostinato.api.owners import controller_of, controller_reference_to
from ostinato.api.selectors.labels import Selector
from ostinato.cache import CachedClient
from ostinato.client.patching import MergePatch
from ostinato.kinds.apps_v1 import ControllerRevision, DaemonSet, StatefulSet
from ostinato.kinds.core_v1 import PodTemplateSpec
from ostinato.plane.ownership.controller_refs import claim_entries
from ostinato.world.ids import hash_text

_MAX_PREFIX: Final = 223  # of a name, so that the hash fits


class History:
    """The revisions of one owner. The cache of ControllerRevisions must keep the index `CONTROLLED`."""

    def __init__(self, client: CachedClient, owner: StatefulSet | DaemonSet, selector: Selector, label: str) -> None:
        """`label`: of a revision, in which its hash stands."""
        self._client = client
        self._owner = owner
        self._label = label
        self._selector = selector

    async def load(self) -> list[ControllerRevision]:
        """The owner's own, after adoptions and releases; the newest last."""
        found = await claim_entries(self._client, self._owner, self._selector, ControllerRevision)
        return sorted((entry.read(ControllerRevision) for entry in found), key=_age)

    async def revise(self, revisions: Sequence[ControllerRevision], collisions: int) -> tuple[ControllerRevision, int]:
        """The revision of the template as it is now, made or made the newest if need be, and the collisions then."""
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
        """Delete so many of those that nothing uses, the oldest first."""
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
                    continue  # it has just gone
                manager = controller_of(there)
                if manager is not None and manager.uid == owner.metadata.uid and _is_patch(there.data, wanted):
                    return there, collisions
                collisions += 1


def patch_to(template: PodTemplateSpec) -> dict[str, Any]:
    """The patch that gives an owner this template."""
    return {"spec": {"template": {**to_dict(template), "$patch": "replace"}}}


def template_of(revision: ControllerRevision) -> PodTemplateSpec:
    """The template that a revision keeps; an `ObjectError` if there is none that could be read."""
    return from_dict(PodTemplateSpec, _template_in(revision.data))


def hash_of(patch: Mapping[str, Any], collisions: int) -> str:
    """A short text that two templates hardly share: FNV-1 of the JSON and the count, in letters that spell nothing."""
    value = 0x811C9DC5
    for byte in msgspec.json.encode(patch, order="sorted") + str(collisions).encode():
        value = (value * 0x01000193) & 0xFFFFFFFF ^ byte
    return hash_text(value)


def _age(revision: ControllerRevision) -> tuple[int, str, str]:
    created = revision.metadata.creation_timestamp
    return revision.revision, str(created or ""), revision.metadata.name


def _is_patch(recorded: Any, wanted: dict[str, Any]) -> bool:
    """Whether a revision keeps this template, even if it was written by somebody who writes defaults otherwise."""
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
        raise ObjectError("a revision keeps no spec.template")
    return {name: value for name, value in template.items() if name != "$patch"}
