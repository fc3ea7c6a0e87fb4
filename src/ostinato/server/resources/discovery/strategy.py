"""Strategy of EndpointSlices."""

from __future__ import annotations

from typing import Any

from ostinato.api.validation import addresses, names
from ostinato.api.validation.field_errors import FieldError, Path
from ostinato.api.validation.field_values import validate_fully_qualified_domain_name
from ostinato.server.resources.core.services.endpoints import validate_endpoint_ip
from ostinato.server.resources.strategy import Json, Strategy
from ostinato.server.resources.validation.checks import checked, listed, one_of, unchanged

_TYPES = ["FQDN", "IPv4", "IPv6"]
_MOST_HINTS = 8
_MOST_ADDRESSES = 100
_MOST_ENDPOINTS = 1000
_MOST_PORTS = 20_000
_MANAGED_BY = "endpointslice.kubernetes.io/managed-by"
_CONTROLLERS = ("endpointslice-controller.k8s.io", "endpointslicemirroring-controller.k8s.io")


class EndpointSlice(Strategy):
    generation = True

    def default(self, obj: Json) -> None:
        for port in obj.get("ports") or ():
            port.setdefault("name", "")
            port.setdefault("protocol", "TCP")

    def prepare_create(self, obj: Json) -> None:
        _drop_topology(obj)

    def prepare_update(self, new: Json, old: Json) -> None:
        if new.get("endpoints") != old.get("endpoints"):
            _drop_topology(new)

    def desired(self, obj: Json) -> Any:
        return super().desired(obj), obj["metadata"].get("labels")

    def validate(self, obj: Json) -> list[FieldError]:
        return self._slice(obj) + self._endpoints(obj)

    def _slice(self, obj: Json) -> list[FieldError]:
        errors = one_of(obj.get("addressType", ""), _TYPES, Path("addressType"))
        seen: set[str] = set()
        ports = obj.get("ports") or ()
        if len(ports) > _MOST_PORTS:
            return [*errors, FieldError.too_many(Path("ports"), len(ports), _MOST_PORTS)]
        for i, port in enumerate(ports):
            path, name = Path("ports").index(i), port.get("name", "")
            if name:
                errors += checked(names.is_dns1123_label, name, path.child("name"))
            if name in seen:
                errors.append(FieldError.duplicate(path.child("name"), name))
            seen.add(name)
            errors += listed(port["protocol"], ["SCTP", "TCP", "UDP"], path.child("protocol"))
            if port.get("appProtocol") is not None:
                errors += checked(names.is_qualified_name, port["appProtocol"], path.child("appProtocol"))
        return errors

    def _endpoints(self, obj: Json) -> list[FieldError]:
        kind, errors, many = obj.get("addressType"), [], len(obj.get("endpoints") or ())
        if many > _MOST_ENDPOINTS:
            return [FieldError.too_many(Path("endpoints"), many, _MOST_ENDPOINTS)]
        for i, endpoint in enumerate(obj.get("endpoints") or ()):
            path, found = Path("endpoints").index(i).child("addresses"), endpoint.get("addresses") or []
            if not found:
                errors.append(FieldError.required(path, "must contain at least 1 address"))
            if len(found) > _MOST_ADDRESSES:
                errors.append(FieldError.too_many(path, len(found), _MOST_ADDRESSES))
            for j, address in enumerate(found):
                errors += _address(address, kind, path, j)
            at = Path("endpoints").index(i)
            if "nodeName" in endpoint:
                errors += checked(names.name_is_dns_subdomain, endpoint["nodeName"], at.child("nodeName"))
            if "hostname" in endpoint:
                errors += checked(names.is_dns1123_label, endpoint["hostname"], at.child("hostname"))
            errors += _hints(endpoint.get("hints") or {}, at.child("hints"))
        return errors

    def validate_update(self, new: Json, old: Json) -> list[FieldError]:
        errors = self._slice(new)
        if new.get("endpoints") != old.get("endpoints"):
            errors += self._endpoints(new)
        return errors + unchanged(new.get("addressType"), old.get("addressType"), Path("addressType"))

    def warnings(self, new: Json, old: Json | None) -> list[str]:
        found = []
        if old is None and new.get("addressType") == "FQDN":
            found.append("spec.addressType: FQDN endpoints are deprecated")
        if (new["metadata"].get("labels") or {}).get(_MANAGED_BY) in _CONTROLLERS:
            return found
        for i, endpoint in enumerate(new.get("endpoints") or ()):
            for j, address in enumerate(endpoint.get("addresses") or ()):
                warning = addresses.ip_warning(address)
                if warning:
                    found.append(f"endpoints[{i}].addresses[{j}]: {warning}")
        return found


def _hints(hints: Json, path: Path) -> list[FieldError]:
    errors: list[FieldError] = []
    for field, rule in (("forZones", names.is_label_value), ("forNodes", names.name_is_dns_subdomain)):
        found, seen = hints.get(field) or (), set[str]()
        if len(found) > _MOST_HINTS:
            return [*errors, FieldError.too_many(path.child(field), len(found), _MOST_HINTS)]
        for i, hint in enumerate(found):
            name, at = hint.get("name", ""), path.child(field).index(i).child("name")
            if name in seen:
                errors.append(FieldError.duplicate(at, name))
            seen.add(name)
            errors += checked(rule, name, at)
    return errors


def _address(address: str, kind: str | None, path: Path, index: int) -> list[FieldError]:
    if kind == "FQDN":
        return validate_fully_qualified_domain_name(address, path.index(index))
    if kind not in ("IPv4", "IPv6"):
        return []
    rule = addresses.is_legacy_ip if kind == "IPv4" else addresses.is_ip
    faults = checked(rule, address, path.index(index))
    if faults:
        return faults
    if (":" in address) != (kind == "IPv6"):
        faults = [FieldError.invalid(path, address, f"must be an {kind} address")]
    return faults + validate_endpoint_ip(address, path.index(index))


def _drop_topology(obj: Json) -> None:
    """Drop the deprecated topology labels that have fields of their own."""
    for endpoint in obj.get("endpoints") or ():
        endpoint.pop("deprecatedTopology", None)


STRATEGIES: dict[tuple[str, str], Strategy] = {("discovery.k8s.io", "endpointslices"): EndpointSlice()}
