"""Table rows of the networking.k8s.io group."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from ostinato.server.resources.strategy import Json
from ostinato.server.resources.tables.cells import (
    NONE,
    Cells,
    age,
    joined,
    load_balancer_addresses,
    name_of,
    selector_text,
)


def _ingress(obj: Json, now: datetime) -> list[Any]:
    spec = obj.get("spec") or {}
    return [
        name_of(obj),
        spec.get("ingressClassName", NONE),
        _hosts(spec.get("rules") or ()),
        joined(load_balancer_addresses(obj)),
        "80, 443" if spec.get("tls") else "80",
        age(obj, now),
    ]


def _hosts(rules: Any) -> str:
    """The first three hosts; rules without a host are only counted."""
    hosts: list[str] = []
    more = False
    for rule in rules:
        more = more or len(hosts) == 3
        if not more and rule.get("host"):
            hosts.append(rule["host"])
    if not hosts:
        return "*"
    text = ",".join(hosts)
    return f"{text} + {len(rules) - 3} more..." if more else text


def _ingress_class(obj: Json, now: datetime) -> list[Any]:
    spec = obj.get("spec") or {}
    name = name_of(obj)
    if (obj["metadata"].get("annotations") or {}).get("ingressclass.kubernetes.io/is-default-class") == "true":
        name += " (default)"
    parameters, shown = spec.get("parameters"), NONE
    if parameters is not None:
        group = f".{parameters['apiGroup']}" if "apiGroup" in parameters else ""
        shown = f"{parameters.get('kind', '')}{group}/{parameters.get('name', '')}"
    return [name, spec.get("controller", ""), shown, age(obj, now)]


def _network_policy(obj: Json, now: datetime) -> list[Any]:
    return [name_of(obj), selector_text((obj.get("spec") or {}).get("podSelector") or {}), age(obj, now)]


def _ip_address(obj: Json, now: datetime) -> list[Any]:
    parent, shown = (obj.get("spec") or {}).get("parentRef"), NONE
    if parent is not None:
        group = f".{parent['group']}" if parent.get("group") else ""
        place = [f"{parent.get('resource', '')}{group}".lower(), parent.get("namespace"), parent.get("name", "")]
        shown = "/".join(part for part in place if part)
    return [name_of(obj), shown, age(obj, now)]


def _service_cidr(obj: Json, now: datetime) -> list[Any]:
    return [name_of(obj), joined((obj.get("spec") or {}).get("cidrs")), age(obj, now)]


CELLS: dict[tuple[str, str], Cells] = {
    ("networking.k8s.io", "ingresses"): _ingress,
    ("networking.k8s.io", "ingressclasses"): _ingress_class,
    ("networking.k8s.io", "networkpolicies"): _network_policy,
    ("networking.k8s.io", "ipaddresses"): _ip_address,
    ("networking.k8s.io", "servicecidrs"): _service_cidr,
}
