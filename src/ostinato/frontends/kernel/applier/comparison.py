"""Comparison of a desired object with the one in the cluster, by a dry run of the server.

Only the server knows its defaults, its normal forms, and which fields an apply would give up. What others change
between two requests must not count as a difference: the object could be recreated for it.
"""

from __future__ import annotations

from typing import Final

from ostinato.api import accessors as access
from ostinato.api.accessors import AnyObject
from ostinato.api.errors import Invalid, NotFound
from ostinato.cache.client import CachedClient
from ostinato.client.views import Unstructured
from ostinato.controllers.objects.applying import Applier
from ostinato.frontends.kernel.applier.desired import Item
from ostinato.frontends.kernel.applier.diff import diff_text, same
from ostinato.frontends.kernel.applier.outcome import Action, Change
from ostinato.frontends.kernel.applier.tracking import is_reachable
from ostinato.frontends.kernel.sync import Json

_ATTEMPTS: Final = 3  # to compare an object that changes meanwhile


class Comparison:
    def __init__(self, client: CachedClient, applier: Applier, field_manager: str, *, force: bool) -> None:
        self._client = client
        self._applier = applier
        self._manager = field_manager
        self._force = force

    async def differs(self, owner: AnyObject, item: Item) -> bool:
        """Return whether applying would change an existing object. Asks the server, unless it is known."""
        assert item.live is not None, "only of existing objects"
        reachable = is_reachable(owner, item.wanted)
        if await self._applier.is_up_to_date(item.wanted, owner=owner if reachable else None):
            return False
        try:
            if same(item.live, await self._tried(item)):
                return False
            return await self._differs_on_server(item)
        except Invalid:  # an immutable field
            return True

    async def planned(self, item: Item) -> Change:
        """Return what would be done about an object, with the diff."""
        ref = item.ref
        live: Json | None = None
        if item.live is not None:
            live = await self._client.live.get(Unstructured(ref.gvk), ref.key, missing=None)
        try:
            after = await self._tried(item)
        except NotFound:  # its namespace is created by the same set
            if live is not None:
                raise
            after = item.wanted
        except Invalid:
            if live is None or not item.strategy.recreates:
                raise
            return Change(ref, "recreate", diff_text(ref, live, item.wanted))
        if live is not None and same(live, after):
            return Change(ref, "none")
        action: Action = "create" if live is None else "recreate" if item.strategy.recreates else "update"
        return Change(ref, action, diff_text(ref, live, after))

    async def _differs_on_server(self, item: Item) -> bool:
        """Return whether applying would change the object, which may be newer than the cached one."""
        view = Unstructured(item.ref.gvk)
        for _ in range(_ATTEMPTS):
            before = await self._client.live.get(view, item.ref.key, missing=None)
            if before is None:
                return True
            if same(before, await self._tried(item)):
                return False
            after = await self._client.live.get(view, item.ref.key, missing=None)
            if after is None or access.resource_version(before) == access.resource_version(after):
                return True
        return False  # it is compared again when its last change is seen

    async def _tried(self, item: Item) -> Json:
        return await self._client.live.apply(item.wanted, force=self._force, field_manager=self._manager, dry_run=True)
