"""CustomResourceDefinition controller: serve the defined kinds, finalize deleted definitions.

The steps of kube-apiserver's CRD controllers run before the triggering write is answered:

- A definition's names are accepted and it is established; then its kind is served.
- A changed definition is served as changed.
- A deleted definition's objects are deleted; it is removed after the last of them.

Each step is a write of its own, visible to watches, and depends on stored state alone: a restart resumes it.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from typing import Any

from ostinato.api.errors import NotFound
from ostinato.api.gvk import GroupResource, GroupVersionKind
from ostinato.server.flow.heavy import HeavyLane
from ostinato.server.request import Request, User
from ostinato.server.request.context import AdmitAll, Context
from ostinato.server.request.list_body import ListCache
from ostinato.server.request.options import DeleteOptions
from ostinato.server.request.route import Route
from ostinato.server.resources.apiextensions.approval import approval_condition
from ostinato.server.resources.apiextensions.conditions import CLEANUP, condition, find, is_true, with_condition
from ostinato.server.resources.apiextensions.naming import named_status
from ostinato.server.resources.custom import Conversion, Conversions, CustomResource, Definition
from ostinato.server.resources.registry import Registry
from ostinato.server.resources.strategy import Json
from ostinato.server.store.index import Index
from ostinato.server.store.records import Conflict, Entry
from ostinato.server.verbs import write
from ostinato.server.verbs.delete import delete_object
from ostinato.server.webhooks import PostReview
from ostinato.world import World

_GROUP = "apiextensions.k8s.io"
_MANAGER = "kube-apiserver"
_USER = User("system:apiserver", groups=("system:masters",))
_NO_LISTS = ListCache()  # no list is requested
_NO_ADMISSION = AdmitAll()  # deletions that follow from an admitted write are not submitted again
_logger = logging.getLogger(__name__)


class CustomResources:
    """Serves the defined kinds and reconciles the status of definitions."""

    def __init__(
        self, world: World, index: Index, registry: Registry, post_review: PostReview, lane: HeavyLane
    ) -> None:
        """`post_review`: calls a conversion webhook."""
        self._world = world
        self._index = index
        self._registry = registry
        self._post_review = post_review
        self._lane = lane
        resource = registry.get(_GROUP, "v1", "customresourcedefinitions")
        assert resource is not None
        assert resource.collection is not None
        self._resource = resource
        self._collection = resource.collection
        self._read: dict[str, tuple[Entry, Json]] = {}  # last decoded state of each definition
        self._served: dict[str, Definition] = {}  # by name
        self._reconciling: asyncio.Task[None] | None = None
        self._again = False  # a change arrived while the task was running

    async def reconcile(self) -> None:
        """Reconcile all definitions with their current state and remaining objects."""
        self._again = True
        if self._reconciling is None:
            self._reconciling = asyncio.get_running_loop().create_task(self._reconcile(), name="custom resources")
        await asyncio.shield(self._reconciling)  # other requests may await the same task

    @property
    def group_versions(self) -> frozenset[tuple[str, str]]:
        """Group and version of everything that definitions serve, or will when they are established."""
        definitions = [self._definition(*item) for item in self._collection.entries.items()]
        return frozenset(
            (definition["spec"]["group"], version["name"])
            for definition in definitions
            for version in definition["spec"]["versions"]
            if version.get("served")
        )

    async def _reconcile(self) -> None:
        try:
            while self._again:
                self._again = False
                await self._reconcile_all()
        finally:
            self._reconciling = None

    async def _reconcile_all(self) -> None:
        for name in [name for name in self._served if name not in self._collection.entries]:
            self._withdraw(name)
        for name, entry in list(self._collection.entries.items()):
            try:
                wrote = await self._advance(self._definition(name, entry), entry)
            except Conflict:
                wrote = True
            except Exception:  # a failing definition does not block the others
                _logger.exception("reconcile of definition failed definition=%s", name)
                wrote = False
            self._again = self._again or wrote

    def _definition(self, name: str, entry: Entry) -> Json:
        read = self._read.get(name)
        if read is None or read[0] is not entry:
            read = self._read[name] = (entry, self._resource.object(entry.data))
        return read[1]

    async def _advance(self, definition: Json, entry: Entry) -> bool:
        """Run one reconcile step; return whether there was one."""
        status = self._next_status(definition)
        if status is not None:
            await self._write_status(definition, status, entry)
            return True
        self._serve(definition)
        meta = definition["metadata"]
        if meta.get("deletionTimestamp") and CLEANUP in meta.get("finalizers", ()):
            return await self._finalize(definition, entry)
        return False

    def _next_status(self, definition: Json) -> dict[str, Any] | None:
        now = write.now(self._world.clock)
        group = definition["spec"]["group"]
        definitions = (self._definition(*item) for item in self._collection.entries.items())
        named = named_status(definition, (other for other in definitions if other["spec"]["group"] == group), now)
        if named is not None:
            return named
        if is_true(definition, "NamesAccepted") and not is_true(definition, "Established"):
            established = condition(
                "Established", "True", "InitialNamesAccepted", "the initial names have been accepted"
            )
            return with_condition(definition["status"], established, now)
        approval = approval_condition(definition)
        if approval is not None:
            before = find(definition, approval["type"])
            if before is None or before["reason"] != approval["reason"] or before["message"] != approval["message"]:
                return with_condition(definition["status"], approval, now)
        return None

    async def _write_status(self, definition: Json, status: dict[str, Any], entry: Entry) -> None:
        manager = self._resource.managers["status"]
        new = manager.update(definition, {**definition, "status": status}, _MANAGER, write.now(self._world.clock))
        await write.put(self._context(self._resource, "update", "", definition["metadata"]["name"]), new, entry)

    def _context(self, resource: Any, verb: str, namespace: str, name: str) -> Context:
        gvr = resource.gvr
        route = Route(verb, gvr.group, gvr.version, namespace, gvr.resource, name, "")
        request = Request("", "")
        request.user = _USER
        return Context(self._world, self._index, request, route, resource, _NO_ADMISSION, self._lane, _NO_LISTS)

    # Serving

    def _serve(self, raw: Json) -> None:
        """Serve a definition in all its served versions."""
        name = raw["metadata"]["name"]
        names = raw["status"]["acceptedNames"]
        known = self._served.get(name)
        if not is_true(raw, "Established") and not is_true(raw, "NamesAccepted"):
            return
        if known is not None and known.uid == raw["metadata"]["uid"] and known.serves(raw["spec"], names):
            known.spec, known.names = raw["spec"], names  # equal values; identity makes the next comparison fast
        else:
            definition = Definition(raw)
            if self._overlaps(definition):
                return
            self._withdraw(name)
            self._offer(definition)
        if raw["metadata"].get("deletionTimestamp"):
            self._served[name].terminating = True

    def _overlaps(self, definition: Definition) -> bool:
        """Whether a built-in resource has the same name and takes precedence."""
        return self._registry.has_builtin(GroupResource(definition.group, definition.names["plural"]))

    def _offer(self, definition: Definition) -> None:
        kind = GroupVersionKind(definition.group, definition.storage.name, definition.names["kind"])
        collection = self._index.collection(
            f"{definition.names['plural']}.{definition.group}", definition.describe, definition.complete, kind
        )
        for entry in (*collection.entries.values(), *collection.pending.values()):
            if entry is not None:
                entry.data, entry.fields = definition.refreshed(entry.data)
                entry.converted = {}
        converts = (definition.spec.get("conversion") or {}).get("strategy") == "Webhook"
        conversions = Conversions(definition, self._post_review, self._world.ids) if converts else None
        for version in definition.versions:
            if version.served:
                conversion = Conversion(conversions, version) if conversions is not None else None
                self._registry.add(CustomResource(definition, version, collection, self._world.clock, conversion))
        self._served[definition.name] = definition

    def _resources(self, name: str) -> list[CustomResource]:
        served = self._served.get(name)
        return [r for r in self._registry.custom() if isinstance(r, CustomResource) and r.definition is served]

    def _withdraw(self, name: str) -> None:
        """Stop serving a definition and end its watches."""
        for resource in self._resources(name):
            self._registry.remove(resource.gvr)
            assert resource.collection is not None
            resource.collection.hub.end()
        self._served.pop(name, None)
        if name not in self._collection.entries:
            self._read.pop(name, None)

    # Finalizing

    async def _finalize(self, definition: Json, entry: Entry) -> bool:
        """Delete the objects of a terminating definition; remove its finalizer when none remain."""
        terminating = find(definition, "Terminating")
        if terminating is None or terminating["reason"] == "InstanceDeletionPending":
            await self._end(
                definition, entry, "True", "InstanceDeletionInProgress", "CustomResource deletion is in progress"
            )
            return True
        resources = self._resources(definition["metadata"]["name"])
        if not is_true(definition, "Established"):
            reason, message = "NeverEstablished", "resource was never established"
        elif not resources:
            reason, message = "OverlappingBuiltInResource", "instances overlap with built-in resources in storage"
        else:
            if await self._delete_objects(self._unconverted(resources[0])):
                return False  # remaining objects have finalizers; removing the last one triggers a reconcile
            reason, message = "InstanceDeletionCompleted", "removed all instances"
        await self._end(definition, entry, "False", reason, message)
        return True

    def _unconverted(self, resource: CustomResource) -> CustomResource:
        """A resource without conversion, so that objects can be deleted if the webhook is unavailable."""
        if resource.conversion is None:
            return resource
        assert resource.collection is not None
        definition = resource.definition
        return CustomResource(definition, definition.storage, resource.collection, self._world.clock)

    async def _delete_objects(self, resource: CustomResource) -> bool:
        """Delete every object that is not terminating; return whether some remain."""
        collection = resource.collection
        assert collection is not None
        for key in list(collection.keys):
            namespace, _, name = key.rpartition("/")
            entry = collection.newest(key)
            if entry is not None and not resource.object(entry.data)["metadata"].get("deletionTimestamp"):
                with suppress(NotFound):  # deleted by another server
                    await delete_object(self._context(resource, "delete", namespace, name), DeleteOptions())
        await self._index.catch_up()
        return bool(collection.keys)

    async def _end(self, definition: Json, entry: Entry, status: str, reason: str, message: str) -> None:
        now = write.now(self._world.clock)
        terminating = condition("Terminating", status, reason, message)
        new = {**definition, "status": with_condition(definition["status"], terminating, now)}
        new = self._resource.managers["status"].update(definition, new, _MANAGER, now)
        if status == "True":
            await write.put(self._context(self._resource, "update", "", entry.key), new, entry)
            return
        left = [name for name in definition["metadata"]["finalizers"] if name != CLEANUP]
        if left:
            new["metadata"] = {**new["metadata"], "finalizers": left}
            await write.put(self._context(self._resource, "update", "", entry.key), new, entry)
        else:
            await self._index.delete(self._collection, entry.key, entry)
