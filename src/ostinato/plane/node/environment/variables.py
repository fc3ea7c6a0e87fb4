"""Environment variables of a container: literal values, ConfigMaps, Secrets, files, downward API and Services."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, Protocol

import msgspec

from ostinato.api.quantity import Quantity
from ostinato.kinds.core_v1 import ConfigMap, Container, EnvVar, FileKeySelector, Pod, Secret
from ostinato.plane.node.environment.downward_api import FieldError, field_of, resource_of
from ostinato.plane.node.environment.env_files import LARGEST, EnvFileError, value_in
from ostinato.plane.node.environment.expansion import expand
from ostinato.plane.node.runtimes import StartError
from ostinato.plane.node.volumes.subpaths import SubPathError, read_subpath

_NAME: Final = re.compile(r"[ -<>-~]+")  # printable ASCII without "="


class ObjectSource(Protocol):
    """Reads the objects that variables refer to; None if an object does not exist."""

    async def config_map(self, namespace: str, name: str) -> ConfigMap | None: ...

    async def secret(self, namespace: str, name: str) -> Secret | None: ...


class PodFacts(msgspec.Struct, frozen=True):
    """Values of the node and the Pod that variables can refer to."""

    host_ips: Sequence[str]
    pod_ips: Sequence[str]
    allocatable: Mapping[str, Quantity]
    services: Mapping[str, str]  # service variables
    volumes: Mapping[str, Path] = {}  # for fileKeyRef


async def environment_of(pod: Pod, container: Container, objects: ObjectSource, facts: PodFacts) -> dict[str, str]:
    """Return the variables of a container; `StartError` if a required object or key is missing.

    A value can refer to earlier variables and to service variables. The last value of a repeated name wins; service
    variables have the lowest priority.
    """
    found = await _from_objects(pod, container, objects)
    for variable in container.env:
        if variable.value_from is None:
            found[variable.name] = expand(variable.value or "", {**facts.services, **found})
            continue
        value = await _value(pod, container, variable, objects, facts)
        if value is not None:
            found[variable.name] = value
    return {**facts.services, **found}


async def _from_objects(pod: Pod, container: Container, objects: ObjectSource) -> dict[str, str]:
    namespace = pod.metadata.namespace
    found: dict[str, str] = {}
    for source in container.env_from:
        data: dict[str, str] = {}
        if (asked := source.config_map_ref) is not None:
            config_map = await objects.config_map(namespace, asked.name or "")
            if config_map is None and not asked.optional:
                raise _missing("configmap", asked.name)
            data = {} if config_map is None else dict(config_map.data)
        elif (secret_asked := source.secret_ref) is not None:
            secret = await objects.secret(namespace, secret_asked.name or "")
            if secret is None and not secret_asked.optional:
                raise _missing("secret", secret_asked.name)
            data = {} if secret is None else {key: _text(value) for key, value in secret.data.items()}
        prefix = source.prefix or ""
        found |= {prefix + key: value for key, value in data.items() if _NAME.fullmatch(prefix + key)}
    return found


async def _value(
    pod: Pod, container: Container, variable: EnvVar, objects: ObjectSource, facts: PodFacts
) -> str | None:
    """Return the value of a `valueFrom` variable; None omits it."""
    source, namespace = variable.value_from, pod.metadata.namespace
    assert source is not None
    try:
        if source.field_ref is not None:
            return field_of(pod, source.field_ref, facts.host_ips, facts.pod_ips)
        if source.resource_field_ref is not None:
            return resource_of(pod, source.resource_field_ref, container.name, facts.allocatable)
    except FieldError as error:
        raise StartError("CreateContainerConfigError", str(error)) from None
    if (asked := source.config_map_key_ref) is not None:
        config_map = await objects.config_map(namespace, asked.name or "")
        if config_map is None:
            return _none_if_optional(asked.optional, _missing("configmap", asked.name))
        if asked.key not in config_map.data:
            return _none_if_optional(asked.optional, _missing_key(asked.key, "ConfigMap", namespace, asked.name))
        return config_map.data[asked.key]
    if (secret_asked := source.secret_key_ref) is not None:
        secret = await objects.secret(namespace, secret_asked.name or "")
        if secret is None:
            return _none_if_optional(secret_asked.optional, _missing("secret", secret_asked.name))
        if secret_asked.key not in secret.data:
            return _none_if_optional(
                secret_asked.optional, _missing_key(secret_asked.key, "Secret", namespace, secret_asked.name)
            )
        return _text(secret.data[secret_asked.key])
    if (file_asked := source.file_key_ref) is not None:
        return _from_file(file_asked, facts)
    return None


def _from_file(asked: FileKeySelector, facts: PodFacts) -> str | None:
    volume = facts.volumes.get(asked.volume_name)
    if volume is None:
        text = f'cannot find the volume "{asked.volume_name}" referenced by FileKeyRef'
        raise StartError("CreateContainerConfigError", text)
    try:
        value = value_in(read_subpath(volume, asked.path, LARGEST), asked.key)
    except (EnvFileError, SubPathError, OSError):
        raise StartError("CreateContainerConfigError", "couldn't parse env file") from None
    if value or asked.optional:
        return value or None
    text = f'environment variable key "{asked.key}" not found in file "{asked.path}"'
    raise StartError("CreateContainerConfigError", text)


def _none_if_optional(optional: bool | None, error: StartError) -> str | None:
    if optional:
        return None
    raise error


def _missing(kind: str, name: str | None) -> StartError:
    return StartError("CreateContainerConfigError", f'{kind} "{name or ""}" not found')


def _missing_key(key: str, kind: str, namespace: str, name: str | None) -> StartError:
    return StartError("CreateContainerConfigError", f"couldn't find key {key} in {kind} {namespace}/{name or ''}")


def _text(value: bytes) -> str:
    return value.decode(errors="surrogateescape")
