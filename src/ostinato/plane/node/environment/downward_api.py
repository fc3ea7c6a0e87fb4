"""Downward API: values of a Pod's fields and resources, for variables and volumes."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

from ostinato.api.quantity import Quantity
from ostinato.kinds.core_v1 import ObjectFieldSelector, Pod, ResourceFieldSelector

_SUBSCRIPT: Final = re.compile(r"metadata\.(labels|annotations)\['(.*)'\]")
_QUOTED: Final = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"}


class FieldError(ValueError):
    """An unsupported field or resource."""


def field_of(pod: Pod, asked: ObjectFieldSelector, host_ips: Sequence[str], pod_ips: Sequence[str]) -> str:
    """Return the value of a field; `FieldError` if it is unsupported. Missing labels are empty."""
    path, known = asked.field_path, pod.metadata
    if found := _SUBSCRIPT.fullmatch(path):
        return (known.labels if found[1] == "labels" else known.annotations).get(found[2], "")
    values = {
        "metadata.name": known.name,
        "metadata.namespace": known.namespace,
        "metadata.uid": known.uid,
        "spec.nodeName": pod.spec.node_name or "",
        "spec.serviceAccountName": pod.spec.service_account_name or "",
        "status.hostIP": next(iter(host_ips), ""),
        "status.hostIPs": ",".join(host_ips),
        "status.podIP": next(iter(pod_ips), ""),
        "status.podIPs": ",".join(pod_ips),
    }
    if path in ("metadata.labels", "metadata.annotations"):
        items = known.labels if path.endswith("labels") else known.annotations
        return "\n".join(f'{name}="{_quoted(items[name])}"' for name in sorted(items))
    if path not in values:
        raise FieldError(f"unsupported fieldPath: {path}")
    return values[path]


def resource_of(pod: Pod, asked: ResourceFieldSelector, container: str, allocatable: Mapping[str, Quantity]) -> str:
    """Return a resource in units of the divisor, rounded up. A missing limit is the node's allocatable."""
    name = asked.container_name or container
    every = (*pod.spec.init_containers, *pod.spec.containers)
    owner = next((each for each in every if each.name == name), None)
    if owner is None:
        raise FieldError(f"container {name} not found")
    kind, _, resource = asked.resource.partition(".")
    if kind not in ("limits", "requests") or not resource:
        raise FieldError(f"unsupported container resource : {asked.resource}")
    resources = owner.resources
    amounts = {} if resources is None else (resources.limits if kind == "limits" else resources.requests)
    amount = amounts.get(resource)
    if amount is None and kind == "limits":
        amount = allocatable.get(resource)
    if amount is None:
        return "0"
    divisor = asked.divisor if asked.divisor is not None and asked.divisor else Quantity(1)
    if resource == "cpu":
        return str(-(-amount.milli_value() // divisor.milli_value()))
    return str(-(-amount.value() // divisor.value()))


def _quoted(text: str) -> str:
    """Quote as Go's strconv.Quote, without the outer quotes."""
    return "".join(_QUOTED.get(each) or (each if each.isprintable() else _escaped(each)) for each in text)


def _escaped(character: str) -> str:
    number = ord(character)
    if number < 0x80:
        return f"\\x{number:02x}"
    return f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"
