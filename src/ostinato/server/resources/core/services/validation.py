"""Validation of Services."""

from __future__ import annotations

from ostinato.api.validation import addresses, field_values, names
from ostinato.api.validation.field_errors import FieldError, Path
from ostinato.server.resources.core.services.endpoints import validate_endpoint_ip
from ostinato.server.resources.core.services.shape import (
    is_externally_accessible,
    is_headless,
    needs_health_check_port,
)
from ostinato.server.resources.strategy import Json
from ostinato.server.resources.validation.checks import checked, legacy_cidr, legacy_ip, listed, one_of, port_reference
from ostinato.server.resources.validation.internal_values import as_internal

_SPEC = Path("spec")
_PROTOCOLS = ("SCTP", "TCP", "UDP")
_TYPES = ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort")
_TYPES_WITH_PORTS = ("ClusterIP", "NodePort", "LoadBalancer")
_LONGEST_AFFINITY = 86400
_TOPOLOGY_HINTS = "service.kubernetes.io/topology-aware-hints"
_TOPOLOGY_MODE = "service.kubernetes.io/topology-mode"
_SOURCE_RANGES = "service.beta.kubernetes.io/load-balancer-source-ranges"
_LOAD_BALANCER_ALONE = "may only be used when `type` is 'LoadBalancer'"


def validate(service: Json, old: Json | None) -> list[FieldError]:
    spec = service["spec"]
    before = None if old is None else old["spec"]
    annotations = service["metadata"].get("annotations", {})
    errors = _validate_topology(annotations)
    ports = spec.get("ports", [])
    if not ports and not is_headless(spec) and spec["type"] != "ExternalName":
        errors.append(FieldError.required(_SPEC.child("ports")))
    errors += _validate_type(spec)
    port_names: set[str] = set()
    for i, port in enumerate(ports):
        errors += _validate_port(port, _SPEC.child("ports").index(i), port_names, named=len(ports) > 1)
    errors += names.validate_labels(spec.get("selector", {}), _SPEC.child("selector"))
    errors += one_of(spec.get("sessionAffinity", ""), ("ClientIP", "None"), _SPEC.child("sessionAffinity"))
    errors += _validate_affinity(spec)
    errors += validate_cluster_ips(spec, before)
    errors += _validate_external_ips(spec, before)
    errors += one_of(spec["type"], _TYPES, _SPEC.child("type"))
    errors += _validate_port_numbers(spec)
    errors += _validate_source_ranges(spec, annotations, before)
    if "allocateLoadBalancerNodePorts" in spec and spec["type"] != "LoadBalancer":
        errors.append(FieldError.forbidden(_SPEC.child("allocateLoadBalancerNodePorts"), _LOAD_BALANCER_ALONE))
    errors += _validate_class(spec, None)
    errors += _validate_external_traffic(spec)
    if spec["type"] in _TYPES_WITH_PORTS or "internalTrafficPolicy" in spec:
        path = _SPEC.child("internalTrafficPolicy")
        policy = spec.get("internalTrafficPolicy")
        errors += [FieldError.required(path)] if policy is None else listed(policy, ("Cluster", "Local"), path)
    if "trafficDistribution" in spec:
        supported = ("PreferClose", "PreferSameZone", "PreferSameNode")
        errors += listed(spec["trafficDistribution"], supported, _SPEC.child("trafficDistribution"))
    return errors


def validate_update(service: Json, old: Json) -> list[FieldError]:
    spec, before = service["spec"], old["spec"]
    errors: list[FieldError] = []
    if "ExternalName" not in (spec["type"], before["type"]):
        errors += _validate_kept_addresses(spec, before)
        errors += _validate_kept_families(spec, before)
    errors += _validate_class(spec, before)
    if (
        needs_health_check_port(spec)
        and needs_health_check_port(before)
        and spec.get("healthCheckNodePort") != before.get("healthCheckNodePort")
    ):
        errors.append(FieldError.forbidden(_SPEC.child("healthCheckNodePort"), "field is immutable"))
    return errors + validate(service, old)


def _validate_topology(annotations: dict[str, str]) -> list[FieldError]:
    hints, mode = annotations.get(_TOPOLOGY_HINTS), annotations.get(_TOPOLOGY_MODE)
    if hints is None or mode is None or hints == mode:
        return []
    path = Path("metadata", "annotations").key(_TOPOLOGY_MODE)
    return [FieldError.invalid(path, mode, f"must match annotations[{_TOPOLOGY_HINTS}] when both are specified")]


def _validate_type(spec: Json) -> list[FieldError]:
    kind = spec["type"]
    if kind in ("LoadBalancer", "NodePort") and is_headless(spec):
        detail = f"may not be set to 'None' for {kind} services"
        return [FieldError.invalid(_SPEC.child("clusterIPs").index(0), spec["clusterIPs"][0], detail)]
    if kind != "ExternalName":
        return []
    errors = [
        FieldError.forbidden(_SPEC.child(field), "may not be set for ExternalName services")
        for field in ("clusterIPs", "ipFamilies", "ipFamilyPolicy")
        if spec.get(field) or (field == "ipFamilyPolicy" and field in spec)
    ]
    path, name = _SPEC.child("externalName"), spec.get("externalName", "").removesuffix(".")
    if not name:
        return [*errors, FieldError.required(path)]
    return errors + checked(names.is_dns1123_subdomain, name, path)


def _validate_port(port: Json, path: Path, taken: set[str], *, named: bool) -> list[FieldError]:
    errors: list[FieldError] = []
    name = port.get("name", "")
    if named and not name:
        errors.append(FieldError.required(path.child("name")))
    elif name:
        errors += checked(names.is_dns1123_label, name, path.child("name"))
        if name in taken:
            errors.append(FieldError.duplicate(path.child("name"), name))
        taken.add(name)
    errors += checked(field_values.is_port_number, port.get("port", 0), path.child("port"))
    errors += one_of(port.get("protocol", ""), _PROTOCOLS, path.child("protocol"))
    errors += port_reference(port.get("targetPort", 0), path.child("targetPort"))
    if "appProtocol" in port:
        errors += checked(names.is_qualified_name, port["appProtocol"], path.child("appProtocol"))
    return errors


def _validate_affinity(spec: Json) -> list[FieldError]:
    path, config = _SPEC.child("sessionAffinityConfig"), spec.get("sessionAffinityConfig")
    if spec.get("sessionAffinity") == "ClientIP":
        seconds = ((config or {}).get("clientIP") or {}).get("timeoutSeconds")
        if seconds is None:
            return [FieldError.required(path, "when session affinity type is ClientIP")]
        if not 0 < seconds <= _LONGEST_AFFINITY:
            where = path.child("clientIP").child("timeoutSeconds")
            return [FieldError.invalid(where, seconds, f"must be greater than 0 and less than {_LONGEST_AFFINITY}")]
    elif spec.get("sessionAffinity") == "None" and config is not None:
        return [FieldError.forbidden(path, "must not be set when session affinity is None")]
    return []


def validate_cluster_ips(spec: Json, old: Json | None) -> list[FieldError]:
    """Validate cluster IPs, IP families and family policy, and their relations."""
    if spec["type"] == "ExternalName":
        return []
    path, ips, families = _SPEC.child("clusterIPs"), spec.get("clusterIPs", []), spec.get("ipFamilies", [])
    errors: list[FieldError] = []
    address = spec.get("clusterIP", "")
    if address and not ips:
        errors.append(FieldError.required(path))
    elif address and ips[0] != address:
        errors.append(FieldError.invalid(path, ips, "first value must match `clusterIP`"))
    elif ips and not address:
        errors.append(FieldError.invalid(path, ips, "must be empty when `clusterIP` is not specified"))
    for i, family in enumerate(families):
        at = _SPEC.child("ipFamilies").index(i)
        errors += listed(family, ("IPv4", "IPv6"), at)
        if family in families[:i]:
            errors.append(FieldError.duplicate(at, family))
    if "ipFamilyPolicy" in spec:
        supported = ("PreferDualStack", "RequireDualStack", "SingleStack")
        errors += listed(spec["ipFamilyPolicy"], supported, _SPEC.child("ipFamilyPolicy"))
    wrong = _validate_addresses(ips, path, (old or {}).get("clusterIPs", ()))
    errors += wrong
    if len(ips) > 2:
        errors.append(FieldError.invalid(path, ips, "may only hold up to 2 values"))
    if wrong:
        return errors
    if len(ips) > 1 and {_is_ipv6(ip) for ip in ips} != {True, False}:
        errors.append(FieldError.invalid(path, ips, "may specify no more than one IP for each IP family"))
    if not is_headless(spec):
        for i, (ip, family) in enumerate(zip(ips, families, strict=False)):
            if (family == "IPv6") != _is_ipv6(ip) and family in ("IPv4", "IPv6"):
                detail = f"expected an {family} value as indicated by `ipFamilies[{i}]`"
                errors.append(FieldError.invalid(path.index(i), ip, detail))
    return errors


def _validate_addresses(ips: list[str], path: Path, existing: list[str]) -> list[FieldError]:
    errors: list[FieldError] = []
    for i, ip in enumerate(ips):
        if i == 0 and ip == "None":
            if len(ips) > 1:
                errors.append(FieldError.invalid(path, ips, "'None' must be the first and only value"))
            continue
        errors += legacy_ip(ip, path.index(i), existing)
    return errors


def _is_ipv6(text: str) -> bool:
    parsed = addresses.parse_ip(text)
    return parsed is not None and parsed.bits == 128 and not parsed.mapped


def _validate_external_ips(spec: Json, old: Json | None) -> list[FieldError]:
    existing = (old or {}).get("externalIPs", ())
    errors: list[FieldError] = []
    for i, ip in enumerate(spec.get("externalIPs", ())):
        at = _SPEC.child("externalIPs").index(i)
        errors += legacy_ip(ip, at, existing) or validate_endpoint_ip(ip, at)
    return errors


def _validate_port_numbers(spec: Json) -> list[FieldError]:
    errors: list[FieldError] = []
    ports = spec.get("ports", [])
    path = _SPEC.child("ports")
    if spec["type"] == "ClusterIP":
        errors += [
            FieldError.forbidden(path.index(i).child("nodePort"), "may not be used when `type` is 'ClusterIP'")
            for i, port in enumerate(ports)
            if port.get("nodePort")
        ]
    taken: set[tuple[str, int]] = set()
    for i, port in enumerate(ports):
        number = port.get("nodePort")
        if number:
            key = (port.get("protocol", ""), number)
            if key in taken:
                errors.append(FieldError.duplicate(path.index(i).child("nodePort"), number))
            taken.add(key)
    taken.clear()
    for i, port in enumerate(ports):
        protocol, number = key = (port.get("protocol", ""), port.get("port", 0))
        if key in taken:
            repeated = as_internal("core.v1.ServicePort", {"protocol": protocol, "port": number})
            errors.append(FieldError.duplicate(path.index(i), repeated))
        taken.add(key)
    return errors


def _validate_source_ranges(spec: Json, annotations: dict[str, str], old: Json | None) -> list[FieldError]:
    ranges = spec.get("loadBalancerSourceRanges", [])
    text = annotations.get(_SOURCE_RANGES)
    if not ranges and text is None:
        return []
    errors: list[FieldError] = []
    path = _SPEC.child("LoadBalancerSourceRanges") if ranges else Path("metadata", "annotations").key(_SOURCE_RANGES)
    if spec["type"] != "LoadBalancer":
        errors.append(FieldError.forbidden(path, _LOAD_BALANCER_ALONE))
    existing = [value.strip() for value in (old or {}).get("loadBalancerSourceRanges", ())]
    if ranges:
        for i, value in enumerate(ranges):
            errors += legacy_cidr(value.strip(), path.index(i), existing)
    elif text is not None and text.strip():
        for value in text.split(","):
            errors += legacy_cidr(value.strip(), path, ())
    return errors


def _validate_class(spec: Json, old: Json | None) -> list[FieldError]:
    path, name = _SPEC.child("loadBalancerClass"), spec.get("loadBalancerClass")
    errors: list[FieldError] = []
    balanced = spec["type"] == "LoadBalancer"
    if old is not None and balanced and old["type"] == "LoadBalancer" and old.get("loadBalancerClass") != name:
        errors.append(FieldError.invalid(path, name, "may not change once set"))
    if name is not None:
        if balanced:
            errors += checked(names.is_qualified_name, name, path)
        else:
            errors.append(FieldError.forbidden(path, _LOAD_BALANCER_ALONE))
    return errors


def _validate_external_traffic(spec: Json) -> list[FieldError]:
    errors: list[FieldError] = []
    path, policy = _SPEC.child("externalTrafficPolicy"), spec.get("externalTrafficPolicy", "")
    if is_externally_accessible(spec):
        errors += one_of(policy, ("Cluster", "Local"), path)
    elif policy:
        errors.append(FieldError.invalid(path, policy, "may only be set for externally-accessible services"))
    path, port = _SPEC.child("healthCheckNodePort"), spec.get("healthCheckNodePort", 0)
    if needs_health_check_port(spec):
        if not port:
            errors.append(FieldError.required(path))
        else:
            errors += checked(field_values.is_port_number, port, path)
    elif port:
        detail = "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'"
        errors.append(FieldError.invalid(path, port, detail))
    return errors


def _validate_kept_addresses(spec: Json, old: Json) -> list[FieldError]:
    if is_headless(spec) and is_headless(old):
        return []
    ips, before = spec.get("clusterIPs", []), old.get("clusterIPs", [])
    path = _SPEC.child("clusterIPs")
    if len(ips) == len(before):
        return [
            FieldError.invalid(path.index(i), ips, "may not change once set")
            for i, (new, ip) in enumerate(zip(ips, before, strict=True))
            if new != ip
        ]
    errors: list[FieldError] = []
    if not ips:
        errors.append(FieldError.invalid(path.index(0), ips or None, "primary clusterIP can not be unset"))
    if before and ips and ips[0] != before[0]:
        errors.append(FieldError.invalid(path.index(0), ips, "may not change once set"))
    if len(before) > len(ips) == 1 and spec.get("ipFamilyPolicy") != "SingleStack":
        detail = "must be set to 'SingleStack' when releasing the secondary clusterIP"
        errors.append(FieldError.invalid(_SPEC.child("ipFamilyPolicy"), spec.get("ipFamilyPolicy"), detail))
    return errors


def _validate_kept_families(spec: Json, old: Json) -> list[FieldError]:
    if is_headless(spec) or is_headless(old):
        return []
    families, before = spec.get("ipFamilies", []), old.get("ipFamilies", [])
    path = _SPEC.child("ipFamilies").index(0)
    if len(families) == len(before):
        return [
            FieldError.invalid(path, families, "may not change once set")
            for new, family in zip(families, before, strict=True)
            if new != family
        ]
    errors: list[FieldError] = []
    if len(before) > len(families) and not spec.get("clusterIPs"):
        errors.append(FieldError.invalid(path, families or None, "primary ipFamily can not be unset"))
    if before and families and families[0] != before[0]:
        errors.append(FieldError.invalid(path, spec.get("clusterIPs"), "may not change once set"))
    if len(before) > len(families) == 1 and spec.get("ipFamilyPolicy") != "SingleStack":
        detail = "must be set to 'SingleStack' when releasing the secondary ipFamily"
        errors.append(FieldError.invalid(_SPEC.child("ipFamilyPolicy"), spec.get("ipFamilyPolicy"), detail))
    return errors


def validate_load_balancer(service: Json, old: Json) -> list[FieldError]:
    """Validate `status.loadBalancer`."""
    path = Path("status", "loadBalancer", "ingress")
    ingresses = _ingresses(service)
    if service["spec"]["type"] != "LoadBalancer" and ingresses:
        return [FieldError.forbidden(path, "may only be used when `spec.type` is 'LoadBalancer'")]
    existing = [ingress["ip"] for ingress in _ingresses(old) if ingress.get("ip")]
    errors: list[FieldError] = []
    for i, ingress in enumerate(ingresses):
        at = path.index(i)
        ip, mode, host = ingress.get("ip", ""), ingress.get("ipMode"), ingress.get("hostname", "")
        if ip:
            errors += legacy_ip(ip, at.child("ip"), existing)
        if mode is None and ip:
            errors.append(FieldError.required(at.child("ipMode"), "must be specified when `ip` is set"))
        elif mode is not None and not ip:
            errors.append(FieldError.forbidden(at.child("ipMode"), "may not be specified when `ip` is not set"))
        elif mode is not None:
            errors += listed(mode, ("Proxy", "VIP"), at.child("ipMode"))
        if host:
            errors += checked(names.is_dns1123_subdomain, host, at.child("hostname"))
            if addresses.parse_ip(host) is not None:
                detail = "must be a DNS name, not an IP address"
                errors.append(FieldError.invalid(at.child("hostname"), host, detail))
    return errors


def _ingresses(service: Json) -> list[Json]:
    found: list[Json] = service.get("status", {}).get("loadBalancer", {}).get("ingress", [])
    return found
