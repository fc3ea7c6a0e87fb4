"""Members: the objects of a set in the cluster, from caches if their kinds are watched."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ostinato.api import accessors as access
from ostinato.api.accessors import AnyObject
from ostinato.api.gvk import GroupVersionKind
from ostinato.cache.client import CachedClient
from ostinato.cache.reader import NotWatched
from ostinato.cache.store.indexes import OWNER, by_label
from ostinato.cache.store.store import NoSuchIndex
from ostinato.client import NoSuchKind
from ostinato.client.views import Unstructured
from ostinato.frontends.kernel.applier.tracking import OWNER_UID, is_member
from ostinato.frontends.kernel.sync import Json, Objects, kind_key, object_key

MARKED = by_label(OWNER_UID)
"""Index of objects by the uid of the owner that their label names."""


class Members:
    def __init__(self, client: CachedClient, controller: str) -> None:
        """`controller`: of objects with owners that have several; "" if there is one."""
        self._client = client
        self._controller = controller

    async def objects(self, owner: AnyObject, kinds: Iterable[GroupVersionKind]) -> Objects:
        """Return the objects of the owner by kind and key. Every kind is present."""
        found: Objects = {}
        for gvk in sorted(set(kinds)):
            found[kind_key(gvk)] = {object_key(each): each for each in await self._of_kind(owner, gvk)}
        return found

    async def all(self, owner: AnyObject, kinds: Iterable[GroupVersionKind]) -> list[Json]:
        """Return the objects of the owner. Of a kind in several versions, each object once."""
        found: dict[tuple[Any, str], Json] = {}
        for gvk in sorted(set(kinds)):
            for each in await self._of_kind(owner, gvk):
                found.setdefault((gvk.group_kind, object_key(each)), each)
        return list(found.values())

    async def _of_kind(self, owner: AnyObject, gvk: GroupVersionKind) -> list[Json]:
        view, uid, home = Unstructured(gvk), access.uid(owner), access.namespace(owner)
        try:
            info = await self._client.informers.info(view)
            referring = await self._listed(view, home, (OWNER, uid)) if info.namespaced or not home else []
            # Objects of a cluster-scoped owner all have owner references.
            marked = await self._listed(view, "", (MARKED.name, uid)) if home else []
        except NoSuchKind:
            return []  # neither are its objects
        found = {object_key(each): each for each in (*referring, *marked) if is_member(owner, each, self._controller)}
        return [found[key] for key in sorted(found)]

    async def _listed(self, view: Unstructured, namespace: str, index: tuple[str, str]) -> list[Json]:
        try:
            return list(await self._client.list(view, namespace=namespace, index=index))
        except (NoSuchIndex, NotWatched):
            labels = {OWNER_UID: index[1]} if index[0] == MARKED.name else None
            return list(await self._client.list(view, namespace=namespace, labels=labels))
