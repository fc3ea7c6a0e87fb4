"""References of Pods and PersistentVolumes: the objects that a node needs to read.

Only reference fields are decoded.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import msgspec

MIRROR: Final = "kubernetes.io/config.mirror"


class Reference(NamedTuple):
    """A referenced object of the core group or resource.k8s.io. `namespace`: "" for the Pod's."""

    resource: str
    name: str
    namespace: str = ""


class _Struct(msgspec.Struct, rename="camel"):
    pass


class _Named(_Struct):
    name: str = ""
    namespace: str = ""


class _WithSecret(_Struct):
    secret_ref: _Named | None = None


class _SecretName(_Struct):
    secret_name: str = ""
    secret_namespace: str | None = None


class _Claim(_Struct):
    claim_name: str = ""


class _Source(_Struct):
    secret: _Named | None = None
    config_map: _Named | None = None


class _Projected(_Struct):
    sources: list[_Source] | None = None


class _Csi(_Struct):
    node_publish_secret_ref: _Named | None = None
    node_stage_secret_ref: _Named | None = None
    node_expand_secret_ref: _Named | None = None


class _Storage(_Struct):
    """Volume sources that Pods and PersistentVolumes share."""

    azure_file: _SecretName | None = None
    cephfs: _WithSecret | None = None
    cinder: _WithSecret | None = None
    flex_volume: _WithSecret | None = None
    rbd: _WithSecret | None = None
    scale_io: _WithSecret | None = msgspec.field(name="scaleIO", default=None)
    iscsi: _WithSecret | None = None
    storageos: _WithSecret | None = None
    csi: _Csi | None = None


class _Volume(_Storage):
    name: str = ""
    projected: _Projected | None = None
    secret: _SecretName | None = None
    config_map: _Named | None = None
    persistent_volume_claim: _Claim | None = None
    ephemeral: Any = None  # only its presence matters


class _EnvironmentFrom(_Struct):
    secret_ref: _Named | None = None
    config_map_ref: _Named | None = None


class _ValueFrom(_Struct):
    secret_key_ref: _Named | None = None
    config_map_key_ref: _Named | None = None


class _Variable(_Struct):
    value_from: _ValueFrom | None = None


class _Container(_Struct):
    env_from: list[_EnvironmentFrom] | None = None
    env: list[_Variable] | None = None


class _PodClaim(_Struct):
    name: str = ""
    resource_claim_name: str | None = None
    resource_claim_template_name: str | None = None


class _PodSpec(_Struct):
    node_name: str = ""
    service_account_name: str = ""
    image_pull_secrets: list[_Named] | None = None
    init_containers: list[_Container] | None = None
    containers: list[_Container] | None = None
    ephemeral_containers: list[_Container] | None = None
    volumes: list[_Volume] | None = None
    resource_claims: list[_PodClaim] | None = None


class _ExtendedClaim(_Struct):
    resource_claim_name: str = ""


class _PodStatus(_Struct):
    resource_claim_statuses: list[_PodClaim] | None = None
    extended_resource_claim_status: _ExtendedClaim | None = None


class _Metadata(_Struct):
    name: str = ""
    annotations: dict[str, str] | None = None


class _Pod(_Struct):
    metadata: _Metadata
    spec: _PodSpec
    status: _PodStatus = msgspec.field(default_factory=_PodStatus)


class _VolumeSpec(_Storage):
    claim_ref: _Named | None = None


class _PersistentVolume(_Struct):
    spec: _VolumeSpec


_pods = msgspec.json.Decoder(_Pod)
_volumes = msgspec.json.Decoder(_PersistentVolume)


def of_pod(data: bytes) -> frozenset[Reference]:
    """The objects that a Pod lets its node read. A mirror Pod, created by the node itself, grants none."""
    pod = _pods.decode(data)
    if MIRROR in (pod.metadata.annotations or ()):
        return frozenset()
    return frozenset(reference for reference in _of_pod(pod) if reference.name)


def secrets_and_maps(pod: dict[str, Any]) -> Iterator[Reference]:
    """The Secrets and ConfigMaps that a Pod references, Secrets first."""
    spec = msgspec.convert(pod["spec"], _PodSpec)
    found = [reference for reference in _secrets_and_maps(spec) if reference.name]
    return iter(sorted(found, key=lambda each: each.resource, reverse=True))


def _of_pod(pod: _Pod) -> Iterator[Reference]:
    spec = pod.spec
    yield Reference("serviceaccounts", spec.service_account_name)
    yield from _secrets_and_maps(spec)
    for volume in spec.volumes or ():
        if volume.persistent_volume_claim is not None:
            yield Reference("persistentvolumeclaims", volume.persistent_volume_claim.claim_name)
        elif volume.ephemeral is not None:
            yield Reference("persistentvolumeclaims", f"{pod.metadata.name}-{volume.name}")
    made = {each.name: each.resource_claim_name for each in pod.status.resource_claim_statuses or ()}
    for claim in spec.resource_claims or ():
        name = claim.resource_claim_name
        if name is None and claim.resource_claim_template_name is not None:
            name = made.get(claim.name)
        yield Reference("resourceclaims", name or "")
    if pod.status.extended_resource_claim_status is not None:
        yield Reference("resourceclaims", pod.status.extended_resource_claim_status.resource_claim_name)


def _secrets_and_maps(spec: _PodSpec) -> Iterator[Reference]:
    for secret in spec.image_pull_secrets or ():
        yield Reference("secrets", secret.name)
    for containers in (spec.init_containers, spec.containers, spec.ephemeral_containers):
        for container in containers or ():
            yield from _of_container(container)
    for volume in spec.volumes or ():
        if volume.secret is not None:
            yield Reference("secrets", volume.secret.secret_name)
        elif volume.config_map is not None:
            yield Reference("configmaps", volume.config_map.name)
        elif volume.projected is not None:
            for source in volume.projected.sources or ():
                if source.secret is not None:
                    yield Reference("secrets", source.secret.name)
                if source.config_map is not None:
                    yield Reference("configmaps", source.config_map.name)
        else:
            for reference in _of_storage(volume, (None if volume.csi is None else volume.csi.node_publish_secret_ref,)):
                yield Reference("secrets", reference.name)  # always in the Pod's namespace


def _of_container(container: _Container) -> Iterator[Reference]:
    for source in container.env_from or ():
        if source.secret_ref is not None:
            yield Reference("secrets", source.secret_ref.name)
        if source.config_map_ref is not None:
            yield Reference("configmaps", source.config_map_ref.name)
    for variable in container.env or ():
        value = variable.value_from
        if value is not None and value.secret_key_ref is not None:
            yield Reference("secrets", value.secret_key_ref.name)
        if value is not None and value.config_map_key_ref is not None:
            yield Reference("configmaps", value.config_map_key_ref.name)


def _of_storage(volume: _Storage, of_csi: tuple[_Named | None, ...]) -> Iterator[_Named]:
    """The Secrets that a node needs to mount a volume."""
    if volume.azure_file is not None:
        yield _Named(volume.azure_file.secret_name, volume.azure_file.secret_namespace or "")
    for source in (
        volume.cephfs,
        volume.cinder,
        volume.flex_volume,
        volume.rbd,
        volume.scale_io,
        volume.iscsi,
        volume.storageos,
    ):
        if source is not None and source.secret_ref is not None:
            yield source.secret_ref
    for reference in of_csi:
        if reference is not None:
            yield reference


class OfVolume(NamedTuple):
    """References of a PersistentVolume: the bound claim and the Secrets of its driver."""

    claim: Reference
    secrets: frozenset[Reference]


def of_volume(data: bytes) -> OfVolume | None:
    """The references of a volume; None if it is not bound to a claim."""
    spec = _volumes.decode(data).spec
    if spec.claim_ref is None:
        return None
    csi = spec.csi
    of_csi = () if csi is None else (csi.node_publish_secret_ref, csi.node_stage_secret_ref, csi.node_expand_secret_ref)
    secrets = frozenset(
        Reference("secrets", each.name, each.namespace or spec.claim_ref.namespace)
        for each in _of_storage(spec, of_csi)
        if each.name
    )
    return OfVolume(Reference("persistentvolumeclaims", spec.claim_ref.name, spec.claim_ref.namespace), secrets)
