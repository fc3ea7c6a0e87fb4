"""Rules of kinds that create Pods from a template: selectors, templates, counts."""

from __future__ import annotations

from typing import Any

from ostinato.api import intstr
from ostinato.api.selectors import labels
from ostinato.api.validation import field_values, names
from ostinato.api.validation.field_errors import FieldError, Path
from ostinato.server.resources.strategy import Json
from ostinato.server.resources.validation.checks import not_negative
from ostinato.server.resources.validation.internal_values import as_internal

SPEC = Path("spec")
STATUS = Path("status")
TEMPLATE = SPEC.child("template")

_SURPRISING = (
    "metadata.name: this is used in Pod names and hostnames, which can result in surprising behavior; "
    "a DNS label is recommended: "
)


def name_warnings(obj: Json, old: Json | None) -> list[str]:
    """Warn on creation about a name that Pods cannot be named after."""
    faults = names.is_dns1123_label(obj["metadata"].get("name", "")) if old is None else []
    return [f"{_SURPRISING}[{' '.join(faults)}]"] if faults else []


def counts(holder: Json, path: Path, *fields: str) -> list[FieldError]:
    """Validate that counts are not negative, if set."""
    return [error for field in fields if field in holder for error in not_negative(holder[field], path.child(field))]


def no_more_than(status: Json, most: str, fields: tuple[str, ...], detail: str = "") -> list[FieldError]:
    """Validate that counts of a status do not exceed the one that they are part of."""
    limit = status.get(most, 0)
    detail = detail or f"cannot be greater than status.{most}"
    return [
        FieldError.invalid(STATUS.child(field), status.get(field, 0), detail)
        for field in fields
        if status.get(field, 0) > limit
    ]


def never_less(new: Json, old: Json, field: str) -> list[FieldError]:
    """Validate that a count of the status does not decrease."""
    before, after = (part.get("status", {}).get(field) for part in (old, new))
    if before is None or (after is not None and after >= before):
        return []
    return [FieldError.invalid(STATUS.child(field), after or 0, "cannot be decremented")]


def selector_errors(spec: Json, kind: str) -> list[FieldError]:
    """Validate a selector: required, well-formed and not empty."""
    path, selector = SPEC.child("selector"), spec.get("selector")
    if selector is None:
        return [FieldError.required(path)]
    errors = labels.validate_label_selector(selector, path)
    if not selector.get("matchLabels") and not selector.get("matchExpressions"):
        errors.append(
            FieldError.invalid(
                path, as_internal("meta.v1.LabelSelector", selector), f"empty selector is invalid for {kind}"
            )
        )
    return errors


def parsed_selector(selector: Json | None) -> labels.Selector | None:
    """The selector; None if it is invalid."""
    try:
        return labels.from_label_selector(selector)
    except ValueError:
        return None


def template_labels(template: Json) -> Any:
    return (template.get("metadata") or {}).get("labels")


def mismatch(selector: labels.Selector, template: Json) -> list[FieldError]:
    """Validate that the selector matches the template's labels."""
    found = template_labels(template)
    if selector.matches(found or {}):
        return []
    return [
        FieldError.invalid(TEMPLATE.child("metadata", "labels"), found, "`selector` does not match template `labels`")
    ]


def always_running(template: Json, kind: str) -> list[FieldError]:
    """Validate that Pods of a workload have restartPolicy Always and no activeDeadlineSeconds."""
    spec, path = template.get("spec") or {}, TEMPLATE.child("spec")
    errors = []
    if spec.get("restartPolicy") != "Always":
        errors.append(FieldError.not_supported(path.child("restartPolicy"), spec.get("restartPolicy", ""), ["Always"]))
    if "activeDeadlineSeconds" in spec:
        detail = f"activeDeadlineSeconds in {kind} is not Supported"
        errors.append(FieldError.forbidden(path.child("activeDeadlineSeconds"), detail))
    return errors


def count_or_percent(value: intstr.IntOrString, path: Path) -> list[FieldError]:
    """Validate a number of Pods or a percentage."""
    if isinstance(value, str):
        return [FieldError.invalid(path, value, text) for text in field_values.is_percent(value)]
    return not_negative(value, path)


def at_most_all(value: intstr.IntOrString, path: Path) -> list[FieldError]:
    if isinstance(value, str) and not field_values.is_percent(value) and int(value[:-1]) > 100:
        return [FieldError.invalid(path, value, "must not be greater than 100%")]
    return []


def number_in(value: intstr.IntOrString | None) -> int:
    """The number or percentage in a value; 0 if it is neither."""
    if isinstance(value, str):
        digits = value.removesuffix("%")
        return int(digits) if digits.isascii() and digits.isdigit() else 0
    return value or 0
