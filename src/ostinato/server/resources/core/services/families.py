"""IP families of a Service."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ostinato.api.errors import Invalid
from ostinato.api.gvk import GroupKind
from ostinato.api.validation.addresses import parse_ip
from ostinato.api.validation.field_errors import FieldError, Path
from ostinato.server.resources.core.services import validation as service_validation
from ostinato.server.resources.strategy import Json

_KIND: Final = GroupKind("", "Service")
_SPEC: Final = Path("spec")
VERSIONS: Final = {"IPv4": 4, "IPv6": 6}


def refuse(name: str, *errors: FieldError) -> Invalid:
    """The error of an invalid Service."""
    return Invalid.of(_KIND, name, errors)


def default_families(spec: Json, old: Json | None, name: str, configured: Sequence[str]) -> None:
    """Default policy and families of a Service; Invalid if it requests what the cluster does not have.

    `configured`: the families of the cluster, its default one first.
    """
    if spec["type"] == "ExternalName" or _keeps_preference(spec, old):
        return
    selects_nothing = spec.get("clusterIP") == "None" and not spec.get("selector")
    if "ipFamilyPolicy" not in spec:
        before = (old or {}).get("ipFamilyPolicy")
        spec["ipFamilyPolicy"] = before or ("RequireDualStack" if selects_nothing else "SingleStack")
    errors = service_validation.validate_cluster_ips(spec, old)
    if errors:
        raise refuse(name, *errors)
    errors = [*_released(spec, old), *_single_stack(spec), *_infer(spec, configured)]
    if errors:
        raise refuse(name, *errors)
    if not selects_nothing:  # with a selector, endpoints are of families that the cluster has
        errors = _unavailable(spec, configured)
        if errors:
            raise refuse(name, *errors)
    families = spec.get("ipFamilies") or [configured[0]]
    has_both = selects_nothing or len(configured) == 2
    if len(families) == 1 and spec["ipFamilyPolicy"] != "SingleStack" and has_both:
        families = [*families, "IPv6" if families == ["IPv4"] else "IPv4"]
    spec["ipFamilies"] = families


def _keeps_preference(spec: Json, old: Json | None) -> bool:
    """Whether a Service that prefers both families keeps what it has, whatever the cluster has by now."""
    return (
        old is not None
        and old["type"] == spec["type"]
        and spec.get("ipFamilyPolicy") == "PreferDualStack" == old.get("ipFamilyPolicy", "PreferDualStack")
        and all(spec.get(field, []) == old.get(field, []) for field in ("clusterIPs", "ipFamilies"))
    )


def _released(spec: Json, old: Json | None) -> list[FieldError]:
    """Drop the second values of a Service that becomes single-stack; otherwise they may not be dropped."""
    errors = []
    path, policy = _SPEC.child("ipFamilyPolicy"), spec["ipFamilyPolicy"]
    for field, what in (("clusterIPs", "cluster IP"), ("ipFamilies", "IP family")):
        values, before = spec.get(field, []), (old or {}).get(field, [])
        if policy == "SingleStack" and len(values) > 1 and values == before:
            spec[field] = values[:1]
        elif policy != "SingleStack" and len(before) == 2 and len(values) == 1:
            detail = f"must be 'SingleStack' to release the secondary {what}"
            errors.append(FieldError.invalid(path, policy, detail))
    return errors


def _single_stack(spec: Json) -> list[FieldError]:
    path, policy = _SPEC.child("ipFamilyPolicy"), spec["ipFamilyPolicy"]
    return [
        FieldError.invalid(
            path, policy, f"must be 'RequireDualStack' or 'PreferDualStack' when multiple {what} are specified"
        )
        for field, what in (("clusterIPs", "cluster IPs"), ("ipFamilies", "IP families"))
        if policy == "SingleStack" and len(spec.get(field, ())) == 2
    ]


def _infer(spec: Json, configured: Sequence[str]) -> list[FieldError]:
    """Add the families of given addresses."""
    errors, families = [], list(spec.get("ipFamilies", ()))
    for i, address in enumerate(spec.get("clusterIPs", ())):
        if address == "None":
            break
        if i < len(families):
            continue
        family = family_of(address)
        if family in configured:
            families.append(family)
        else:
            path = _SPEC.child("clusterIPs").index(i)
            errors.append(FieldError.invalid(path, spec["clusterIPs"], f"{family} is not configured on this cluster"))
    if families:
        spec["ipFamilies"] = families
    return errors


def _unavailable(spec: Json, configured: Sequence[str]) -> list[FieldError]:
    errors = []
    if spec["ipFamilyPolicy"] == "RequireDualStack" and len(configured) < 2:
        detail = "this cluster is not configured for dual-stack services"
        errors.append(FieldError.invalid(_SPEC.child("ipFamilyPolicy"), spec["ipFamilyPolicy"], detail))
    for i, family in enumerate(spec.get("ipFamilies", ())):
        if family not in configured:
            path = _SPEC.child("ipFamilies").index(i)
            errors.append(FieldError.invalid(path, family, "not configured on this cluster"))
    return errors


def family_of(address: str) -> str:
    parsed = parse_ip(address)
    return "IPv6" if parsed is not None and parsed.bits == 128 and not parsed.mapped else "IPv4"
