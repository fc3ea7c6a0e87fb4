"""Content of projected volumes: ConfigMaps, Secrets, downward API, service account tokens."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Protocol

import msgspec

from ostinato.api.quantity import Quantity
from ostinato.api.time import Time
from ostinato.kinds.core_v1 import (
    ConfigMap,
    DownwardAPIVolumeFile,
    KeyToPath,
    Pod,
    Secret,
    ServiceAccountTokenProjection,
    Volume,
    VolumeProjection,
)
from ostinato.plane.node.environment.downward_api import FieldError, field_of, resource_of
from ostinato.plane.node.volumes.ownership import owner_of
from ostinato.plane.node.volumes.payload import File

_MODE = 0o644
_TOKEN_MODE = 0o600  # for tokens with an owner
_DEEPEST = 128


class ContentError(Exception):
    """A projected object or key does not exist."""


class Token(msgspec.Struct, frozen=True):
    """A service account token."""

    value: str
    expires: Time


class Objects(Protocol):
    """Reads the objects of projected volumes."""

    async def config_map(self, namespace: str, name: str) -> ConfigMap | None: ...

    async def secret(self, namespace: str, name: str) -> Secret | None: ...

    async def token(self, pod: Pod, asked: ServiceAccountTokenProjection) -> str:
        """A token of the Pod's service account; `ContentError` if the server issues none."""


class ProjectedContents:
    def __init__(self, objects: Objects, host_ips: Sequence[str], allocatable: Mapping[str, Quantity]) -> None:
        self._objects = objects
        self._host_ips = host_ips
        self._allocatable = allocatable

    async def of(self, pod: Pod, volume: Volume) -> dict[str, File] | None:
        """Return the files of a volume by path; None if it is not projected. `ContentError` if an object is missing."""
        if (config_map := volume.config_map) is not None:
            mode = _mode(config_map.default_mode)
            return await self._config_map(pod, config_map.name, config_map.items, config_map.optional, mode)
        if (secret := volume.secret) is not None:
            mode = _mode(secret.default_mode)
            return await self._secret(pod, secret.secret_name, secret.items, secret.optional, mode)
        if (downward := volume.downward_api) is not None:
            return self._downward(pod, downward.items, _mode(downward.default_mode))
        if (projected := volume.projected) is not None:
            mode = _mode(projected.default_mode)
            files: dict[str, File] = {}
            for source in projected.sources:
                files |= await self._projected(pod, source, mode)
            return files
        return None

    async def _projected(self, pod: Pod, source: VolumeProjection, mode: int) -> dict[str, File]:
        if (config_map := source.config_map) is not None:
            return await self._config_map(pod, config_map.name, config_map.items, config_map.optional, mode)
        if (secret := source.secret) is not None:
            return await self._secret(pod, secret.name, secret.items, secret.optional, mode)
        if source.downward_api is not None:
            return self._downward(pod, source.downward_api.items, mode)
        if (asked := source.service_account_token) is not None:
            token = await self._objects.token(pod, asked)
            owner = owner_of(pod)
            is_owned = owner.user is not None or owner.group is not None
            return {_safe(asked.path): File(token.encode(), _TOKEN_MODE if is_owned else mode, owner.user)}
        return {}

    async def _config_map(
        self, pod: Pod, name: str | None, items: Sequence[KeyToPath], optional: bool | None, mode: int
    ) -> dict[str, File]:
        found = await self._objects.config_map(pod.metadata.namespace, name or "")
        if found is None:
            if optional:
                return {}
            raise ContentError(f'configmap "{name or ""}" not found')
        data = {key: value.encode() for key, value in found.data.items()} | found.binary_data
        return _chosen(data, items, bool(optional), mode, "configmap references non-existent config key: ")

    async def _secret(
        self, pod: Pod, name: str | None, items: Sequence[KeyToPath], optional: bool | None, mode: int
    ) -> dict[str, File]:
        found = await self._objects.secret(pod.metadata.namespace, name or "")
        if found is None:
            if optional:
                return {}
            raise ContentError(f'secret "{name or ""}" not found')
        return _chosen(found.data, items, bool(optional), mode, "references non-existent secret key: ")

    def _downward(self, pod: Pod, items: Sequence[DownwardAPIVolumeFile], mode: int) -> dict[str, File]:
        files = {}
        for item in items:
            try:
                if item.field_ref is not None:
                    text = field_of(pod, item.field_ref, self._host_ips, _ips_of(pod))
                elif item.resource_field_ref is not None:
                    text = resource_of(pod, item.resource_field_ref, "", self._allocatable)
                else:
                    continue
            except FieldError as error:
                raise ContentError(str(error)) from None
            files[_safe(item.path)] = File(text.encode(), mode if item.mode is None else item.mode)
        return files


def _chosen(
    data: Mapping[str, bytes], items: Sequence[KeyToPath], optional: bool, mode: int, error_prefix: str
) -> dict[str, File]:
    if not items:
        return {_safe(key): File(value, mode) for key, value in data.items()}
    files = {}
    for item in items:
        if item.key in data:
            files[_safe(item.path)] = File(data[item.key], mode if item.mode is None else item.mode)
        elif not optional:
            raise ContentError(error_prefix + item.key)
    return files


def _safe(path: str) -> str:
    """Check that a path stays inside the volume."""
    if path.startswith(("/", "..")) or ".." in path.split("/") or not path:
        raise ContentError(f"invalid path {path}: must be relative, without '..'")
    if path.count("/") > _DEEPEST:
        raise ContentError(f"invalid path {path[:64]}...: more than {_DEEPEST} directories deep")
    return os.path.normpath(path)


def _mode(given: int | None) -> int:
    return _MODE if given is None else given


def _ips_of(pod: Pod) -> list[str]:
    return [each.ip for each in pod.status.pod_ips if each.ip] or ([pod.status.pod_ip] if pod.status.pod_ip else [])
