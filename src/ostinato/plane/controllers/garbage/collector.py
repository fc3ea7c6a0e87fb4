"""Processes one node of the ownership graph, identified by uid.

| object | action |
|---|---|
| has the finalizer `orphan` | remove the references of its dependents, then the finalizer |
| has the finalizer `foregroundDeletion` | process blocking dependents; without any, remove the finalizer |
| is terminating otherwise, or has no owners | nothing |
| has a solid owner | remove references to dangling and waiting owners |
| has a waiting owner and dependents of its own | delete it in the foreground |
| has no solid owner | delete it |

Deletions carry uid and resourceVersion as preconditions. If the object has changed, but not its owners, the deletion is
repeated without the resourceVersion; otherwise the object is processed again. Objects that wait for each other in a
cycle are unblocked.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from enum import Enum
from typing import Any, Final

from ostinato.api.codec import to_dict
from ostinato.api.errors import APIError, Conflict, NotFound
from ostinato.api.gvk import GroupVersionKind, NamespacedName
from ostinato.api.object import KindInfo
from ostinato.api.schema import builtin_schemas
from ostinato.cache import CachedClient, Entry
from ostinato.client.options import Propagation
from ostinato.client.patching import MergePatch, Patch, StrategicMergePatch
from ostinato.client.transport.exchange import NoSuchKind
from ostinato.client.transport.protocol import TransportError
from ostinato.client.views import MetadataOf, PartialObjectMetadata, Unstructured
from ostinato.controllers import Context, Result
from ostinato.plane.controllers.garbage.graph import FOREGROUND, ORPHAN, Graph, Node, Reference, references_from

_Json = dict[str, Any]
_Change = Callable[[_Json], _Json | None]

_MAX_CONCURRENT: Final = 20  # patches of one owner's dependents


class _OwnerState(Enum):
    SOLID = "exists"
    DANGLING = "does not exist"
    WAITING = "waits for its dependents"


class _NamespacedOwner(Exception):  # noqa: N818
    """A cluster-scoped object has a namespaced owner: the owner's namespace is unknown."""


class GarbageCollector:
    def __init__(self, graph: Graph) -> None:
        self._graph = graph

    async def reconcile(self, request: str, ctx: Context) -> Result | None:
        node = self._graph.get(request)
        if node is None:
            return None
        if node.orphans_dependents:
            await self._orphan(node, ctx.client)
        elif node.waits_for_dependents:
            await self._process_deleting_dependents(node, ctx.client)
        elif not node.is_terminating and node.owners:
            try:
                return await self._process(node, ctx)
            except NoSuchKind as error:  # its CustomResourceDefinition may be created later
                ctx.logger.debug("owner kind unknown, retrying object=%s error=%s", node, error)
                return Result(retry=True)
            except _NamespacedOwner:
                ctx.logger.info("cluster-scoped object has a namespaced owner, skipping object=%s", node)
        return None

    # Objects with owners

    async def _process(self, node: Node, ctx: Context) -> Result | None:
        entry = node.entry()
        if entry is None:
            return None
        client = ctx.client
        references = references_from(entry.owners_json)
        states = [await self._owner_state(node, each, client) for each in references]
        if _OwnerState.SOLID in states:
            removable = [each for each, state in zip(references, states, strict=True) if state is not _OwnerState.SOLID]
            if removable:
                await self._remove_owner_references(node, {each.uid for each in removable}, client)
            # A live owner that is not in the graph yet may be deleted before its watch event arrives.
            unseen = any(self._graph.get(each.uid) is None for each in references if each not in removable)
            return Result(retry=True) if unseen else None
        dependents = self._graph.dependents(node.uid)
        if _OwnerState.WAITING in states and dependents:
            if any(each.waits_for_dependents for each in dependents):
                await self._unblock(node, client)
                view = _view(node.kind_store.info)
                await client.delete(view, node.key, uid=node.uid, propagation="Foreground", missing_ok=True)
            else:
                await self._delete(node, entry, "Foreground", client)
            return None
        finalizers = entry.header.finalizers or []
        policy: Propagation = (
            "Orphan" if ORPHAN in finalizers else "Foreground" if FOREGROUND in finalizers else "Background"
        )
        await self._delete(node, entry, policy, client)
        return None

    async def _owner_state(self, node: Node, reference: Reference, client: CachedClient) -> _OwnerState:
        namespace = node.key.namespace
        known = self._graph.get(reference.uid)
        if known is not None and known.matches_reference(reference, namespace):
            return _OwnerState.WAITING if known.waits_for_dependents else _OwnerState.SOLID
        if self._graph.absent.has(reference, namespace):
            return _OwnerState.DANGLING
        try:
            gvk = GroupVersionKind.of(reference.api_version, reference.kind)
        except ValueError:
            raise NoSuchKind.of_kind(GroupVersionKind("", reference.api_version, reference.kind)) from None
        info = await client.live.mapper.kind(gvk)
        if info.namespaced and not namespace:
            raise _NamespacedOwner
        key = NamespacedName(namespace if info.namespaced else "", reference.name)
        found = await client.live.get(_view(info), key, missing=None)
        if found is None or found.metadata.uid != reference.uid:
            self._graph.absent.add_at(reference, namespace)
            return _OwnerState.DANGLING
        waits = found.metadata.deletion_timestamp is not None and FOREGROUND in found.metadata.finalizers
        return _OwnerState.WAITING if waits else _OwnerState.SOLID

    async def _delete(self, node: Node, observed: Entry, policy: Propagation, client: CachedClient) -> None:
        view = _view(node.kind_store.info)
        try:
            await client.delete(
                view, node.key, uid=node.uid, resource_version=observed.resource_version, propagation=policy
            )
        except NotFound:
            return
        except Conflict:
            latest = await client.live.get(view, node.key, missing=None)
            if latest is None or latest.metadata.uid != node.uid:
                return
            if _references_of(latest) != references_from(observed.owners_json):
                raise  # requeue
            await client.delete(view, node.key, uid=node.uid, propagation=policy, missing_ok=True)

    # Terminating objects

    async def _process_deleting_dependents(self, node: Node, client: CachedClient) -> None:
        blocking = [
            each
            for each in self._graph.dependents(node.uid)
            if any(owner.blocks and owner.uid == node.uid for owner in each.owners)
        ]
        if not blocking:
            await self._remove_finalizer(node, FOREGROUND, client)
        for each in blocking:
            if not each.is_terminating:
                self._graph.enqueue(each.uid)

    async def _orphan(self, node: Node, client: CachedClient) -> None:
        await _run_all(
            self._remove_owner_references(each, {node.uid}, client) for each in self._graph.dependents(node.uid)
        )
        await self._remove_finalizer(node, ORPHAN, client)

    async def _remove_finalizer(self, node: Node, finalizer: str, client: CachedClient) -> None:
        view = _view(node.kind_store.info)

        async def remove() -> None:
            latest = await client.live.get(view, node.key, missing=None)
            if latest is None or latest.metadata.uid != node.uid or finalizer not in latest.metadata.finalizers:
                return
            left = [each for each in latest.metadata.finalizers if each != finalizer]
            change = {"finalizers": left, "resourceVersion": latest.metadata.resource_version}
            await client.patch(view, node.key, MergePatch({"metadata": change}))

        await client.retry_on_conflict(remove)

    # References

    async def _remove_owner_references(self, node: Node, owners: set[str], client: CachedClient) -> None:
        """Remove owner references by uid."""
        gone = [{"$patch": "delete", "uid": uid} for uid in sorted(owners)]
        await self._change_owners(
            node,
            {"metadata": {"ownerReferences": gone, "uid": node.uid}},
            lambda each: None if each["uid"] in owners else each,
            client,
        )

    async def _unblock(self, node: Node, client: CachedClient) -> None:
        """Set blockOwnerDeletion to false in all references of an object."""
        kept = [{"uid": each.uid, "blockOwnerDeletion": False} for each in node.owners if each.blocks]
        await self._change_owners(
            node,
            {"metadata": {"ownerReferences": kept, "uid": node.uid}},
            lambda each: {**each, "blockOwnerDeletion": False} if each.get("blockOwnerDeletion") else each,
            client,
        )

    async def _change_owners(self, node: Node, strategic: _Json, change: _Change, client: CachedClient) -> None:
        """Patch owner references: strategic merge patch for built-in kinds, else merge patch with resourceVersion."""
        view = _view(node.kind_store.info)
        try:
            patch: Patch
            if builtin_schemas().of(view.gvk) is not None:
                patch = StrategicMergePatch(strategic)
            else:
                latest = await client.live.get(view, node.key)
                if latest.metadata.uid != node.uid:
                    return
                owners = [change(to_dict(each)) for each in latest.metadata.owner_references]
                left = [each for each in owners if each is not None]
                version = latest.metadata.resource_version
                patch = MergePatch({"metadata": {"ownerReferences": left, "resourceVersion": version}})
            await client.patch(view, node.key, patch)
        except NotFound:
            return


async def _run_all(calls: Iterable[Awaitable[None]]) -> None:
    """Run all calls with limited concurrency; raise the first error after all have finished."""
    limit = asyncio.Semaphore(_MAX_CONCURRENT)

    async def one(call: Awaitable[None]) -> Exception | None:
        async with limit:
            try:
                await call
            except (APIError, TransportError) as error:
                return error
        return None

    errors = [each for each in await asyncio.gather(*map(one, calls)) if each is not None]
    if errors:
        raise errors[0]


def _view(info: KindInfo) -> MetadataOf:
    return MetadataOf(Unstructured(info.gvk, info))


def _references_of(latest: PartialObjectMetadata) -> tuple[Reference, ...]:
    return tuple(
        Reference(each.api_version, each.kind, each.name, each.uid, bool(each.block_owner_deletion))
        for each in latest.metadata.owner_references
    )
