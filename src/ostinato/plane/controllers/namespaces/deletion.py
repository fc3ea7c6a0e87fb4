"""Namespace controller: deletes the content of a terminating namespace, then removes its finalizer.

- It starts five seconds after the deletion, when all API servers reject new objects in the namespace; not later, if its
  clock is behind theirs.
- Pods are deleted first; other kinds after all Pods are gone.
- All namespaced kinds that support delete are included, custom resources too.
- Conditions report remaining content, finalizers and errors.
- Remaining content is checked with increasing delays, up to its own estimate; errors are retried within a minute.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final

import msgspec

from ostinato.api.errors import APIError, MethodNotAllowed, NotFound
from ostinato.api.gvk import GroupResource, GroupVersionKind
from ostinato.api.object import Object
from ostinato.api.struct import BuiltinStruct
from ostinato.cache import CachedClient, Event, Updated
from ostinato.client.discovery.discovery import ApiResource, Catalogue
from ostinato.client.transport.protocol import TransportError
from ostinato.client.views import MetadataOf, PartialObjectMetadata, Unstructured
from ostinato.controllers import Context, Request, Result
from ostinato.kinds.core_v1 import Namespace
from ostinato.manager import Manager
from ostinato.plane.controllers import Options
from ostinato.plane.controllers.namespaces.conditions import DeletionFindings, update_conditions
from ostinato.queue import ExponentialBackoff

NAME: Final = "namespace-controller"
FINALIZER: Final = "kubernetes"
_GRACE: Final = 5.0  # seconds
_FINALIZER_WAIT: Final = 15.0  # estimated seconds for finalizers
_WORKERS: Final = 10
_PODS: Final = GroupVersionKind("", "v1", "Pod")


def add_to(manager: Manager, options: Options) -> None:  # noqa: ARG001 - signature of all controllers
    (
        manager.build(NAME)
        .watch_for(Namespace, predicates=[_is_deletion])
        .with_options(max_concurrent=_WORKERS, limiter=lambda: ExponentialBackoff(0.005, 60.0))
        .complete(NamespaceReconciler())
    )


def _is_deletion(event: Event) -> bool:
    """Return whether the namespace was deleted just now; afterwards it is requeued by time."""
    begun = isinstance(event, Updated) and event.old is not event.new and event.old.is_being_deleted
    return event.object.is_being_deleted and not begun


class NamespaceReconciler:
    def __init__(self) -> None:
        self._seen: dict[str, tuple[str, float]] = {}  # terminating ones by name: uid, and when that was seen

    async def reconcile(self, request: Request, ctx: Context) -> Result | None:
        client = ctx.client
        namespace = await client.live.get(Namespace, request, missing=None)
        if namespace is None or namespace.metadata.deletion_timestamp is None or not namespace.spec.finalizers:
            self._seen.pop(request.name, None)
            return None
        since = (ctx.world.clock.now() - namespace.metadata.deletion_timestamp).total_seconds()
        age = max(since, self._known_for(namespace, ctx.world.clock.monotonic()))
        if age < _GRACE:
            return Result(requeue_after=_GRACE - age)
        findings, wait = await _delete_content(client, namespace, ctx.world.clock.now())
        namespace.status.phase = "Terminating"
        if update_conditions(namespace.status, findings, ctx.now()):
            namespace = await client.update(namespace, subresource="status")
        for error in (*findings.errors, *findings.undiscovered.values()):
            if not isinstance(error, ContentRemains):
                raise error  # the conditions report all errors
        if findings.errors:
            return Result(retry=True)  # what is being deleted takes its time
        if wait > 0:
            return Result(requeue_after=min(wait / 2 + 1, age))
        namespace.spec.finalizers = [each for each in namespace.spec.finalizers if each != FINALIZER]
        await client.update(namespace, subresource="finalize")
        self._seen.pop(request.name, None)
        return None

    def _known_for(self, namespace: Namespace, now: float) -> float:
        """Return the seconds for which this process has known that the namespace is being deleted."""
        name, uid = namespace.metadata.name, namespace.metadata.uid
        known = self._seen.get(name)
        if known is None or known[0] != uid:
            known = self._seen[name] = (uid, now)
        return now - known[1]


async def _delete_content(client: CachedClient, namespace: Namespace, now: datetime) -> tuple[DeletionFindings, float]:
    """Delete the content; return the findings, and the estimated seconds until it is gone (0: it is gone)."""
    findings = DeletionFindings()
    await client.live.mapper.refresh()
    catalogue = await client.live.mapper.catalogue()
    findings.undiscovered = dict(catalogue.failed)
    resources = deletable(catalogue)
    wait = 0.0
    pods = resources.pop(_PODS, None)
    if pods is not None:
        wait = await _KindDeleter(client, namespace, pods, findings).run(
            await _pods_grace_period(client, namespace, now)
        )
        if findings.remaining:
            findings.pods_remain = True
            return findings, wait
    for resource in resources.values():
        wait = max(wait, await _KindDeleter(client, namespace, resource, findings).run(0.0))
    return findings, wait


def deletable(catalogue: Catalogue) -> dict[GroupVersionKind, ApiResource]:
    """Return the namespaced kinds that support delete, each in its preferred version."""
    preferred: dict[GroupResource, ApiResource] = {}
    for version in catalogue.versions:
        for resource in version.resources:
            if resource.info.namespaced and "delete" in resource.verbs:
                preferred.setdefault(resource.info.gvr.group_resource, resource)
    return {each.info.gvk: each for each in preferred.values()}


class _KindDeleter:
    """Deletes the objects of one kind in one namespace."""

    def __init__(
        self, client: CachedClient, namespace: Namespace, resource: ApiResource, findings: DeletionFindings
    ) -> None:
        self._client = client
        self._namespace = namespace.metadata.name
        self._resource = resource
        self._view = MetadataOf(Unstructured(resource.info.gvk, resource.info))
        self._findings = findings

    async def run(self, expected: float) -> float:
        """Delete all objects; return the estimated seconds for the rest. `expected`: estimate from the objects."""
        try:
            left = await self._list()
            if left:
                await self._delete(left)
                left = await self._list()
        except (APIError, TransportError) as error:
            self._findings.errors.append(error)
            return expected
        if not left:
            return 0.0
        finalizers = self._findings.count(self._resource.info.gvr, [each.metadata.finalizers for each in left])
        if expected:
            return expected
        if finalizers:
            return _FINALIZER_WAIT
        gvr = self._resource.info.gvr
        self._findings.errors.append(
            ContentRemains(f"unexpected items still remain in namespace: {self._namespace} for gvr: {gvr}")
        )
        return 0.0

    async def _list(self) -> list[PartialObjectMetadata]:
        if "list" not in self._resource.verbs:
            return []
        try:
            return await self._client.live.list(self._view, namespace=self._namespace)
        except (NotFound, MethodNotAllowed):  # the CustomResourceDefinition was deleted
            return []

    async def _delete(self, found: list[PartialObjectMetadata]) -> None:
        """Delete with background propagation: ownership does not matter when everything is deleted."""
        if "deletecollection" in self._resource.verbs:
            try:
                await self._client.delete_all_of(self._view, namespace=self._namespace, propagation="Background")
            except (NotFound, MethodNotAllowed):
                return
            return
        for each in found:
            await self._client.delete(each, propagation="Background", missing_ok=True)


class ContentRemains(Exception):  # noqa: N818
    """Objects remain although no finalizer holds them."""


class _GraceSpec(BuiltinStruct):
    termination_grace_period_seconds: int | None = None


class _GraceStatus(BuiltinStruct):
    phase: str = ""


class _PodGrace(Object, version="v1", kind="Pod", plural="pods"):
    spec: _GraceSpec = msgspec.field(default_factory=_GraceSpec)
    status: _GraceStatus = msgspec.field(default_factory=_GraceStatus)


async def _pods_grace_period(client: CachedClient, namespace: Namespace, now: datetime) -> float:
    """Return the longest remaining grace period of the Pods, less the time since the namespace was deleted."""
    pods = await client.live.list(_PodGrace, namespace=namespace.metadata.name)
    longest = max(
        (
            each.spec.termination_grace_period_seconds or 0
            for each in pods
            if each.status.phase not in ("Succeeded", "Failed")
        ),
        default=0,
    )
    deleted = namespace.metadata.deletion_timestamp
    assert deleted is not None, "the namespace is terminating"
    return float(longest) if (now - deleted).total_seconds() < longest else 0.0
