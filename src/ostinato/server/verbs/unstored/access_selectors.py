"""Field and label selectors of access reviews: validation, and requirements that cannot be parsed.

Requirements that cannot be parsed are ignored, so the review covers more objects; the status reports that.
"""

from __future__ import annotations

from typing import Any, Final

from ostinato.api.selectors import fields, labels
from ostinato.api.validation import names
from ostinato.api.validation.field_errors import FieldError, Path
from ostinato.server.access import attributes as asked
from ostinato.server.resources.strategy import Json

_OF_VALUES: Final = ("In", "NotIn")
_OF_PRESENCE: Final = ("Exists", "DoesNotExist")
_LABEL_OPERATORS: Final = {
    "In": labels.Operator.IN,
    "NotIn": labels.Operator.NOT_IN,
    "Exists": labels.Operator.EXISTS,
    "DoesNotExist": labels.Operator.DOES_NOT_EXIST,
}
_WITH_VALUES, _WITHOUT = (
    "must be specified when `operator` is 'In' or 'NotIn'",
    "may not be specified when `operator` is 'Exists' or 'DoesNotExist'",
)


def selector_errors(attributes: Json | None) -> list[FieldError]:
    """Validate the selectors of resourceAttributes."""
    errors: list[FieldError] = []
    for name in ("fieldSelector", "labelSelector"):
        selector, path = (attributes or {}).get(name), Path("spec.resourceAttributes", name)
        if selector is None:
            continue
        raw, requirements = selector.get("rawSelector", ""), selector.get("requirements") or ()
        if raw and requirements:
            detail = "may not specified at the same time as requirements"
            errors.append(FieldError.invalid(path.child("rawSelector"), raw, detail))
        if not raw and not requirements:
            detail = f"when {path} is specified, requirements or rawSelector is required"
            errors.append(FieldError.required(path.child("requirements"), detail))
        check = _field_errors if name == "fieldSelector" else _label_errors
        for i, requirement in enumerate(requirements):
            errors += check(requirement, path.child("requirements").index(i))
    return errors


def _field_errors(requirement: Json, path: Path) -> list[FieldError]:
    missing = [] if requirement.get("key") else [FieldError.required(path.child("key"), "must be specified")]
    return missing + _value_errors(requirement, path)


def _label_errors(requirement: Json, path: Path) -> list[FieldError]:
    errors, key = _value_errors(requirement, path), requirement.get("key", "")
    errors += (FieldError.invalid(path.child("key"), key, fault) for fault in names.is_qualified_name(key))
    for i, value in enumerate(requirement.get("values") or ()):
        where = path.child("values").index(i)
        errors += (FieldError.invalid(where, value, fault) for fault in names.is_label_value(value))
    return errors


def _value_errors(requirement: Json, path: Path) -> list[FieldError]:
    operator, values = requirement.get("operator"), requirement.get("values")
    if operator in _OF_VALUES and not values:
        return [FieldError.required(path.child("values"), _WITH_VALUES)]
    if operator in _OF_PRESENCE and values:
        return [FieldError.forbidden(path.child("values"), _WITHOUT)]
    return []


def ignored(attributes: Json | None) -> str:
    """The requirements that were ignored, as a message; "" if there are none."""
    messages: list[str] = []
    for name, parse, operators in (
        ("fieldSelector", fields.parse, _OF_VALUES),
        ("labelSelector", labels.parse, _OF_VALUES + _OF_PRESENCE),
    ):
        selector = (attributes or {}).get(name) or {}
        understood = [_is_understood(each, name, operators) for each in selector.get("requirements") or ()]
        if not _parses(parse, selector.get("rawSelector", "")) or False in understood:
            part = "partially ignored" if True in understood else "ignored"
            messages.append(f"spec.resourceAttributes.{name} {part} due to parse error")
    return "; ".join(messages)


def field_terms(selector: Json | None) -> tuple[fields.Term, ...]:
    """The requirements of a `fieldSelector` that can be parsed."""
    if not selector:
        return ()
    if not selector.get("requirements"):
        return asked.field_terms(selector.get("rawSelector", ""))
    return tuple(
        fields.Term(each["key"], each["values"][0], negated=each["operator"] == "NotIn")
        for each in selector["requirements"]
        if _is_understood(each, "fieldSelector", _OF_VALUES)
    )


def label_requirements(selector: Json | None) -> tuple[labels.Requirement, ...]:
    """The requirements of a `labelSelector` that can be parsed."""
    if not selector:
        return ()
    if not selector.get("requirements"):
        return asked.label_requirements(selector.get("rawSelector", ""))
    return tuple(
        labels.Requirement(each["key"], _LABEL_OPERATORS[each["operator"]], tuple(each.get("values") or ()))
        for each in selector["requirements"]
        if _is_understood(each, "labelSelector", _OF_VALUES + _OF_PRESENCE)
    )


def _is_understood(requirement: Json, name: str, operators: tuple[str, ...]) -> bool:
    one = name == "labelSelector" or len(requirement.get("values") or ()) == 1
    return one and requirement.get("operator") in operators


def _parses(parse: Any, text: str) -> bool:
    try:
        parse(text)
    except ValueError:
        return False
    return True
