"""Bootstrap: create the objects that every cluster has.

- System namespaces, priority classes, roles and flow schemas come from a table.
- The Service `kubernetes` and its endpoints have the server's address, a ServiceCIDR the service range. Endpoints of
  several servers: `server_endpoints`.
- A ConfigMap records since when the use of legacy tokens is tracked, for the controller that removes unused ones.

Existing objects are not changed, except: the Service and its endpoints, which follow the server's address; IPAddresses,
which follow their Services; a ServiceCIDR of one IP family, which gets a range of the other; roles and bindings, whose
missing rules are restored. New objects are written as one batch.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from importlib import resources
from typing import Any, NamedTuple

import msgspec

from ostinato.api.gvk import GroupVersion
from ostinato.server.access.authorization import roles
from ostinato.server.access.authorization.rules import Rule
from ostinato.server.access.bootstrap_roles import reconciled
from ostinato.server.controllers import flow_schemas
from ostinato.server.controllers.server_objects import endpoints, service, service_cidr
from ostinato.server.request import body
from ostinato.server.resources.apiregistration.strategy import local_services
from ostinato.server.resources.core.services.addresses import Network
from ostinato.server.resources.registry import Registry
from ostinato.server.resources.resource import Resource
from ostinato.server.resources.strategy import Json
from ostinato.server.store.index import Index
from ostinato.server.store.records import Conflict, Entry
from ostinato.server.verbs import write
from ostinato.world import World

KUBELET_CLIENT = "kube-apiserver-kubelet-client"  # the server's user at kubelets

_MANAGER = "kube-apiserver"
_RANGE_MANAGER = "kubernetes-service-cidr-controller"
_RANGE_READY = "Kubernetes default Service CIDR is ready"
_FLOW_MANAGER = "api-priority-and-fairness-config-producer-v1"


class ServerFacts(NamedTuple):
    """What the objects say about the server; see `Server.start`."""

    address: str
    port: int
    tracks_tokens: bool
    asks_kubelets: bool
    service_ranges: Sequence[Network]


async def bootstrap(world: World, index: Index, registry: Registry, about: ServerFacts) -> None:
    """Create missing objects."""
    kinds = {resource.gvk: resource for resource in registry if resource.collection is not None}
    tracking = [_tracking(world)] if about.tracks_tokens else []
    rights = [_kubelet_client()] if about.asks_kubelets else []
    own = [service(about.port, about.service_ranges[0]), service_cidr(about.service_ranges)]
    if not index.is_shared:
        own += endpoints([(about.address, about.port)])  # those of several servers: `ServerEndpoints`
    objects = [*_table(), *own, *tracking, *rights, *local_services()]
    resources_ = [kinds[GroupVersion.parse(obj["apiVersion"]).kind(obj["kind"])] for obj in objects]
    await asyncio.gather(
        *(ensure(world, index, resource, obj) for resource, obj in zip(resources_, objects, strict=True))
    )


async def ensure(world: World, index: Index, resource: Resource, obj: Json) -> None:
    """Create an object, or update what follows from the servers' addresses."""
    while (writing := _write(world, index, resource, obj)) is not None:
        try:
            await writing
        except Conflict:  # another server starts as well
            continue
        return


def _table() -> list[Json]:
    data = resources.files("ostinato.server").joinpath("data/bootstrap.json").read_bytes()
    found: list[Json] = msgspec.json.decode(data)
    return found


def rules_of(role: str) -> list[Rule]:
    """The bootstrap rules of a ClusterRole, regardless of its current state."""
    found = next(each for each in _table() if each["kind"] == "ClusterRole" and each["metadata"]["name"] == role)
    return [Rule(raw) for raw in found["rules"]]


def _write(world: World, index: Index, resource: Resource, obj: Json) -> Any:
    """The write that creates an object, as a coroutine; None if it exists."""
    assert resource.collection is not None
    meta = obj["metadata"]
    current = resource.collection.newest(resource.key(meta.get("namespace", ""), meta["name"]))
    if current is None:
        return write.put_object(index, resource, _new(world, resource, obj), None)
    if (
        obj["kind"] in _FOLLOWING
        and meta["name"] == "kubernetes"
        and not (obj["kind"] == "Service" and index.is_shared)
    ):
        return _follow(index, resource, current, obj)
    if obj["kind"] == "ServiceCIDR":
        return _extended(world, index, resource, current, obj)
    return _restored(world, index, resource, current, obj) if resource.gvk.group == roles.GROUP else None


def _extended(world: World, index: Index, resource: Resource, current: Entry, wanted: Json) -> Any:
    """The write that adds a range of the second IP family; None if there are two, or the first is another."""
    old = resource.object(current.data)
    ranges, given = old["spec"].get("cidrs") or [], wanted["spec"]["cidrs"]
    if len(ranges) != 1 or len(given) != 2 or ranges[0] != given[0]:
        return None
    new = {**old, "spec": {**old["spec"], "cidrs": given}}
    new = resource.managers[""].update(old, new, _MANAGER, write.now(world.clock))
    return write.put_object(index, resource, new, current)


def _restored(world: World, index: Index, resource: Resource, current: Entry, wanted: Json) -> Any:
    """The write that restores missing parts of a role or binding; None if nothing is missing."""
    old = resource.object(current.data)
    new = reconciled(old, wanted)
    if new is old:
        return None
    new = {field: value for field, value in new.items() if value is not None}
    new = resource.managers[""].update(old, new, _MANAGER, write.now(world.clock))
    return write.put_object(index, resource, new, current)


def _new(world: World, resource: Resource, obj: Json) -> Json:
    now = write.now(world.clock)
    obj = _owned(resource, body.shaped(resource, obj), now)
    meta = obj["metadata"]
    meta["uid"], meta["creationTimestamp"] = world.ids.uid(), now
    if resource.strategy.generation:
        meta["generation"] = 1
    resource.strategy.prepare_create(obj)
    if resource.gvk.kind == "ServiceCIDR":
        ready = {"type": "Ready", "status": "True", "lastTransitionTime": now, "message": _RANGE_READY}
        config = {"apiVersion": obj["apiVersion"], "kind": "ServiceCIDR", "metadata": {"name": meta["name"]}}
        config["status"] = {"conditions": [ready]}
        obj = resource.managers["status"].apply(obj, config, _RANGE_MANAGER, now)
        obj["status"]["conditions"][0]["reason"] = ""
    if resource.gvk.kind == "FlowSchema":
        level = obj["spec"]["priorityLevelConfiguration"]["name"]
        obj = flow_schemas.with_condition(resource, obj, flow_schemas.dangling(level, now, found=True), now)
    return obj


def _owned(resource: Resource, obj: Json, now: str) -> Json:
    """Add managedFields; fields that the server fills in have no owner."""
    manager = _FLOW_MANAGER if resource.gvk.group == flow_schemas.GROUP else _MANAGER
    filled_in = _FILLED_IN.get(obj["kind"], ())
    if not filled_in:
        return resource.managers[""].update(None, obj, manager, now)
    spec = {field: value for field, value in obj["spec"].items() if field not in filled_in}
    applied = {**obj, "spec": spec} if spec else {field: value for field, value in obj.items() if field != "spec"}
    owners = resource.managers[""].update(None, applied, manager, now)["metadata"]["managedFields"]
    return {**obj, "metadata": {**obj["metadata"], "managedFields": owners}}


_FILLED_IN = {"Namespace": ("finalizers",), "Service": ("clusterIPs", "ipFamilies")}


def _follow(index: Index, resource: Resource, current: Entry, wanted: Json) -> Any:
    old = resource.object(current.data)
    shaped = body.shaped(resource, wanted)
    new = {**old, **{field: shaped[field] for field in _FOLLOWING[wanted["kind"]]}}
    if "spec" in new:
        new["spec"] = {**old["spec"], "ports": shaped["spec"]["ports"]}
    return None if new == old else write.put_object(index, resource, new, current)


# Kinds with the server's address, and the fields that follow it; of a Service, the ports.
_FOLLOWING = {"Service": (), "Endpoints": ("subsets",), "EndpointSlice": ("addressType", "endpoints", "ports")}


def _tracking(world: World) -> Json:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "kube-apiserver-legacy-service-account-token-tracking", "namespace": "kube-system"},
        "data": {"since": world.clock.now().date().isoformat()},
    }


def _kubelet_client() -> Json:
    """The permissions of this server's own user at kubelets, which authorize through the server."""
    role = "system:kubelet-api-admin"
    about = {"labels": {"kubernetes.io/bootstrapping": "rbac-defaults"}}
    about["annotations"] = {"rbac.authorization.kubernetes.io/autoupdate": "true"}
    return {
        "apiVersion": f"{roles.GROUP}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": "ostinato:kubelet-api-admin", **about},
        "roleRef": {"apiGroup": roles.GROUP, "kind": "ClusterRole", "name": role},
        "subjects": [{"apiGroup": roles.GROUP, "kind": "User", "name": KUBELET_CLIENT}],
    }
