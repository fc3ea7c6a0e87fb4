"""The networking group: policies, ingresses, and the addresses of Services."""

from __future__ import annotations

from typing import ClassVar

from ostinato.api import addresses, labels, names
from ostinato.api.field_errors import FieldError, Path
from ostinato.server.resources.strategy import Json, NameRule, Strategy
from ostinato.server.resources.validation import checked, legacy_cidr, one_of, port_reference, unchanged

_GROUP = "networking.k8s.io"
_SPEC = Path("spec")
_CLASS_ANNOTATION = "kubernetes.io/ingress.class"


class NetworkPolicy(Strategy):
    generation = True

    def default(self, obj: Json) -> None:
        spec = obj.setdefault("spec", {})
        for direction in ("ingress", "egress"):
            for rule in spec.get(direction) or ():
                for port in rule.get("ports") or ():
                    port.setdefault("protocol", "TCP")
        if not spec.get("policyTypes"):
            spec["policyTypes"] = ["Ingress", "Egress"] if spec.get("egress") else ["Ingress"]

    def validate(self, obj: Json) -> list[FieldError]:
        spec = obj.get("spec") or {}
        errors = labels.validate_label_selector(spec.get("podSelector") or {}, _SPEC.child("podSelector"))
        for direction, peers in (("ingress", "from"), ("egress", "to")):
            for i, rule in enumerate(spec.get(direction) or ()):
                path = _SPEC.child(direction).index(i)
                for j, port in enumerate(rule.get("ports") or ()):
                    errors += _policy_port(port, path.child("ports").index(j))
                for j, peer in enumerate(rule.get(peers) or ()):
                    errors += _policy_peer(peer, path.child(peers).index(j))
        kinds, path = spec.get("policyTypes") or (), _SPEC.child("policyTypes")
        if len(kinds) > 2:
            return [*errors, FieldError.invalid(path, kinds, "may not specify more than two policyTypes")]
        return errors + [
            FieldError.not_supported(path.index(i), kind, ["Ingress", "Egress"])
            for i, kind in enumerate(kinds)
            if kind not in ("Ingress", "Egress")
        ]

    def warnings(self, new: Json, old: Json | None) -> list[str]:
        found = []
        spec = new.get("spec") or {}
        for direction, peers in (("ingress", "from"), ("egress", "to")):
            for i, rule in enumerate(spec.get(direction) or ()):
                for j, peer in enumerate(rule.get(peers) or ()):
                    block, path = peer.get("ipBlock") or {}, f"spec.{direction}[{i}].{peers}[{j}].ipBlock"
                    found += _cidr_warnings(block.get("cidr", ""), f"{path}.cidr")
                    for k, part in enumerate(block.get("except") or ()):
                        found += _cidr_warnings(part, f"{path}.except[{k}]")
        return found


def _cidr_warnings(cidr: str, path: str) -> list[str]:
    return [f"{path}: {text}" for text in addresses.cidr_warnings(cidr)] if cidr else []


def _policy_port(port: Json, path: Path) -> list[FieldError]:
    errors = []
    if port.get("protocol") not in ("TCP", "UDP", "SCTP"):
        errors.append(
            FieldError.not_supported(path.child("protocol"), port.get("protocol", ""), ["SCTP", "TCP", "UDP"])
        )
    if "port" in port:
        errors += port_reference(port["port"], path.child("port"))
    return errors


def _policy_peer(peer: Json, path: Path) -> list[FieldError]:
    errors, kinds = [], 0
    for field in ("podSelector", "namespaceSelector"):
        if peer.get(field) is not None:
            kinds += 1
            errors += labels.validate_label_selector(peer[field], path.child(field))
    block, at = peer.get("ipBlock"), path.child("ipBlock")
    if block is not None:
        kinds += 1
        if not block.get("cidr"):
            errors.append(FieldError.required(at.child("cidr")))
        else:
            errors += legacy_cidr(block["cidr"], at.child("cidr"))
            for i, part in enumerate(block.get("except") or ()):
                errors += legacy_cidr(part, at.child("except").index(i))
    if not kinds:
        errors.append(FieldError.required(path, "must specify a peer"))
    elif kinds > 1 and block is not None:
        errors.append(FieldError.forbidden(path, "may not specify both ipBlock and another peer"))
    return errors


class Ingress(Strategy):
    generation = True
    empty_status: ClassVar[Json] = {"loadBalancer": {}}

    def validate(self, obj: Json) -> list[FieldError]:
        spec = obj.get("spec") or {}
        rules = spec.get("rules")
        errors = []
        if not rules and spec.get("defaultBackend") is None:
            errors.append(FieldError.invalid(_SPEC, rules, "either `defaultBackend` or `rules` must be specified"))
        for i, rule in enumerate(rules or ()):
            errors += _ingress_rule(rule, _SPEC.child("rules").index(i))
        if "ingressClassName" in spec:
            errors += checked(names.name_is_dns_subdomain, spec["ingressClassName"], _SPEC.child("ingressClassName"))
        return errors

    def warnings(self, new: Json, old: Json | None) -> list[str]:
        annotations = new["metadata"].get("annotations") or {}
        if old is None and _CLASS_ANNOTATION in annotations and "ingressClassName" not in new.get("spec", {}):
            return [f"annotation \"{_CLASS_ANNOTATION}\" is deprecated, please use 'spec.ingressClassName' instead"]
        return []


def _ingress_rule(rule: Json, path: Path) -> list[FieldError]:
    host, at = rule.get("host", ""), path.child("host")
    errors = []
    if addresses.parse_ip(host) is not None:
        errors.append(FieldError.invalid(at, host, "must be a DNS name, not an IP address"))
    elif host:
        rule_of_hosts = names.is_wildcard_dns1123_subdomain if "*" in host else names.is_dns1123_subdomain
        errors += checked(rule_of_hosts, host, at)
    if rule.get("http") is not None:
        paths = rule["http"].get("paths") or ()
        at = path.child("http", "paths")
        if not paths:
            errors.append(FieldError.required(at))
        for i, one in enumerate(paths):
            errors += _ingress_path(one, at.index(i))
    return errors


def _ingress_path(one: Json, path: Path) -> list[FieldError]:
    kind, text = one.get("pathType"), one.get("path", "")
    if kind is None:
        return [FieldError.required(path.child("pathType"), "pathType must be specified")]
    if kind in ("Exact", "Prefix"):
        if not text.startswith("/"):
            return [FieldError.invalid(path.child("path"), text, "must be an absolute path")]
        return []
    if kind == "ImplementationSpecific":
        if text and not text.startswith("/"):
            return [FieldError.invalid(path.child("path"), text, "must be an absolute path")]
        return []
    return one_of(kind, ["Exact", "ImplementationSpecific", "Prefix"], path.child("pathType"))


class IngressClass(Strategy):
    generation = True

    def default(self, obj: Json) -> None:
        parameters = obj.get("spec", {}).get("parameters")
        if parameters is not None:
            parameters["scope"] = parameters.get("scope") or "Cluster"

    def validate(self, obj: Json) -> list[FieldError]:
        parameters, path = obj.get("spec", {}).get("parameters"), _SPEC.child("parameters")
        if parameters is None:
            return []
        errors = [FieldError.required(path.child(field)) for field in ("kind", "name") if not parameters.get(field)]
        scope = parameters.get("scope", "")
        errors += one_of(scope, ["Cluster", "Namespace"], path.child("scope"))
        if scope == "Namespace" and not parameters.get("namespace"):
            detail = "`parameters.scope` is set to 'Namespace'"
            errors.append(FieldError.required(path.child("namespace"), detail))
        if scope == "Cluster" and "namespace" in parameters:
            detail = "`parameters.scope` is set to 'Cluster'"
            errors.append(FieldError.forbidden(path.child("namespace"), detail))
        return errors

    def validate_update(self, new: Json, old: Json) -> list[FieldError]:
        before, after = (obj.get("spec", {}).get("controller") for obj in (old, new))
        return unchanged(after, before, _SPEC.child("controller")) + self.validate(new)


def _name_is_ip(name: str, prefix: bool = False) -> list[str]:  # noqa: ARG001 - as every name rule
    return addresses.is_ip(name)


class IPAddress(Strategy):
    name_rule: ClassVar[NameRule] = staticmethod(_name_is_ip)

    def validate(self, obj: Json) -> list[FieldError]:
        parent, path = (obj.get("spec") or {}).get("parentRef"), _SPEC.child("parentRef")
        if parent is None:
            return [FieldError.required(path)]
        return [FieldError.required(path.child(field)) for field in ("resource", "name") if not parent.get(field)]

    def validate_update(self, new: Json, old: Json) -> list[FieldError]:
        before, after = ((obj.get("spec") or {}).get("parentRef") for obj in (old, new))
        return self.validate(new) + unchanged(after, before, _SPEC.child("parentRef"))


class ServiceCIDR(Strategy):
    empty_status: ClassVar[Json] = {}
    status_keeps_metadata = True

    def validate(self, obj: Json) -> list[FieldError]:
        cidrs, path = (obj.get("spec") or {}).get("cidrs") or [], _SPEC.child("cidrs")
        if not cidrs:
            return [FieldError.required(path, "at least one CIDR required")]
        if len(cidrs) > 2:
            detail = "may only hold up to 2 values"
            return [FieldError.invalid(path, cidrs, detail)]
        return [error for i, cidr in enumerate(cidrs) for error in checked(addresses.is_cidr, cidr, path.index(i))]

    def validate_update(self, new: Json, old: Json) -> list[FieldError]:
        before, after = ((obj.get("spec") or {}).get("cidrs") for obj in (old, new))
        return self.validate(new) + unchanged(after, before, _SPEC.child("cidrs"))


STRATEGIES: dict[tuple[str, str], Strategy] = {
    (_GROUP, "networkpolicies"): NetworkPolicy(),
    (_GROUP, "ingresses"): Ingress(),
    (_GROUP, "ingressclasses"): IngressClass(),
    (_GROUP, "ipaddresses"): IPAddress(),
    (_GROUP, "servicecidrs"): ServiceCIDR(),
}
