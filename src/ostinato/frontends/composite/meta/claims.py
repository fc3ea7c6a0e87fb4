"""Children of a parent: found by owner or selector, adopted and released as Kubernetes' own controllers do.

- An object with the parent as controller is a child while its labels match the selector; else it is released.
- An object without a controller that matches is adopted, unless it or the parent is being deleted. Just before, the
  parent is read from the server: one that was deleted and created again must not adopt.
- Without a selector, as for decorators, children are those with the parent as controller and the decorator's
  annotation; nothing is adopted.
- A namespaced parent has children in its namespace only.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any, Final

from ostinato.api import accessors as access
from ostinato.api.errors import APIError, NotFound
from ostinato.api.owners import controller_of
from ostinato.api.selectors.labels import Selector, SelectorError, from_label_selector, from_set
from ostinato.cache.client import CachedClient
from ostinato.cache.store.entry import Entry
from ostinato.cache.store.indexes import OWNER, IndexBy, by
from ostinato.client.requests import view_like
from ostinato.client.views import MetadataOf, Unstructured
from ostinato.controllers.objects.adopting import adopt, release
from ostinato.frontends.kernel.sync import DeciderError, Json, Objects, kind_key, object_key

CONTROLLER_UID: Final = "controller-uid"
ORPHANS: Final = "orphans"
_EVERYWHERE: Final = "*"


def by_orphans() -> IndexBy:
    """Index of the objects without a controller, by namespace, and all of them."""
    return by(ORPHANS, _orphaned)


def _orphaned(entry: Entry) -> Iterator[str]:
    if entry.owners_json and entry.controller is not None:
        return
    yield entry.key.namespace
    yield _EVERYWHERE


def selector_of(parent: Json, *, generated: bool) -> Selector:
    """Return the selector of the children of a parent. Raises DeciderError if it has none."""
    if generated:
        return from_set({CONTROLLER_UID: access.uid(parent)})
    spec = parent.get("spec")
    given = spec.get("selector") if isinstance(spec, dict) else None
    if not isinstance(given, dict) or not (given.get("matchLabels") or given.get("matchExpressions")):
        raise DeciderError(
            f"{access.describe(parent)}: spec.selector must have matchLabels or matchExpressions; "
            "set it, or use generateSelector"
        )
    try:
        return from_label_selector(given)
    except SelectorError as error:
        raise DeciderError(f"{access.describe(parent)}: spec.selector: {error}") from None


class Claims:
    """Finds the children of parents of one controller."""

    def __init__(self, client: CachedClient, field_manager: str, kinds: Sequence[Unstructured]) -> None:
        self._client = client
        self._manager = field_manager
        self._kinds = kinds

    async def selected(self, parent: Json, selector: Selector) -> Objects:
        """Return the children by their selector; adopt and release objects."""
        found: Objects = {}
        for view in self._kinds:
            found[kind_key(view.gvk)] = {
                object_key(child): child for child in await self.claimed(view, parent, selector)
            }
        return found

    async def claimed(self, view: Unstructured, parent: Json, selector: Selector) -> list[Json]:
        """Return the children of one kind."""
        children: list[Json] = []
        is_checked = False
        deleting = access.is_being_deleted(parent)
        for owned in await self._owned(view, parent):
            if selector.matches(access.labels(owned)):
                children.append(owned)
            elif not deleting:
                with suppress(NotFound):
                    await release(self._client, owned, parent, self._manager)
        if deleting:
            return children
        for orphan in await self._orphans(view, parent):
            if access.is_being_deleted(orphan) or not selector.matches(access.labels(orphan)):
                continue
            if not is_checked:
                await self._check_alive(parent)
                is_checked = True
            with suppress(NotFound):
                children.append(await adopt(self._client, orphan, parent, self._manager))
        return children

    async def annotated(self, parent: Json, annotation: str, value: str) -> Objects:
        """Return the children that have the parent as controller and an annotation."""
        found: Objects = {}
        for view in self._kinds:
            owned = await self._owned(view, parent)
            found[kind_key(view.gvk)] = {
                object_key(each): each for each in owned if access.annotations(each).get(annotation) == value
            }
        return found

    async def _owned(self, view: Unstructured, parent: Json) -> list[Json]:
        uid, home = access.uid(parent), self._home(view, parent)
        listed = await self._client.list(view, namespace=home, index=(OWNER, uid))
        return [each for each in listed if _is_controlled(each, uid)]

    async def _orphans(self, view: Unstructured, parent: Json) -> list[Json]:
        home = self._home(view, parent)
        return list(await self._client.list(view, namespace=home, index=(ORPHANS, home or _EVERYWHERE)))

    def _home(self, view: Unstructured, parent: Json) -> str:
        namespaced = view.info is None or view.info.namespaced
        return access.namespace(parent) if namespaced else ""

    async def _check_alive(self, parent: Json) -> None:
        try:
            fresh = await self._client.live.get(MetadataOf(view_like(parent)), access.key(parent))
        except APIError as error:
            raise DeciderError(f"{access.describe(parent)}: cannot adopt: {error}") from None
        if access.uid(fresh) != access.uid(parent) or access.is_being_deleted(fresh):
            raise DeciderError(f"{access.describe(parent)}: cannot adopt: it has been deleted")


def _is_controlled(child: Json, uid: str) -> bool:
    reference: Any = controller_of(child)
    return reference is not None and reference.uid == uid
