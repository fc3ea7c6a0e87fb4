"""Basic validation functions.

Each validates one value, and returns field errors in kube-apiserver's order.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Collection, Sequence
from typing import Any

import msgspec

from ostinato.api.quantity import Quantity
from ostinato.api.validation import addresses, field_values, names
from ostinato.api.validation.field_errors import FieldError, Path
from ostinato.server.resources.validation.internal_values import as_internal

_NOT_NEGATIVE = "must be greater than or equal to 0"
IMMUTABLE = "field is immutable"


def checked(rule: Callable[[Any], list[str]], value: Any, path: Path) -> list[FieldError]:
    """The field errors of a rule for single values."""
    found = rule(value)
    return [FieldError.invalid(path, value, text) for text in found] if found else []


def one_of(value: str, supported: Sequence[str], path: Path) -> list[FieldError]:
    """Validate that a value is one of an enumeration; "" means required."""
    if value in supported:
        return []
    return [FieldError.not_supported(path, value, supported) if value else FieldError.required(path)]


def listed(value: str, supported: Sequence[str], path: Path) -> list[FieldError]:
    """Validate that a value is one of an enumeration that may contain ""; absence is not an error."""
    return [] if value in supported else [FieldError.not_supported(path, value, supported)]


def named(value: str, path: Path, missing: str = "") -> list[FieldError]:
    """Validate a required name that is used as a path segment."""
    return checked(names.name_is_path_segment, value, path) if value else [FieldError.required(path, missing)]


def not_negative(value: int, path: Path) -> list[FieldError]:
    return [] if value >= 0 else [FieldError.invalid(path, value, _NOT_NEGATIVE)]


def unchanged(new: Any, old: Any, path: Path, model: str = "") -> list[FieldError]:
    """Validate that a value is immutable; `model` is that of a struct, or of a list of structs."""
    return [] if new == old else [FieldError.invalid(path, as_internal(model, new) if model else new, IMMUTABLE)]


def not_negative_quantity(text: str, path: Path) -> list[FieldError]:
    return [] if Quantity.parse(text).sign >= 0 else [FieldError.invalid(path, text, _NOT_NEGATIVE)]


def positive_quantity(text: str, path: Path) -> list[FieldError]:
    return [] if Quantity.parse(text).sign > 0 else [FieldError.invalid(path, text, "must be greater than zero")]


def legacy_ip(ip: str, path: Path, existing: Collection[str] = ()) -> list[FieldError]:
    """Validate an IP address in a field that accepts legacy forms; unchanged values are not validated again."""
    return [] if ip in existing else checked(addresses.is_legacy_ip, ip, path)


def legacy_cidr(cidr: str, path: Path, existing: Collection[str] = ()) -> list[FieldError]:
    return [] if cidr in existing else checked(addresses.is_legacy_cidr, cidr, path)


def port_reference(port: Any, path: Path) -> list[FieldError]:
    """Validate a port by number or name."""
    return checked(field_values.is_port_name if isinstance(port, str) else field_values.is_port_number, port, path)


def no_backsteps(path: str, where: Path) -> list[FieldError]:
    return [FieldError.invalid(where, path, "must not contain '..'")] if ".." in path.split("/") else []


def descending_path(path: str, where: Path) -> list[FieldError]:
    """Validate a path without backsteps."""
    errors = [FieldError.invalid(where, path, "must be a relative path")] if path.startswith("/") else []
    return errors + no_backsteps(path, where)


def file_path(path: str, where: Path) -> list[FieldError]:
    """Validate the path of a file in a volume; names that begin with two dots are reserved."""
    errors = descending_path(path, where)
    if path.startswith("..") and not path.startswith("../"):
        errors.append(FieldError.invalid(where, path, "must not start with '..'"))
    return errors


def file_mode(holder: dict[str, Any], field: str, path: Path) -> list[FieldError]:
    mode = holder.get(field)
    if mode is None or 0 <= mode <= 0o777:
        return []
    detail = "must be a number between 0 and 0777 (octal), both inclusive"
    return [FieldError.invalid(path.child(field), mode, detail)]


_LONGEST_COMPARED = 4000  # maximum lines to compare


def difference(old: Any, new: Any) -> str:
    """The difference of two values as lines of their JSON; "" if they are too large to compare."""
    before, after = _lines(old), _lines(new)
    if max(len(before), len(after)) > _LONGEST_COMPARED:
        return ""
    lines = difflib.unified_diff(before, after, lineterm="")
    return "".join(f"{line}\n" for line in lines if line not in ("--- ", "+++ "))


def _lines(value: Any) -> list[str]:
    return msgspec.json.format(msgspec.json.encode(value), indent=1).decode().split("\n")
