"""ResourceQuota controller: recalculates usage when objects are deleted or changed.

Admission counts new objects; this controller counts what was released. It handles namespaces with quotas only, and the
kinds that they limit. Every quota is counted every five minutes, too, as kube-controller-manager does: admission and
this controller race, and kinds without an informer have no events.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any, Final

from ostinato.api.codec import to_dict
from ostinato.api.errors import NotFound
from ostinato.api.gvk import GroupResource, NamespacedName
from ostinato.api.object import Object, kind_of
from ostinato.api.quantity import Quantity
from ostinato.cache import Added, CachedClient, Deleted, Entry, Event, Informer, Updated
from ostinato.client.discovery.mapping import AmbiguousResource, NoSuchResource
from ostinato.client.patching import MergePatch
from ostinato.client.views import MetadataOf, Unstructured
from ostinato.controllers import Context, ForEvent, Request, Result
from ostinato.kinds.apps_v1 import DaemonSet, Deployment, ReplicaSet, StatefulSet
from ostinato.kinds.batch_v1 import CronJob, Job
from ostinato.kinds.core_v1 import (
    ConfigMap,
    PersistentVolumeClaim,
    Pod,
    ReplicationController,
    ResourceQuota,
    Secret,
    Service,
)
from ostinato.manager import Manager
from ostinato.plane.controllers import Options
from ostinato.plane.objects.pod_state import PodState, is_finished
from ostinato.server.admission.quota.scopes import in_scope
from ostinato.server.admission.quota.usage import usage

_RECOUNT_EVERY: Final = 300.0
_SECOND_LOOK: Final = 0.25  # seconds
_ENDED: Final = (b'"Succeeded"', b'"Failed"')  # in the JSON of a Pod that has ended; others are not decoded
_WHOLE: Final[tuple[type[Object], ...]] = (Pod, Service, PersistentVolumeClaim)  # usage depends on the spec
_COUNTED: Final[tuple[type[Object], ...]] = (
    *(ConfigMap, Secret, ReplicationController, ResourceQuota),
    *(Deployment, ReplicaSet, StatefulSet, DaemonSet, Job, CronJob),
)


def _resource(kind: type[Object]) -> GroupResource:
    return kind_of(kind).gvr.group_resource


_KINDS: Final = {_resource(kind): kind for kind in (*_WHOLE, *_COUNTED)}
_COMPUTE: Final = ("cpu", "memory", "ephemeral-storage", "requests.", "limits.", "hugepages-")


def add_to(manager: Manager, options: Options) -> None:  # noqa: ARG001
    quotas: Informer = manager.informers.of(ResourceQuota)

    def of_namespace(event: Event) -> Iterable[NamespacedName]:
        return [entry.key for entry in quotas.store.entries(event.key.namespace)]

    builder = manager.build("resourcequota-controller").watch_for(ResourceQuota, predicates=[_limits_differ])
    builder = builder.watches(Pod, handler=ForEvent(of_namespace), predicates=[_goes_or_ends])
    for changing in (Service, PersistentVolumeClaim):
        builder = builder.watches(changing, handler=ForEvent(of_namespace), predicates=[_is_not_new])
    for kind in _COUNTED:
        builder = builder.watches(MetadataOf(kind), handler=ForEvent(of_namespace), predicates=[_goes])
    builder.complete(QuotaReconciler())


# New objects are counted at admission, before any cache has them: counting them here would race.


def _limits_differ(event: Event) -> bool:
    """Whether to count again; also a quota that is seen first: objects may have gone before this process began."""
    if isinstance(event, Added):
        return True
    quota = event.object.read(ResourceQuota)
    return _texts(quota.spec.hard) != _texts(quota.status.hard)


def _goes(event: Event) -> bool:
    return isinstance(event, Deleted)


def _is_not_new(event: Event) -> bool:
    return not isinstance(event, Added)


def _goes_or_ends(event: Event) -> bool:
    return isinstance(event, Deleted) or (
        isinstance(event, Updated) and _has_ended(event.new) and not _has_ended(event.old)
    )


def _has_ended(entry: Entry) -> bool:
    data = entry.data
    return any(phase in data for phase in _ENDED) and is_finished(entry.read(PodState))


class QuotaReconciler:
    async def reconcile(self, request: Request, ctx: Context) -> Result | None:
        quota = await ctx.client.get(ResourceQuota, request, missing=None)
        if quota is None:
            return None
        counted = await _count(ctx.client, quota)
        if any(counted.get(name, amount) < amount for name, amount in quota.status.used.items()):
            await ctx.world.clock.sleep(_SECOND_LOOK)  # objects counted at admission may not be cached yet
            quota = await ctx.client.get(ResourceQuota, request, missing=None)  # it has counted others meanwhile
            if quota is None:
                return None
            counted = await _count(ctx.client, quota)
        hard = quota.spec.hard
        used = {name: amount for name, amount in quota.status.used.items() if name in hard} | counted
        if _texts(used) != _texts(quota.status.used) or _texts(quota.status.hard) != _texts(hard):
            change = {
                "metadata": {
                    "resourceVersion": quota.metadata.resource_version
                },  # conflicts if admission counted in between
                "status": {"hard": _replacing(quota.status.hard, hard), "used": _replacing(quota.status.used, used)},
            }
            with suppress(NotFound):  # deleted
                await ctx.client.patch(ResourceQuota, request, MergePatch(change), subresource="status")
        return Result(requeue_after=_RECOUNT_EVERY)


def _texts(amounts: Mapping[str, Quantity]) -> dict[str, str]:
    return {name: str(amount) for name, amount in amounts.items()}


def _replacing(before: Mapping[str, Quantity], after: Mapping[str, Quantity]) -> dict[str, str | None]:
    return dict.fromkeys(before) | _texts(after)


async def _count(client: CachedClient, quota: ResourceQuota) -> dict[str, Quantity]:
    """Return the usage of each resource that the quota limits, as far as it can be counted."""
    hard, namespace = quota.spec.hard, quota.metadata.namespace
    spec = to_dict(quota.spec)
    used: dict[str, Quantity] = {}
    for resource, names in _by_resource(hard).items():
        kind = _KINDS.get(resource)
        if kind in _WHOLE:
            assert kind is not None
            objects: Iterable[dict[str, Any]] = await client.list(Unstructured(kind_of(kind).gvk), namespace=namespace)
        else:
            found = await _metadata(client, resource, namespace)
            if found is None:
                continue
            objects = [{}] * found
        objects = [each for each in objects if in_scope(resource, each, spec)]
        used |= dict.fromkeys(names, Quantity())
        for each in objects:
            for name, amount in usage(resource, each).items():
                if name in names:
                    used[name] = used[name] + amount if used[name].sign else amount
    return used


async def _metadata(client: CachedClient, resource: GroupResource, namespace: str) -> int | None:
    """Return the number of objects; None if the resource is unknown."""
    kind = _KINDS.get(resource)
    if kind is not None:
        return len(await client.list(MetadataOf(kind), namespace=namespace))
    try:
        info = await client.live.mapper.find(str(resource))
    except (AmbiguousResource, NoSuchResource):
        return None
    return len(await client.live.list(MetadataOf(info.gvk), namespace=namespace))


def _by_resource(hard: Iterable[str]) -> dict[GroupResource, set[str]]:
    """Group the resource names of a quota by the API resource that they count."""
    found: dict[GroupResource, set[str]] = {}
    for name in hard:
        resource = _resource_of(name)
        if resource is not None:
            found.setdefault(resource, set()).add(name)
    return found


def _resource_of(name: str) -> GroupResource | None:
    if name.startswith("count/"):
        plural, _, group = name.removeprefix("count/").partition(".")
        return GroupResource(group, plural)
    if name.startswith("services"):
        return _resource(Service)
    if name in ("persistentvolumeclaims", "requests.storage") or ".storageclass.storage.k8s.io/" in name:
        return _resource(PersistentVolumeClaim)
    if name == "pods" or name.startswith(_COMPUTE):
        return _resource(Pod)
    resource = GroupResource("", name)
    return resource if resource in _KINDS else None
