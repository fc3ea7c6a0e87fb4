"""Rows of Services, what stands behind them, and what leads to them."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from ostinato.server.resources.strategy import Json
from ostinato.server.resources.tables.cells import NONE, Cells, age, joined, label_text, name_of, selector_text, some


def _service(obj: Json, now: datetime) -> list[Any]:
    spec = obj.get("spec") or {}
    addresses = spec.get("clusterIPs") or (NONE,)
    return [
        name_of(obj),
        spec.get("type", ""),
        addresses[0],
        _external_address(obj, spec),
        ",".join(_port(port) for port in spec.get("ports") or ()) or NONE,
        age(obj, now),
        label_text(spec.get("selector")),
    ]


def _port(port: Json) -> str:
    node = f":{port['nodePort']}" if port.get("nodePort") else ""
    return f"{port.get('port', 0)}{node}/{port.get('protocol', '')}"


def _external_address(obj: Json, spec: Json) -> str:
    kind, external = spec.get("type"), spec.get("externalIPs") or []
    if kind in ("ClusterIP", "NodePort"):
        return ",".join(external) or NONE
    if kind == "LoadBalancer":
        return joined([*_balancer_addresses(obj), *external]) or "<pending>"
    if kind == "ExternalName":
        return str(spec.get("externalName", ""))
    return "<unknown>"


def _balancer_addresses(obj: Json) -> list[str]:
    points = ((obj.get("status") or {}).get("loadBalancer") or {}).get("ingress") or ()
    return sorted({point.get("ip") or point.get("hostname") or "" for point in points} - {""})


def _endpoints(obj: Json, now: datetime) -> list[Any]:
    found: list[str] = []
    for subset in obj.get("subsets") or ():
        addresses = [address.get("ip", "") for address in subset.get("addresses") or ()]
        ports = subset.get("ports") or ()
        if not ports:
            found += addresses
        for port in ports:
            found += [_host_port(address, port.get("port", 0)) for address in addresses]
    return [name_of(obj), some(found, otherwise="" if obj.get("subsets") else NONE), age(obj, now)]


def _host_port(address: str, port: int) -> str:
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"


def _endpoint_slice(obj: Json, now: datetime) -> list[Any]:
    ports = [str(port.get("port", port.get("name", "*"))) for port in obj.get("ports") or ()]
    addresses = [address for endpoint in obj.get("endpoints") or () for address in endpoint.get("addresses") or ()]
    return [name_of(obj), obj.get("addressType", ""), some(ports), some(addresses), age(obj, now)]


def _ingress(obj: Json, now: datetime) -> list[Any]:
    spec = obj.get("spec") or {}
    return [
        name_of(obj),
        spec.get("ingressClassName", NONE),
        _hosts(spec.get("rules") or ()),
        joined(_balancer_addresses(obj)),
        "80, 443" if spec.get("tls") else "80",
        age(obj, now),
    ]


def _hosts(rules: Any) -> str:
    """The first three hosts; rules without one are no hosts, but count among the others."""
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
    ("", "services"): _service,
    ("", "endpoints"): _endpoints,
    ("discovery.k8s.io", "endpointslices"): _endpoint_slice,
    ("networking.k8s.io", "ingresses"): _ingress,
    ("networking.k8s.io", "ingressclasses"): _ingress_class,
    ("networking.k8s.io", "networkpolicies"): _network_policy,
    ("networking.k8s.io", "ipaddresses"): _ip_address,
    ("networking.k8s.io", "servicecidrs"): _service_cidr,
}
