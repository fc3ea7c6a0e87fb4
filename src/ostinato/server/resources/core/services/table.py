"""Table rows of Services and Endpoints."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from ostinato.server.resources.strategy import Json
from ostinato.server.resources.tables.cells import (
    NONE,
    Cells,
    age,
    joined,
    label_text,
    load_balancer_addresses,
    name_of,
    some,
)


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
        return joined([*load_balancer_addresses(obj), *external]) or "<pending>"
    if kind == "ExternalName":
        return str(spec.get("externalName", ""))
    return "<unknown>"


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


CELLS: dict[tuple[str, str], Cells] = {
    ("", "services"): _service,
    ("", "endpoints"): _endpoints,
}
