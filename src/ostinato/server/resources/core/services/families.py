"""IP families of a Service."""

from __future__ import annotations

from typing import Final

from ostinato.api.errors import Invalid
from ostinato.api.gvk import GroupKind
from ostinato.api.validation.addresses import parse_ip
from ostinato.api.validation.field_errors import FieldError, Path
from ostinato.server.resources.core.services import validation as service_validation
from ostinato.server.resources.strategy import Json

_KIND: Final = GroupKind("", "Service")
_SPEC: Final = Path("spec")


def refuse(name: str, *errors: FieldError) -> Invalid:
    """The error of an invalid Service."""
    return Invalid.of(_KIND, name, errors)


def default_families(spec: Json, old: Json | None, name: str) -> None:
    """Default the IP families: IPv4 only; Invalid if the Service requests others."""
    if spec["type"] == "ExternalName":
        return
    headless_without_selector = spec.get("clusterIP") == "None" and not spec.get("selector")
    if "ipFamilyPolicy" not in spec:
        before = (old or {}).get("ipFamilyPolicy")
        spec["ipFamilyPolicy"] = before or ("RequireDualStack" if headless_without_selector else "SingleStack")
    errors = service_validation.validate_cluster_ips(spec, old)
    if errors:
        raise refuse(name, *errors)
    errors = _single_stack(spec, old)
    families: list[str] = spec.get("ipFamilies", [])
    for i, address in enumerate(spec.get("clusterIPs", ())):
        if address == "None":
            break
        family = family_of(address)
        if i >= len(families):
            if family == "IPv6":
                path = _SPEC.child("clusterIPs").index(i)
                errors.append(FieldError.invalid(path, spec["clusterIPs"], "IPv6 is not configured on this cluster"))
            else:
                families = [*families, family]
    if errors:
        raise refuse(name, *errors)
    spec["ipFamilies"] = families or ["IPv4"]
    if headless_without_selector:
        if len(spec["ipFamilies"]) < 2 and spec["ipFamilyPolicy"] != "SingleStack":
            spec["ipFamilies"] = [*spec["ipFamilies"], "IPv6" if spec["ipFamilies"] == ["IPv4"] else "IPv4"]
        return
    if spec["ipFamilyPolicy"] == "RequireDualStack":
        detail = "this cluster is not configured for dual-stack services"
        errors.append(FieldError.invalid(_SPEC.child("ipFamilyPolicy"), spec["ipFamilyPolicy"], detail))
    for i, family in enumerate(spec["ipFamilies"]):
        if family != "IPv4":
            path = _SPEC.child("ipFamilies").index(i)
            errors.append(FieldError.invalid(path, family, "not configured on this cluster"))
    if errors:
        raise refuse(name, *errors)


def _single_stack(spec: Json, old: Json | None) -> list[FieldError]:
    errors = []
    path, policy = _SPEC.child("ipFamilyPolicy"), spec["ipFamilyPolicy"]
    if policy != "SingleStack":
        return []
    for field, what in (("clusterIPs", "cluster IPs"), ("ipFamilies", "IP families")):
        values = spec.get(field, [])
        if old is not None and len(values) > 1 and values == old.get(field):
            spec[field] = values[:1]
        elif len(values) == 2:
            detail = f"must be 'RequireDualStack' or 'PreferDualStack' when multiple {what} are specified"
            errors.append(FieldError.invalid(path, policy, detail))
    return errors


def family_of(address: str) -> str:
    parsed = parse_ip(address)
    return "IPv6" if parsed is not None and parsed.bits == 128 and not parsed.mapped else "IPv4"
