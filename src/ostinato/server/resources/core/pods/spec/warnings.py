"""Warnings about valid Pod specs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ostinato.api.quantity import Quantity
from ostinato.api.text.go_format import quote
from ostinato.api.validation import names
from ostinato.api.validation.addresses import ip_warning
from ostinato.api.validation.field_errors import Path
from ostinato.server.resources.core.pods.spec.app_armor import app_armor_warnings
from ostinato.server.resources.core.pods.spec.path_warnings import path_warnings
from ostinato.server.resources.strategy import Json

_DEPRECATED_LABELS = {
    "beta.kubernetes.io/arch": 'deprecated since v1.14; use "kubernetes.io/arch" instead',
    "beta.kubernetes.io/os": 'deprecated since v1.14; use "kubernetes.io/os" instead',
    "failure-domain.beta.kubernetes.io/region": ('deprecated since v1.17; use "topology.kubernetes.io/region" instead'),
    "failure-domain.beta.kubernetes.io/zone": 'deprecated since v1.17; use "topology.kubernetes.io/zone" instead',
    "beta.kubernetes.io/instance-type": 'deprecated since v1.17; use "node.kubernetes.io/instance-type" instead',
    "app.kubernetes.io/created-by": "deprecated since v1.9",
    "scheduler.alpha.kubernetes.io/preferAvoidPods": "deprecated since v1.22; use Taints and Tolerations instead",
    "node-role.kubernetes.io/master": 'use "node-role.kubernetes.io/control-plane" instead',
}
_DEPRECATED_ANNOTATIONS = {
    "scheduler.alpha.kubernetes.io/critical-pod": (
        'non-functional in v1.16+; use the "priorityClassName" field instead'
    ),
    "security.alpha.kubernetes.io/sysctls": 'non-functional in v1.11+; use the "sysctls" field instead',
    "security.alpha.kubernetes.io/unsafe-sysctls": 'non-functional in v1.11+; use the "sysctls" field instead',
}
_DEPRECATED_VOLUMES = {
    "photonPersistentDisk": "deprecated in v1.11, non-functional in v1.16+",
    "gitRepo": "deprecated in v1.11, and disabled by default in v1.33+",
    "scaleIO": "deprecated in v1.16, non-functional in v1.22+",
    "flocker": "deprecated in v1.22, non-functional in v1.25+",
    "storageos": "deprecated in v1.22, non-functional in v1.25+",
    "quobyte": "deprecated in v1.22, non-functional in v1.25+",
    "glusterfs": "deprecated in v1.25, non-functional in v1.26+",
    "cephfs": "deprecated in v1.28, non-functional in v1.31+",
    "rbd": "deprecated in v1.28, non-functional in v1.31+",
}
_SHOWN_AS = {"storageos": "storageOS"}
_NO_SELECTOR = "a null labelSelector results in matching no pod"
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
_SECCOMP_OF_POD = "seccomp.security.alpha.kubernetes.io/pod"
_SECCOMP_OF_CONTAINER = "container.seccomp.security.alpha.kubernetes.io/"
_AT = Path("spec")
_CONTAINERS = ("initContainers", "containers", "ephemeralContainers")


def pod_name_warning(name: str, used_in: str) -> list[str]:
    """Warn about a name that is not a DNS label, for objects whose name becomes that of Pods."""
    messages = names.is_dns1123_label(name)
    if not messages:
        return []
    usage = f"this is used in {used_in}, which can result in surprising behavior"
    return [f"metadata.name: {usage}; a DNS label is recommended: [{' '.join(messages)}]"]


def template_warnings(template: Json | None, old: Json | None, path: Path) -> list[str]:
    """Warnings about a PodTemplateSpec at a path. `old` is the previous template."""
    del old  # no warning depends on it yet
    return [] if template is None else pod_warnings(template["spec"], template.get("metadata", {}), path)


def workload_warnings(new: Json, old: Json | None, *path: str) -> list[str]:
    """Warnings about the template of a workload whose spec has changed. `path` is that of the spec."""
    if old is not None and old.get("spec") == new.get("spec"):
        return []
    holder = new
    for part in path or ("spec",):
        holder = holder.get(part) or {}
    return template_warnings(holder.get("template"), None, Path(*(path or ("spec",)), "template"))


def pod_warnings(spec: Json, metadata: Json, path: Path | None = None) -> list[str]:
    """Warnings about a PodSpec; `path` is that of its template, None in a Pod."""
    at = _below(path, "spec")
    found = _label_warnings(spec, at)
    annotations = metadata.get("annotations", {})
    found += [
        f"{_below(path, 'metadata').child('annotations').key(key)}: {text}"
        for key, text in _DEPRECATED_ANNOTATIONS.items()
        if key in annotations
    ]
    for i, volume in enumerate(spec.get("volumes", ())):
        where = at.child("volumes").index(i)
        found += volume_warnings(volume, where)
        template = volume.get("ephemeral", {}).get("volumeClaimTemplate")
        if template is not None:
            found += claim_warnings(template.get("spec", {}), where.child("ephemeral", "volumeClaimTemplate", "spec"))
    found += path_warnings(spec.get("volumes", ()))
    found += _repeated(spec.get("hostAliases", ()), "ip", at.child("hostAliases"))
    secrets = spec.get("imagePullSecrets", ())
    found += _repeated(secrets, "name", at.child("imagePullSecrets"))
    found += [
        f'{at.child("imagePullSecrets").index(i).child("name")}: invalid empty name ""'
        for i, secret in enumerate(secrets)
        if not secret.get("name")
    ]
    found += _fractional(spec.get("overhead", {}), at.child("overhead"))
    found += _seccomp_warnings(metadata, spec, path)
    if path is not None:
        found += app_armor_warnings(metadata, spec, path)
    for container, where in _containers(spec, at):
        for side in ("limits", "requests"):
            found += _fractional(container.get("resources", {}).get(side, {}), where.child("resources", side))
        found += _hidden_variables(container.get("env", ()), where.child("env"))
    found += _port_warnings(spec, at) + _port_name_warnings(spec, at)
    if spec.get("terminationGracePeriodSeconds", 0) < 0:
        where = at.child("terminationGracePeriodSeconds")
        found.append(f"{where}: must be >= 0; negative values are invalid and will be treated as 1")
    return found + _affinity_warnings(spec.get("affinity", {}), at.child("affinity")) + _ip_warnings(spec, at)


def _seccomp_warnings(metadata: Json, spec: Json, path: Path | None) -> list[str]:
    """Warn about seccomp annotations without the corresponding field."""
    annotations = metadata.get("annotations") or {}
    if not annotations:
        return []
    holders = [(_SECCOMP_OF_POD, spec)]
    holders += [
        (_SECCOMP_OF_CONTAINER + container.get("name", ""), container) for container, _ in _containers(spec, _AT)
    ]
    return [
        f"{_below(path, 'metadata').child('annotations').key(key)}: "
        'non-functional in v1.27+; use the "seccompProfile" field instead'
        for key, holder in holders
        if key in annotations and "seccompProfile" not in (holder.get("securityContext") or {})
    ]


def volume_warnings(volume: Json, path: Path) -> list[str]:
    """Warn about deprecated volume types."""
    return [
        f"{path.child(_SHOWN_AS.get(kind, kind))}: {text}"
        for kind, text in _DEPRECATED_VOLUMES.items()
        if kind in volume
    ]


def claim_warnings(spec: Json, path: Path) -> list[str]:
    """Warnings about a PersistentVolumeClaimSpec."""
    resources = spec.get("resources", {})
    return [
        warning
        for side in ("requests", "limits")
        for warning in _fractional(resources.get(side, {}), path.child("resources", side), ("storage",))
    ]


def _below(path: Path | None, name: str) -> Path:
    return Path(name) if path is None else path.child(name)


def _containers(spec: Json, path: Path) -> Iterator[tuple[Json, Path]]:
    for kind in _CONTAINERS:
        for i, container in enumerate(spec.get(kind) or ()):
            yield container, path.child(kind).index(i)


def _label_warnings(spec: Json, path: Path) -> list[str]:
    found = [
        f"{path.child('nodeSelector').key(key)}: {_DEPRECATED_LABELS[key]}"
        for key in spec.get("nodeSelector", ())
        if key in _DEPRECATED_LABELS
    ]
    node = spec.get("affinity", {}).get("nodeAffinity", {})
    where = path.child("affinity", "nodeAffinity")
    for i, term in enumerate(node.get(_REQUIRED, {}).get("nodeSelectorTerms") or ()):
        found += term_warnings(term, where.child(_REQUIRED, "nodeSelectorTerms").index(i))
    for i, term in enumerate(node.get(_PREFERRED, ())):
        found += term_warnings(term.get("preference", {}), where.child(_PREFERRED).index(i).child("preference"))
    for i, constraint in enumerate(spec.get("topologySpreadConstraints", ())):
        at = path.child("topologySpreadConstraints").index(i)
        key = constraint.get("topologyKey", "")
        if key in _DEPRECATED_LABELS:
            found.append(f"{at.child('topologyKey')}: {key} is {_DEPRECATED_LABELS[key]}")
        if "labelSelector" not in constraint:
            found.append(f"{at.child('labelSelector')}: {_NO_SELECTOR}")
    return found


def term_warnings(term: Json, path: Path) -> list[str]:
    return [
        f"{path.child('matchExpressions').index(i).child('key')}: {key} is {_DEPRECATED_LABELS[key]}"
        for i, key in enumerate(expression.get("key", "") for expression in term.get("matchExpressions", ()))
        if key in _DEPRECATED_LABELS
    ]


def _repeated(items: Any, field: str, path: Path) -> list[str]:
    found = []
    seen: set[str] = set()
    for i, item in enumerate(items):
        value = item.get(field, "")
        if value in seen:
            found.append(f"{path.index(i).child(field)}: duplicate {field} {quote(value)}")
        seen.add(value)
    return found


def _fractional(
    amounts: dict[str, str], path: Path, counted: tuple[str, ...] = ("memory", "ephemeral-storage")
) -> list[str]:
    return [
        f"{path.key(name)}: fractional byte value {quote(amounts[name])} is invalid, must be an integer"
        for name in counted
        if name in amounts and Quantity.parse(amounts[name]).milli_value() % 1000
    ]


def _hidden_variables(variables: Any, path: Path) -> list[str]:
    found = []
    seen: set[str] = set()
    for i, variable in enumerate(variables):
        name = variable.get("name", "")
        if name not in seen:
            seen.add(name)
            continue
        value, reference = variable.get("value", ""), f"$({name})"
        if "valueFrom" in variable or value == reference or reference not in value:
            hides = f"hides previous definition of {quote(name)}, which may be dropped when using apply"
            found.append(f"{path.index(i)}: {hides}")
    return found


def _ports(spec: Json, path: Path) -> Iterator[tuple[Json, Path]]:
    for container, where in _containers(spec, path):
        for i, port in enumerate(container.get("ports", ())):
            yield port, where.child("ports").index(i)


def _port_shown(port: Json) -> str:
    fields = ("name", "hostPort", "containerPort", "protocol", "hostIP")
    zeros = {"hostPort": 0, "containerPort": 0}
    shown = (f"{field[0].upper()}{field[1:]}:{port.get(field, zeros.get(field, ''))}" for field in fields)
    return f"{{{' '.join(shown)}}}"


def _port_warnings(spec: Json, path: Path) -> list[str]:
    found = []
    seen: dict[tuple[int, str], list[tuple[Json, Path]]] = {}
    for port, where in _ports(spec, path):
        others = seen.setdefault((port.get("containerPort", 0), port.get("protocol", "")), [])
        ip, host = port.get("hostIP", ""), port.get("hostPort", 0)
        if ip and not host:
            found.append(f"{where}: hostIP set without hostPort: {_port_shown(port)}")
        for other, first in others:
            other_ip, other_host = other.get("hostIP", ""), other.get("hostPort", 0)
            if (ip, host) == (other_ip, other_host):
                found.append(f"{where}: duplicate port definition with {first}")
            elif not host or not other_host:
                found.append(f"{where}: overlapping port definition with {first}")
            elif host == other_host and bool(ip) != bool(other_ip):
                found.append(f"{where}: dangerously ambiguous port definition with {first}")
        others.append((port, where))
    return found


def _port_name_warnings(spec: Json, path: Path) -> list[str]:
    found = []
    seen: dict[str, Path] = {}
    for port, where in _ports(spec, path):
        name = port.get("name", "")
        if name in seen:
            first = seen[name]
            found.append(
                f"{where}: duplicate port name {quote(name)} with {first}, services and probes that select ports by "
                f"name will use {first}"
            )
        elif name:
            seen[name] = where
    return found


def _affinity_warnings(affinity: Json, path: Path) -> list[str]:
    found = []
    for kind in ("podAffinity", "podAntiAffinity"):
        pods = affinity.get(kind, {})
        for i, term in enumerate(pods.get(_REQUIRED, ())):
            if "labelSelector" not in term:
                found.append(f"{path.child(kind, _REQUIRED).index(i).child('labelSelector')}: {_NO_SELECTOR}")
        for i, term in enumerate(pods.get(_PREFERRED, ())):
            if "labelSelector" not in term.get("podAffinityTerm", {}):
                where = path.child(kind, _PREFERRED).index(i).child("podAffinityTerm", "labelSelector")
                found.append(f"{where}: {_NO_SELECTOR}")
    return found


def _ip_warnings(spec: Json, path: Path) -> list[str]:
    addresses = [
        (path.child("dnsConfig", "nameservers").index(i), server)
        for i, server in enumerate(spec.get("dnsConfig", {}).get("nameservers", ()))
    ]
    addresses += [
        (path.child("hostAliases").index(i).child("ip"), alias.get("ip", ""))
        for i, alias in enumerate(spec.get("hostAliases", ()))
    ]
    return [f"{where}: {text}" for where, text in ((w, ip_warning(ip)) for w, ip in addresses) if text is not None]
