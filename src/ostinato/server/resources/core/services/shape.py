"""Linked fields of a Service: fields that follow from each other or from the type.

All functions expect decoded, defaulted specs, and change the new one in place.
"""

from __future__ import annotations

from ostinato.server.resources.strategy import Json


def is_externally_accessible(spec: Json) -> bool:
    kind = spec.get("type")
    return kind in ("LoadBalancer", "NodePort") or (kind == "ClusterIP" and bool(spec.get("externalIPs")))


def is_headless(spec: Json) -> bool:
    return spec.get("clusterIPs") == ["None"]


def needs_cluster_ip(spec: Json) -> bool:
    return spec.get("type") != "ExternalName"


def needs_node_ports(spec: Json) -> bool:
    kind = spec.get("type")
    return kind == "NodePort" or (kind == "LoadBalancer" and spec.get("allocateLoadBalancerNodePorts", True) is True)


def needs_health_check_port(spec: Json) -> bool:
    return spec.get("type") == "LoadBalancer" and spec.get("externalTrafficPolicy") == "Local"


def port_numbers(spec: Json) -> list[int]:
    """The node ports of the Service's ports."""
    return [port["nodePort"] for port in spec.get("ports", ()) if port.get("nodePort")]


def node_ports(spec: Json) -> list[int]:
    """All node ports that a Service uses."""
    numbers = port_numbers(spec)
    if spec.get("healthCheckNodePort"):
        numbers.append(spec["healthCheckNodePort"])
    return numbers


def _same_addresses(new: Json, old: Json) -> bool:
    return all(new.get(field) == old.get(field) for field in ("clusterIP", "clusterIPs"))


def patch_allocated(new: Json, old: Json) -> None:
    """Restore allocated values that the client omits in an update."""
    if needs_cluster_ip(old) and needs_cluster_ip(new):
        if not new.get("clusterIP") and old.get("clusterIP"):
            new["clusterIP"] = old["clusterIP"]
        if not new.get("clusterIPs") and old.get("clusterIPs"):
            new["clusterIPs"] = list(old["clusterIPs"])
    if needs_node_ports(old) and needs_node_ports(new):
        used = set(port_numbers(old)) & set(port_numbers(new))
        by_name = {port.get("name", ""): port.get("nodePort", 0) for port in old.get("ports", ())}
        for port in new.get("ports", ()):
            before = by_name.get(port.get("name", ""), 0)
            if not port.get("nodePort") and before and before not in used:
                port["nodePort"] = before
    if needs_health_check_port(old) and needs_health_check_port(new) and not new.get("healthCheckNodePort"):
        _copy("healthCheckNodePort", new, old)


def normalize_cluster_ips(new: Json, old: Json | None) -> None:
    """Set `clusterIPs` from `clusterIP` for clients that use only the latter."""
    address, addresses = new.get("clusterIP", ""), new.get("clusterIPs", [])
    if old is None:
        if address and not addresses:
            new["clusterIPs"] = [address]
        return
    before = old.get("clusterIP", "")
    if old.get("clusterIPs") and not addresses and address == before:
        new["clusterIPs"] = list(old["clusterIPs"])
    if address != before and new.get("clusterIPs", []) == old.get("clusterIPs", []):
        if address:
            new["clusterIPs"] = [address]
        else:
            new.pop("clusterIPs", None)


def drop_fields_of_other_types(new: Json, old: Json) -> None:
    """On a change of type, drop the values of the old type that the client has not changed."""
    if needs_cluster_ip(old) and not needs_cluster_ip(new):
        if _same_addresses(new, old):
            new.pop("clusterIP", None)
            new.pop("clusterIPs", None)
        for name in ("ipFamilies", "ipFamilyPolicy"):
            _drop_unchanged(name, new, old)
    takes_ports = ("NodePort", "LoadBalancer")
    if (
        old["type"] in takes_ports
        and new["type"] not in takes_ports
        and set(port_numbers(new)) <= set(port_numbers(old))
    ):
        for port in new.get("ports", ()):
            port.pop("nodePort", None)
    if needs_health_check_port(old) and not needs_health_check_port(new):
        _drop_unchanged("healthCheckNodePort", new, old)
    if old["type"] == "LoadBalancer" and new["type"] != "LoadBalancer":
        _drop_unchanged("allocateLoadBalancerNodePorts", new, old)
        _drop_unchanged("loadBalancerClass", new, old)
    if is_externally_accessible(old) and not is_externally_accessible(new):
        _drop_unchanged("externalTrafficPolicy", new, old)


def _drop_unchanged(name: str, new: Json, old: Json) -> None:
    if name in new and new[name] == old.get(name):
        del new[name]


def _copy(name: str, new: Json, old: Json) -> None:
    if name in old:
        new[name] = old[name]
