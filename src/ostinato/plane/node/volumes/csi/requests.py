"""Requests to the node service of drivers: capabilities, secrets, tokens, information about the Pod."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Protocol

import msgspec

from ostinato.kinds.core_v1 import Pod, Secret, SecretReference, ServiceAccountTokenProjection
from ostinato.kinds.storage_v1 import CSIDriver, VolumeAttachment
from ostinato.plane.csi import CsiError, access_mode, capability
from ostinato.plane.csi.volumes import INFO_PREFIX, NODE_MOUNTS_WITH_GROUP, NODE_SINGLE_WRITERS
from ostinato.plane.node.volumes.contents import ContentError, Token
from ostinato.plane.node.volumes.csi.drivers import NodeDriver
from ostinato.plane.node.volumes.csi.sources import CsiSource
from ostinato.plane.node.volumes.ownership import Owner

_FILE_POLICY: Final = "File"
_DEFAULT_POLICY: Final = "ReadWriteOnceWithFSType"


class CsiObjects(Protocol):
    """Reads the objects that CSI volumes refer to."""

    async def secret(self, namespace: str, name: str) -> Secret | None: ...

    async def csi_driver(self, name: str) -> CSIDriver | None: ...

    async def volume_attachment(self, name: str) -> VolumeAttachment | None: ...

    async def volumes_attached(self, node: str) -> set[str]: ...

    async def issue_token(self, pod: Pod, asked: ServiceAccountTokenProjection) -> Token: ...


async def capability_of(source: CsiSource, driver: NodeDriver, owner: Owner) -> dict[str, Any]:
    """Return the VolumeCapability of a volume; with the fsGroup if the driver applies it."""
    mode = access_mode(source.access_modes[0], single_writers=await driver.has(NODE_SINGLE_WRITERS))
    group = owner.group if await driver.has(NODE_MOUNTS_WITH_GROUP) else None
    flags = source.mount_options
    return capability(mode, fs_type=source.fs_type, mount_flags=flags, is_block=source.is_block, group=group)


async def secrets_of(reference: SecretReference | None, what: str, objects: CsiObjects) -> dict[str, str]:
    """Return the data of a Secret; `CsiError` if it does not exist. `what`: the field that refers to it."""
    if reference is None:
        return {}
    namespace, name = reference.namespace or "", reference.name or ""
    found = await objects.secret(namespace, name)
    if found is None:
        raise CsiError(f'fetching {what} {namespace}/{name} failed: secrets "{name}" not found')
    return {key: value.decode("utf-8", "replace") for key, value in found.data.items()}


async def publish_request(
    pod: Pod, source: CsiSource, described: CSIDriver | None, objects: CsiObjects
) -> dict[str, Any]:
    """Return volume_context and secrets of NodePublishVolume. `described`: the driver's CSIDriver, if it has one."""
    context = dict(source.attributes)
    secrets = await secrets_of(source.publish_secret, "NodePublishSecretRef", objects)
    if described is not None and described.spec.pod_info_on_mount:
        context |= {
            f"{INFO_PREFIX}pod.name": pod.metadata.name,
            f"{INFO_PREFIX}pod.namespace": pod.metadata.namespace,
            f"{INFO_PREFIX}pod.uid": pod.metadata.uid,
            f"{INFO_PREFIX}serviceAccount.name": pod.spec.service_account_name or "",
            f"{INFO_PREFIX}ephemeral": str(source.is_ephemeral).lower(),
        }
    if described is not None and described.spec.token_requests:
        tokens = {f"{INFO_PREFIX}serviceAccount.tokens": await _tokens(pod, described, objects)}
        if described.spec.service_account_token_in_secrets:
            secrets |= tokens
        else:
            context |= tokens
    return {"volume_context": context, "secrets": secrets}


async def _tokens(pod: Pod, described: CSIDriver, objects: CsiObjects) -> str:
    found: dict[str, Mapping[str, str | None]] = {}
    for each in described.spec.token_requests:
        asked = ServiceAccountTokenProjection(
            path="", audience=each.audience or None, expiration_seconds=each.expiration_seconds
        )
        try:
            token = await objects.issue_token(pod, asked)
        except ContentError as error:
            raise CsiError(str(error)) from None
        found[each.audience] = {"token": token.value, "expirationTimestamp": str(token.expires)}
    return msgspec.json.encode(dict(sorted(found.items()))).decode()


def applies_group(source: CsiSource, described: CSIDriver | None, owner: Owner) -> bool:
    """Return whether the node sets the fsGroup of a volume (CSIDriver's fsGroupPolicy)."""
    policy = (None if described is None else described.spec.fs_group_policy) or _DEFAULT_POLICY
    if owner.group is None or source.read_only or policy == "None":
        return False
    is_exclusive = any(each in ("ReadWriteOnce", "ReadWriteOncePod") for each in source.access_modes)
    return policy == _FILE_POLICY or (bool(source.fs_type) and is_exclusive)


def check_mode(source: CsiSource, described: CSIDriver | None) -> None:
    """Raise `CsiError` if the driver does not support volumes of this life cycle."""
    mode = "Ephemeral" if source.is_ephemeral else "Persistent"
    modes = ["Persistent"] if described is None else described.spec.volume_lifecycle_modes or ["Persistent"]
    if described is None and source.is_ephemeral:
        raise CsiError(f"volume mode {mode!r} not supported by driver {source.driver} (no CSIDriver object)")
    if mode not in modes:
        raise CsiError(f"volume mode {mode!r} not supported by driver {source.driver} (only supports {modes!r})")
