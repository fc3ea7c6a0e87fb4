"""Expected number of Pods, from the scale of their controllers.

Percentages and maxUnavailable refer to the expected number, not to the current one. Pods of a Deployment's ReplicaSet
count for the Deployment. For other kinds the scale subresource is read.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from typing import Final, Protocol

import msgspec

from ostinato.api.errors import Forbidden, NotFound
from ostinato.api.gvk import GroupVersion, NamespacedName
from ostinato.api.meta import OwnerReference
from ostinato.api.object import Object
from ostinato.api.owners import controller_of
from ostinato.api.struct import BuiltinStruct
from ostinato.api.text.go_format import quote
from ostinato.cache import CachedClient
from ostinato.client.views import MetadataOf, Unstructured


class ScaleError(Exception):
    """The expected number of Pods cannot be determined."""


class _Spec(BuiltinStruct):
    replicas: int = 1


class _Scalable(Object):
    spec: _Spec = msgspec.field(default_factory=_Spec)


class _ReplicationController(_Scalable, version="v1", kind="ReplicationController", plural="replicationcontrollers"):
    pass


class _ReplicaSet(_Scalable, group="apps", version="v1", kind="ReplicaSet", plural="replicasets"):
    pass


class _StatefulSet(_Scalable, group="apps", version="v1", kind="StatefulSet", plural="statefulsets"):
    pass


class _Deployment(_Scalable, group="apps", version="v1", kind="Deployment", plural="deployments"):
    pass


_KNOWN: Final[dict[tuple[str, str], type[_Scalable]]] = {
    ("", "ReplicationController"): _ReplicationController,
    ("apps", "ReplicaSet"): _ReplicaSet,
    ("extensions", "ReplicaSet"): _ReplicaSet,
    ("apps", "StatefulSet"): _StatefulSet,
    ("apps", "Deployment"): _Deployment,
    ("extensions", "Deployment"): _Deployment,
}


class Scale(msgspec.Struct, frozen=True):
    uid: str
    replicas: int


class ControlledPod(Protocol):
    """A Pod and its controller reference."""

    @property
    def key(self) -> NamespacedName: ...

    @property
    def controller(self) -> OwnerReference | None: ...


async def expected_pods(client: CachedClient, pods: Iterable[ControlledPod]) -> tuple[int, list[str]]:
    """Return the expected number, and the names of Pods without a controller, which do not count."""
    scales: dict[str, Scale] = {}  # by uid of the controller
    unmanaged: list[str] = []
    for pod in pods:
        reference = pod.controller
        if reference is None:
            unmanaged.append(pod.key.name)
        elif reference.uid not in scales:
            scale = await _scale_of(client, reference, pod.key.namespace)
            if scale is None:
                raise ScaleError(f"found no controllers for pod {quote(pod.key.name)}")
            scales[reference.uid] = scale
    by_owner = {scale.uid: scale.replicas for scale in scales.values()}
    return sum(by_owner.values()), unmanaged


async def _scale_of(client: CachedClient, reference: OwnerReference, namespace: str) -> Scale | None:
    owner = await _known_owner(client, reference, namespace)
    if owner is None:
        return await _scale_subresource(client, reference, namespace)
    above = controller_of(owner) if isinstance(owner, _ReplicaSet) else None
    if above is not None and (deployment := await _known_owner(client, above, namespace)) is not None:
        owner = deployment
    return Scale(owner.metadata.uid, owner.spec.replicas)


async def _known_owner(client: CachedClient, reference: OwnerReference, namespace: str) -> _Scalable | None:
    """Return the owner if it is of a built-in kind and has the uid of the reference."""
    kind = _KNOWN.get((_group(reference), reference.kind))
    if kind is None:
        return None
    found = await client.get(kind, NamespacedName(namespace, reference.name), missing=None)
    return found if found is not None and found.metadata.uid == reference.uid else None


async def _scale_subresource(client: CachedClient, reference: OwnerReference, namespace: str) -> Scale | None:
    """Return the scale subresource of an owner of any kind."""
    if (_group(reference), reference.kind) in _KNOWN:
        return None  # deleted
    view, key = Unstructured.of(reference.api_version, reference.kind), NamespacedName(namespace, reference.name)
    info = await client.live.mapper.kind(view.gvk)
    try:
        scale = await client.live.scale.get(view, key)
    except NotFound:
        with suppress(Forbidden):  # RBAC may allow the scale subresource only
            if await client.live.get(MetadataOf(view), key, missing=None) is None:
                return None
        raise ScaleError(f"{info.gvr.group_resource} does not implement the scale subresource") from None
    if scale.metadata.uid != reference.uid:
        return None
    return Scale(scale.metadata.uid, scale.spec.replicas or 0)


def _group(reference: OwnerReference) -> str:
    try:
        return GroupVersion.parse(reference.api_version).group
    except ValueError as error:
        raise ScaleError(str(error)) from None
