"""Strategies of NetworkPolicies, IPAddresses and ServiceCIDRs. Ingresses are in `ingresses`."""

from __future__ import annotations

from typing import ClassVar

from ostinato.api.selectors import labels
from ostinato.api.validation import addresses, field_values, names
from ostinato.api.validation.field_errors import FieldError, Path
from ostinato.server.resources.networking.ingresses import Ingress, IngressClass
from ostinato.server.resources.strategy import Json, NameRule, Strategy
from ostinato.server.resources.validation.checks import (
    IMMUTABLE,
    checked,
    legacy_cidr,
    listed,
    named,
    port_reference,
    unchanged,
)
from ostinato.server.resources.validation.internal_values import as_internal

_GROUP = "networking.k8s.io"
_SPEC = Path("spec")


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
    errors = listed(port.get("protocol", ""), ["TCP", "UDP", "SCTP"], path.child("protocol"))
    number, last = port.get("port"), port.get("endPort")
    if isinstance(number, str) and last is not None:
        detail = "may not be specified when `port` is non-numeric"
        errors.append(FieldError.invalid(path.child("endPort"), last, detail))
    if number is not None:
        errors += port_reference(number, path.child("port"))
    elif last is not None:
        detail = "may not be specified when `port` is not specified"
        errors.append(FieldError.invalid(path.child("endPort"), last, detail))
    if isinstance(number, int) and last is not None:
        if last < number:
            detail = "must be greater than or equal to `port`"
            errors.append(FieldError.invalid(path.child("endPort"), number, detail))
        errors += checked(field_values.is_port_number, last, path.child("endPort"))
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
            errors += _excepted(block, at.child("except"))
    if not kinds:
        errors.append(FieldError.required(path, "must specify a peer"))
    elif kinds > 1 and block is not None:
        errors.append(FieldError.forbidden(path, "may not specify both ipBlock and another peer"))
    return errors


def _excepted(block: Json, path: Path) -> list[FieldError]:
    """Validate that the exceptions of an ipBlock are inside of it."""
    errors, outer = [], addresses.parse_cidr(block["cidr"])
    for i, part in enumerate(block.get("except") or () if outer else ()):
        errors += legacy_cidr(part, path.index(i))
        inner = addresses.parse_cidr(part)
        if inner is not None and outer is not None and not outer.strictly_contains(inner):
            errors.append(FieldError.invalid(path.index(i), part, "must be a strict subset of `cidr`"))
    return errors


def _name_is_ip(name: str, prefix: bool = False) -> list[str]:  # noqa: ARG001 - signature of a name rule
    return addresses.is_ip(name)


class IPAddress(Strategy):
    name_rule: ClassVar[NameRule] = staticmethod(_name_is_ip)

    def validate(self, obj: Json) -> list[FieldError]:
        parent, path = (obj.get("spec") or {}).get("parentRef"), _SPEC.child("parentRef")
        if parent is None:
            return [FieldError.required(path)]
        errors = []
        if parent.get("group"):
            errors += checked(names.is_dns1123_subdomain, parent["group"], path.child("group"))
        for field in ("resource", "name"):
            errors += named(parent.get(field, ""), path.child(field))
        if parent.get("namespace"):
            errors += named(parent["namespace"], path.child("namespace"))
        return errors

    def validate_update(self, new: Json, old: Json) -> list[FieldError]:
        before, after = ((obj.get("spec") or {}).get("parentRef") for obj in (old, new))
        return self.validate(new) + unchanged(after, before, _SPEC.child("parentRef"), "networking.v1.ParentReference")


class ServiceCIDR(Strategy):
    empty_status: ClassVar[Json] = {}
    status_keeps_metadata = True

    def validate(self, obj: Json) -> list[FieldError]:
        cidrs, path = (obj.get("spec") or {}).get("cidrs") or [], _SPEC.child("cidrs")
        if not cidrs:
            return [FieldError.required(path, "at least one CIDR required")]
        if len(cidrs) > 2:
            detail = "may only hold up to 2 values"
            return [FieldError.invalid(path, as_internal("networking.v1.ServiceCIDRSpec", obj["spec"]), detail)]
        errors = [error for i, cidr in enumerate(cidrs) for error in checked(addresses.is_cidr, cidr, path.index(i))]
        networks = [addresses.parse_cidr(cidr) for cidr in cidrs]
        families = {network.address.bits for network in networks if network is not None}
        if len(cidrs) == 2 and None not in networks and len(families) == 1:
            detail = "may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and 2001:db8::/64"
            errors.append(FieldError.invalid(path, cidrs, detail))
        return errors

    def validate_update(self, new: Json, old: Json) -> list[FieldError]:
        before, after = ((obj.get("spec") or {}).get("cidrs") or [] for obj in (old, new))
        path = _SPEC.child("cidrs")
        if len(before) == 1 and len(after) == 2:  # a second IP family may be added
            return unchanged(after[0], before[0], path.index(0)) + self.validate(new)
        if len(before) != len(after):
            return [FieldError.invalid(path, (new.get("spec") or {}).get("cidrs"), IMMUTABLE)]
        pairs = enumerate(zip(after, before, strict=True))
        return [error for i, (cidr, was) in pairs for error in unchanged(cidr, was, path.index(i))]


STRATEGIES: dict[tuple[str, str], Strategy] = {
    (_GROUP, "networkpolicies"): NetworkPolicy(),
    (_GROUP, "ingresses"): Ingress(),
    (_GROUP, "ingressclasses"): IngressClass(),
    (_GROUP, "ipaddresses"): IPAddress(),
    (_GROUP, "servicecidrs"): ServiceCIDR(),
}
