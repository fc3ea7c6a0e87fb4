"""Rendered templates as manifests: split, hooks apart, in the order of installation."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from ostinato.api.wire.json import DecodeError
from ostinato.api.wire.yaml import decode_yaml
from ostinato.charts.chart import ChartError
from ostinato.gotemplate.library.formats.wire import scalar_text
from ostinato.gotemplate.library.text import SPACE
from ostinato.gotemplate.strings import encode

_log: Final = logging.getLogger(__name__)

_SEPARATOR: Final = re.compile(r"(?:\A|[\t\n\f\r ]*\n)---[\t\n\f\r ]*")
_WEIGHT: Final = re.compile(r"[+-]?[0-9]{1,18}")

_METADATA: Final = r'struct { Name string "json:\"name\""; Annotations map[string]string "json:\"annotations\"" }'

HOOK: Final = "helm.sh/hook"
HOOK_WEIGHT: Final = "helm.sh/hook-weight"
HOOK_DELETE_POLICY: Final = "helm.sh/hook-delete-policy"
HOOK_OUTPUT_LOG_POLICY: Final = "helm.sh/hook-output-log-policy"

_EVENTS: Final = {
    **{
        f"{when}-{what}": f"{when}-{what}"
        for when in ("pre", "post")
        for what in ("install", "delete", "upgrade", "rollback")
    },
    "test": "test",
    "test-success": "test",
}

INSTALL_ORDER: Final = (
    "PriorityClass", "Namespace", "NetworkPolicy", "ResourceQuota", "LimitRange", "PodSecurityPolicy",
    "PodDisruptionBudget", "ServiceAccount", "Secret", "SecretList", "ConfigMap", "StorageClass", "PersistentVolume",
    "PersistentVolumeClaim", "CustomResourceDefinition", "ClusterRole", "ClusterRoleList", "ClusterRoleBinding",
    "ClusterRoleBindingList", "Role", "RoleList", "RoleBinding", "RoleBindingList", "Service", "DaemonSet", "Pod",
    "ReplicationController", "ReplicaSet", "Deployment", "HorizontalPodAutoscaler", "StatefulSet", "Job", "CronJob",
    "IngressClass", "Ingress", "APIService",
)  # fmt: skip
_PLACES: Final = {kind: place for place, kind in enumerate(INSTALL_ORDER)}

# Not quite the reverse: a Service is deleted early, before the workloads that it leads to.
UNINSTALL_ORDER: Final = (
    "APIService", "Ingress", "IngressClass", "Service", "CronJob", "Job", "StatefulSet", "HorizontalPodAutoscaler",
    "Deployment", "ReplicaSet", "ReplicationController", "Pod", "DaemonSet", "RoleBindingList", "RoleBinding",
    "RoleList", "Role", "ClusterRoleBindingList", "ClusterRoleBinding", "ClusterRoleList", "ClusterRole",
    "CustomResourceDefinition", "PersistentVolumeClaim", "PersistentVolume", "StorageClass", "ConfigMap",
    "SecretList", "Secret", "ServiceAccount", "PodDisruptionBudget", "PodSecurityPolicy", "LimitRange",
    "ResourceQuota", "NetworkPolicy", "Namespace", "PriorityClass",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Manifest:
    """A document of a rendered template: the template's path, its text, and what its head says."""

    path: str
    content: str
    api_version: str
    kind: str
    name: str


@dataclass(frozen=True, slots=True)
class Hook(Manifest):
    """A manifest that is applied at events: pre-install, post-upgrade, test..."""

    events: tuple[str, ...] = ()
    weight: int = 0
    delete_policies: tuple[str, ...] = ()
    output_log_policies: tuple[str, ...] = ()


def split_documents(text: str) -> list[str]:
    """Split a stream of YAML documents at lines with `---`; empty ones are left out."""
    parts = _SEPARATOR.split(text.strip(SPACE))
    return [part.strip(SPACE) for part in parts if part]


def sorted_manifests(rendered: dict[str, str]) -> tuple[list[Hook], list[Manifest]]:
    """Return the hooks and the other manifests, each in the order of installation. Raises ChartError."""
    hooks: list[Hook] = []
    manifests: list[Manifest] = []
    for path in sorted(rendered, key=encode):
        if path.rpartition("/")[2].startswith("_") or not rendered[path].strip(SPACE):
            continue
        for content in split_documents(rendered[path]):
            made = _manifest(path, content)
            if isinstance(made, Hook):
                hooks.append(made)
            elif made is not None:
                manifests.append(made)
    return in_order(hooks), in_order(manifests)


def in_order(manifests: Iterable[Any]) -> list[Any]:
    """Sort by kind: the known ones as Helm installs them, then the others by name; otherwise the order stays."""
    return sorted(
        manifests, key=lambda each: (_PLACES.get(each.kind, len(_PLACES)), "" if each.kind in _PLACES else each.kind)
    )


def _manifest(path: str, content: str) -> Manifest | None:
    head = _head(path, content)
    metadata = head.get("metadata") or {}
    annotations = metadata.get("annotations") or {}
    api_version, kind, name = head.get("apiVersion") or "", head.get("kind") or "", metadata.get("name") or ""
    if HOOK not in annotations:
        return Manifest(path, content, api_version, kind, name)
    wanted = [each.strip(SPACE).lower() for each in annotations[HOOK].split(",")]
    if not all(each in _EVENTS for each in wanted):
        _log.info("skipping unknown hook hook=%s template=%s", annotations[HOOK], path)
        return None
    weight = annotations.get(HOOK_WEIGHT) or ""
    return Hook(
        path,
        content,
        api_version,
        kind,
        name,
        tuple(_EVENTS[each] for each in wanted),
        int(weight) if _WEIGHT.fullmatch(weight) else 0,
        _policies(annotations, HOOK_DELETE_POLICY),
        _policies(annotations, HOOK_OUTPUT_LOG_POLICY),
    )


def _policies(annotations: dict[str, str], key: str) -> tuple[str, ...]:
    return tuple(each.strip(SPACE).lower() for each in annotations[key].split(",")) if key in annotations else ()


def _head(path: str, content: str) -> dict[str, Any]:
    """Decode a document and check the types of its head."""
    try:
        document = decode_yaml(encode(content))
    except DecodeError as error:
        raise ChartError(f"YAML parse error on {path}: error converting YAML to JSON: {error}") from None
    head = _map(path, document, "releaseutil.SimpleHead", "")
    metadata = _map(path, head.get("metadata"), _METADATA, "SimpleHead.metadata")
    annotations = _map(path, metadata.get("annotations"), "map[string]string", "SimpleHead.metadata.annotations")
    return {
        **{key: _text(path, head.get(key), f"SimpleHead.{key}") for key in ("apiVersion", "kind")},
        "metadata": {
            "name": _text(path, metadata.get("name"), "SimpleHead.metadata.name"),
            "annotations": {
                key: _text(path, value, "SimpleHead.metadata.annotations") for key, value in annotations.items()
            },
        },
    }


def _map(path: str, value: Any, go_type: str, field: str) -> dict[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise ChartError(_mismatch(path, value, go_type, field))
    return value


def _text(path: str, value: Any, field: str) -> str:
    text = "" if value is None else scalar_text(value)
    if text is None:
        raise ChartError(_mismatch(path, value, "string", field))
    return text


def _mismatch(path: str, value: Any, go_type: str, field: str) -> str:
    kind = {dict: "object", list: "array", str: "string", bool: "bool"}.get(type(value), "number")
    place = f"Go struct field {field}" if field else "Go value"
    problem = f"json: cannot unmarshal {kind} into {place} of type {go_type}"
    return f"YAML parse error on {path}: error unmarshaling JSON: while decoding JSON: {problem}"
