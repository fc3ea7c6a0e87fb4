"""Access of tasks to the cluster: kinds, reads, server-side apply and deletion.

- A namespaced object is in the namespace of its instance, whatever its template says, and is owned by the instance.
  A cluster-scoped one cannot be owned by it; an annotation names the instance, and the object stays when it is deleted.
- Every kind that a task touches is watched from then on, so that a plan goes on when its objects change.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Final

from ostinato.api import accessors as access
from ostinato.api.gvk import GroupVersionKind, NamespacedName
from ostinato.api.object import KindInfo
from ostinato.api.owners import set_owner_reference
from ostinato.cache.client import CachedClient
from ostinato.client.transport.exchange import NoSuchKind
from ostinato.client.views import Unstructured
from ostinato.controllers.objects.applying import Applier
from ostinato.frontends.plans.tasks.errors import ENHANCEMENT, FatalError
from ostinato.frontends.plans.tasks.legacy import replacement

Json = dict[str, Any]
Watch = Callable[[GroupVersionKind], Awaitable[None]]

INSTANCE: Final = "plans.ostinato.dev/instance"  # annotation of cluster-scoped objects: KIND.GROUP/NAMESPACE/NAME


class Waiting(Exception):  # noqa: N818 - not a failure
    """A task cannot go on yet; the message says why."""


class Cluster:
    def __init__(self, client: CachedClient, applier: Applier, watch: Watch) -> None:
        self.client = client
        self._applier = applier
        self._watch = watch
        self.applied: set[GroupVersionKind] = set()  # kinds of the objects that were applied

    async def place(self, instance: Json, owner: Json) -> Json:
        """Return an object in a version that the server serves, and in its namespace.

        Raises FatalError if the server does not know the kind, and Waiting if it is about to.
        """
        found, info = await self._served(instance)
        metadata = access.writable_metadata(found)
        if info.namespaced:
            metadata["namespace"] = access.namespace(owner)
        else:
            metadata.pop("namespace", None)
            access.set_annotation(found, INSTANCE, tracking(owner))
        return found

    async def known(self, instances: Iterable[Json], owner: Json) -> list[Json]:
        """Return the objects whose kinds the server knows, each in its place."""
        found = []
        for each in instances:
            try:
                found.append(await self.place(each, owner))
            except (FatalError, Waiting):
                continue
        return found

    async def _served(self, instance: Json) -> tuple[Json, KindInfo]:
        mapper = self.client.live.mapper
        try:
            return instance, await mapper.kind(access.gvk(instance))
        except NoSuchKind as error:
            newer = replacement(instance)
            if newer is not None:
                return newer, await mapper.kind(access.gvk(newer))
            if await self._is_defined(access.gvk(instance)):
                raise Waiting(f"{access.gvk(instance)} is defined, and not served yet") from None
            raise FatalError(
                f"failed to determine if object {access.describe(instance)} is namespaced: {error}", ENHANCEMENT
            ) from None

    async def _is_defined(self, gvk: GroupVersionKind) -> bool:
        """Return whether there is a definition of a kind that discovery does not show yet."""
        from ostinato.kinds.apiextensions_v1 import CustomResourceDefinition  # noqa: PLC0415 - only for unknown kinds

        if "." not in gvk.group:
            return False
        async for each in self.client.live.list(CustomResourceDefinition):
            served = [version.name for version in each.spec.versions or () if version.served]
            if (each.spec.group, each.spec.names.kind) == (gvk.group, gvk.kind) and gvk.version in served:
                return True
        return False

    async def get(self, gvk: GroupVersionKind, namespace: str, name: str) -> Json | None:
        return await self.client.get(Unstructured(gvk), NamespacedName(namespace, name), missing=None)

    async def apply(self, instance: Json, owner: Json) -> Json:
        """Apply an object that has its place; it is owned by `owner` if it is in its namespace."""
        await self._watches(access.gvk(instance))
        owned = owner if access.namespace(instance) else None
        return await self._applier.apply(instance, owner=owned, force=True, adopt=True)

    async def apply_dependent(self, instance: Json, owner: Json) -> Json:
        """Apply an object that another controller controls, with a plain owner reference."""
        await self._watches(access.gvk(instance))
        set_owner_reference(owner, instance)
        return await self._applier.apply(instance, owner=None, force=True, adopt=True)

    async def _watches(self, gvk: GroupVersionKind) -> None:
        self.applied.add(gvk)
        await self._watch(gvk)

    async def delete(self, instance: Json) -> bool:
        """Delete an object, and return whether it is gone."""
        gvk = access.gvk(instance)
        await self._watch(gvk)
        view, key = Unstructured(gvk), access.key(instance)
        found = await self.client.live.get(view, key, missing=None)
        if found is None:
            return True
        if not access.is_being_deleted(found):
            await self.client.delete(found, propagation="Foreground", missing_ok=True)
            found = await self.client.live.get(view, key, missing=None)
        return found is None


def tracking(owner: Json) -> str:
    gvk = access.gvk(owner)
    return f"{gvk.kind}.{gvk.group}/{access.namespace(owner)}/{access.name(owner)}"
