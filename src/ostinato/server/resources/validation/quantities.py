"""Validation of resource names and quantities."""

from __future__ import annotations

from typing import Final

from ostinato.api.quantity import Quantity
from ostinato.api.validation import names
from ostinato.api.validation.field_errors import FieldError, Path
from ostinato.server.resources.validation.checks import checked, not_negative_quantity

_HUGE_PAGES: Final = "hugepages-"
_CONTAINER: Final = frozenset({"cpu", "memory", "ephemeral-storage"})
_COUNTED: Final = frozenset(
    {
        "pods",
        "resourcequotas",
        "services",
        "replicationcontrollers",
        "secrets",
        "configmaps",
        "persistentvolumeclaims",
        "services.nodeports",
        "services.loadbalancers",
    }
)
_QUOTA: Final = (
    _CONTAINER
    | _COUNTED
    | {f"{side}.{name}" for side in ("requests", "limits") for name in _CONTAINER}
    | {"requests.storage"}
)
_STANDARD: Final = _QUOTA | {"storage"}


def is_native(name: str) -> bool:
    """Whether the resource is in the kubernetes.io domain or unqualified."""
    return "/" not in name or "kubernetes.io/" in name


def is_huge_pages(name: str) -> bool:
    return name.startswith(_HUGE_PAGES)


def is_overcommittable(name: str) -> bool:
    return is_native(name) and not is_huge_pages(name)


def is_extended(name: str) -> bool:
    return not is_native(name) and not name.startswith("requests.") and not names.is_qualified_name(f"requests.{name}")


def is_quota_resource(name: str) -> bool:
    return name in _QUOTA or name.startswith((_HUGE_PAGES, "requests." + _HUGE_PAGES))


def is_countable(name: str) -> bool:
    """Whether quantities of the resource must be integers."""
    return name in _COUNTED or is_extended(name)


def validate_amount(name: str, amount: str, path: Path) -> list[FieldError]:
    errors = not_negative_quantity(amount, path)
    if is_countable(name) and Quantity.parse(amount).milli_value() % 1000:
        errors.append(FieldError.invalid(path, amount, "must be an integer"))
    return errors


def validate_name(name: str, path: Path) -> list[FieldError]:
    errors = checked(names.is_qualified_name, name, path)
    if errors:
        return errors
    if "/" not in name and name not in _STANDARD and not is_quota_resource(name):
        return [FieldError.invalid(path, name, "must be a standard resource type or fully qualified")]
    return []


def validate_container_name(name: str, path: Path) -> list[FieldError]:
    errors = validate_name(name, path)
    if "/" not in name:
        if name not in _CONTAINER and not is_huge_pages(name):
            errors.append(FieldError.invalid(path, name, "must be a standard resource for containers"))
    elif not is_native(name) and not is_extended(name):
        errors.append(FieldError.invalid(path, name, "doesn't follow extended resource name standard"))
    return errors


def validate_quota_name(name: str, path: Path) -> list[FieldError]:
    errors = validate_name(name, path)
    if "/" not in name and not is_quota_resource(name):
        errors.append(FieldError.invalid(path, name, "must be a standard resource for quota"))
    return errors


def validate_huge_pages(name: str, amount: str, path: Path) -> list[FieldError]:
    """Validate that a quantity of huge pages is a multiple of the page size in the resource name."""
    if not is_huge_pages(name):
        return []
    try:
        page = Quantity.parse(name.removeprefix(_HUGE_PAGES))
    except ValueError:
        page = Quantity()
    if page.sign > 0 and not page.milli_value() % 1000 and not Quantity.parse(amount).value() % page.value():
        return []
    return [FieldError.invalid(path, amount, f"{amount} is not positive integer multiple of {name}")]
