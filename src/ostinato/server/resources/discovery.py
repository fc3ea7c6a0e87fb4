"""The discovery group: EndpointSlices."""

from __future__ import annotations

from typing import Any

from ostinato.api import addresses, names
from ostinato.api.field_errors import FieldError, Path
from ostinato.server.resources.strategy import Json, Strategy
from ostinato.server.resources.validation import checked, one_of, unchanged

_TYPES = ["FQDN", "IPv4", "IPv6"]
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
        for i, port in enumerate(obj.get("ports") or ()):
            path, name = Path("ports").index(i), port.get("name", "")
            if name:
                errors += checked(names.is_dns1123_label, name, path.child("name"))
            if name in seen:
                errors.append(FieldError.duplicate(path.child("name"), name))
            seen.add(name)
            errors += one_of(port.get("protocol", ""), ["SCTP", "TCP", "UDP"], path.child("protocol"))
        return errors

    def _endpoints(self, obj: Json) -> list[FieldError]:
        kind, errors = obj.get("addressType"), []
        for i, endpoint in enumerate(obj.get("endpoints") or ()):
            path, found = Path("endpoints").index(i).child("addresses"), endpoint.get("addresses") or []
            if not found:
                errors.append(FieldError.required(path, "must contain at least 1 address"))
            for j, address in enumerate(found):
                errors += _address(address, kind, path, j)
            if "hostname" in endpoint:
                at = Path("endpoints").index(i).child("hostname")
                errors += checked(names.is_dns1123_label, endpoint["hostname"], at)
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


def _address(address: str, kind: str | None, path: Path, index: int) -> list[FieldError]:
    if kind == "FQDN":
        return checked(names.is_dns1123_subdomain, address, path.index(index))
    if kind not in ("IPv4", "IPv6"):
        return []
    rule = addresses.is_legacy_ip if kind == "IPv4" else addresses.is_ip
    faults = checked(rule, address, path.index(index))
    if not faults and (":" in address) != (kind == "IPv6"):
        faults = [FieldError.invalid(path, address, f"must be an {kind} address")]
    return faults


def _drop_topology(obj: Json) -> None:
    """What endpoints once said of where they are has fields of its own now."""
    for endpoint in obj.get("endpoints") or ():
        endpoint.pop("deprecatedTopology", None)


STRATEGIES: dict[tuple[str, str], Strategy] = {("discovery.k8s.io", "endpointslices"): EndpointSlice()}
