"""Strategy of Endpoints."""

from __future__ import annotations

from ostinato.api.validation import field_values, names
from ostinato.api.validation.addresses import ip_warning, parse_ip
from ostinato.api.validation.field_errors import FieldError, Path
from ostinato.server.resources.strategy import Json, Strategy
from ostinato.server.resources.validation.checks import checked, legacy_ip, one_of

_PROTOCOLS = ("SCTP", "TCP", "UDP")
_MANAGED_BY = "endpoints.kubernetes.io/managed-by"
_CONTROLLER = "endpoint-controller"
_ADDRESSES = ("addresses", "notReadyAddresses")


class Endpoints(Strategy):
    allow_create_on_update = True

    def default(self, obj: Json) -> None:
        for subset in obj.get("subsets", ()):
            for port in subset.get("ports", ()):
                port.setdefault("protocol", "TCP")

    def validate(self, obj: Json) -> list[FieldError]:
        return [
            error
            for i, subset in enumerate(obj.get("subsets", ()))
            for error in _validate_subset(subset, Path("subsets").index(i))
        ]

    def validate_update(self, new: Json, old: Json) -> list[FieldError]:
        return [] if new.get("subsets") == old.get("subsets") else self.validate(new)

    def warnings(self, new: Json, old: Json | None) -> list[str]:
        if new["metadata"].get("labels", {}).get(_MANAGED_BY) == _CONTROLLER:
            return []
        found = []
        for i, subset in enumerate(new.get("subsets", ())):
            for field in _ADDRESSES:
                for j, address in enumerate(subset.get(field, ())):
                    text = ip_warning(address.get("ip", ""))
                    if text:
                        found.append(f"{Path('subsets').index(i).child(field).index(j).child('ip')}: {text}")
        return found


def _validate_subset(subset: Json, path: Path) -> list[FieldError]:
    errors: list[FieldError] = []
    if not any(subset.get(field) for field in _ADDRESSES):
        errors.append(FieldError.required(path, "must specify `addresses` or `notReadyAddresses`"))
    for field in _ADDRESSES:
        for i, address in enumerate(subset.get(field, ())):
            errors += _validate_address(address, path.child(field).index(i))
    ports = subset.get("ports", [])
    for i, port in enumerate(ports):
        errors += _validate_port(port, path.child("ports").index(i), named=len(ports) > 1)
    return errors


def _validate_address(address: Json, path: Path) -> list[FieldError]:
    ip = address.get("ip", "")
    errors = legacy_ip(ip, path.child("ip"))
    if address.get("hostname"):
        errors += checked(names.is_dns1123_label, address["hostname"], path.child("hostname"))
    if "nodeName" in address:
        errors += checked(names.name_is_dns_subdomain, address["nodeName"], path.child("nodeName"))
    return errors + validate_endpoint_ip(ip, path.child("ip"))


def _validate_port(port: Json, path: Path, *, named: bool) -> list[FieldError]:
    errors: list[FieldError] = []
    name = port.get("name", "")
    if named and not name:
        errors.append(FieldError.required(path.child("name")))
    elif name:
        errors += checked(names.is_dns1123_label, name, path.child("name"))
    errors += checked(field_values.is_port_number, port.get("port", 0), path.child("port"))
    errors += one_of(port.get("protocol", ""), _PROTOCOLS, path.child("protocol"))
    if "appProtocol" in port:
        errors += checked(names.is_qualified_name, port["appProtocol"], path.child("appProtocol"))
    return errors


def validate_endpoint_ip(text: str, path: Path) -> list[FieldError]:
    """Validate the address of an endpoint: not loopback, link-local, multicast or unspecified."""
    address = parse_ip(text)
    if address is None:
        return [FieldError.invalid(path, text, "must be a valid IP address")]
    number, short = address.number & 0xFFFF_FFFF, address.bits == 32 or address.mapped
    wide = address.number
    problems = (
        (number == 0 if short else wide == 0, f"may not be unspecified ({text})"),
        (number >> 24 == 127 if short else wide == 1, "may not be in the loopback range (127.0.0.0/8, ::1/128)"),
        (
            number >> 16 == 0xA9FE if short else wide >> 118 == 0xFE80 >> 6,
            "may not be in the link-local range (169.254.0.0/16, fe80::/10)",
        ),
        (
            number >> 8 == 0xE00000 if short else wide >> 112 & 0xFF0F == 0xFF02,
            "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)",
        ),
    )
    return [FieldError.invalid(path, text, detail) for wrong, detail in problems if wrong]
