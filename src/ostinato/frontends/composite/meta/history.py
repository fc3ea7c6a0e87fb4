"""ControllerRevisions of parents: found like children, written before them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from ostinato.api import accessors as access
from ostinato.api.object import KindInfo, kind_of
from ostinato.api.selectors.labels import Operator, Requirement, Selector
from ostinato.cache.client import CachedClient
from ostinato.client.views import Unstructured
from ostinato.frontends.composite.meta.claims import CONTROLLER_UID, Claims
from ostinato.frontends.composite.meta.definitions import ControllerRevision
from ostinato.frontends.composite.meta.revisions import API_GROUP, RESOURCE, Revision, revision_labels
from ostinato.frontends.kernel.sync import Json

REVISIONS: Final = Unstructured(kind_of(ControllerRevision).gvk, kind_of(ControllerRevision))
_OWN: Final = ("parentPatch", "children")


class History:
    def __init__(self, client: CachedClient, field_manager: str, info: KindInfo) -> None:
        """`info`: the kind of the parents."""
        self._client = client
        self._manager = field_manager
        self._info = info
        self._claims = Claims(client, field_manager, [REVISIONS])

    async def claimed(self, parent: Json, selector: Selector) -> list[Json]:
        """Return the ControllerRevisions of a parent."""
        own = selector.with_requirements(
            Requirement(API_GROUP, Operator.EQUALS, (self._info.gvk.group,)),
            Requirement(RESOURCE, Operator.EQUALS, (self._info.plural,)),
        )
        return await self._claims.claimed(REVISIONS, parent, own)

    async def store(
        self, revisions: Sequence[Revision], stored: Sequence[Json], parent: Json, *, generated: bool
    ) -> None:
        """Write the latest revision and those with children, and delete the others."""
        kept = [revisions[0], *(each for each in revisions[1:] if each.claims)]
        names = {each.name for each in kept}
        for former in stored:
            if access.name(former) not in names and not access.is_being_deleted(former):
                await self._client.delete(former, missing_ok=True)
        labels = revision_labels(self._info, _labels(parent, generated=generated))
        for revision in kept:
            document = revision.document(labels)
            if revision.stored is None:
                await self._client.create(document, field_manager=self._manager)
            elif any(revision.stored.get(name) != document.get(name) for name in _OWN):
                changed = {key: each for key, each in revision.stored.items() if key not in _OWN}
                changed.update({name: document[name] for name in _OWN if name in document})
                await self._client.update(changed, field_manager=self._manager)


def _labels(parent: Json, *, generated: bool) -> Mapping[str, str]:
    """Return labels that the selector of the parent matches: those of its template, or the generated one."""
    if generated:
        return {CONTROLLER_UID: access.uid(parent)}
    found: Any = parent
    for step in ("spec", "template", "metadata", "labels"):
        found = found.get(step) if isinstance(found, dict) else None
    return {name: value for name, value in (found or {}).items() if isinstance(value, str)}
