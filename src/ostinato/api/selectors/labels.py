"""Label selectors: parse, print and match.

    parse("app=web,tier in (front,edge),!canary").matches({"app": "web", "tier": "edge"})

- A selector is the conjunction of its requirements; without requirements it matches all objects.
- `!=` and `notin` also match objects without the label; `>` and `<` require it to be an integer.
- `str()` returns the string form, sorted, so that equal selectors have equal strings. That of `nothing()` is empty,
  which parses as `everything()`: check `selects_nothing` before sending a selector.
- `LabelSelector` (`ostinato.api.meta`), `{"matchLabels": ..., "matchExpressions": ...}`, has the operators In, NotIn,
  Exists and DoesNotExist; null matches no objects and `{}` all.
- Selectors and requirements are immutable.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from operator import attrgetter
from typing import Any, Final

import msgspec

from ostinato.api.selectors import label_parser
from ostinato.api.selectors.label_parser import Operator, SelectorError
from ostinato.api.text.go_format import quote
from ostinato.api.validation.field_errors import FieldError, Path, joined
from ostinato.api.validation.names import is_label_key, is_label_value, validate_labels

__all__ = [
    "Operator",
    "Requirement",
    "Selector",
    "SelectorError",
    "everything",
    "from_label_selector",
    "from_set",
    "nothing",
    "parse",
    "validate_label_selector",
]

_EXISTS: Final = Operator.EXISTS
_DOES_NOT_EXIST: Final = Operator.DOES_NOT_EXIST
# Tuples compare by identity first; hashing an enum member takes longer than a match.
_POSITIVE: Final = (Operator.EQUALS, Operator.IN, Operator.DOUBLE_EQUALS)
_NEGATIVE: Final = (Operator.NOT_IN, Operator.NOT_EQUALS)
_STRUCT_OPERATORS: Final = {
    "In": Operator.IN,
    "NotIn": Operator.NOT_IN,
    "Exists": Operator.EXISTS,
    "DoesNotExist": Operator.DOES_NOT_EXIST,
}
_by_key = attrgetter("key")
_INTEGER = re.compile(r"[+-]?0*([0-9]{1,19})")


class Requirement(msgspec.Struct, frozen=True, gc=False):
    """A condition on a label. The constructor does not validate; `checked` does."""

    key: str
    operator: Operator
    values: tuple[str, ...] = ()

    @classmethod
    def checked(cls, key: str, operator: Operator, values: Sequence[str] = ()) -> Requirement:
        if errors := _requirement_errors(key, operator, values):
            raise SelectorError(joined(errors))
        return cls(key, operator, tuple(values))

    def matches(self, labels: Mapping[str, str]) -> bool:
        operator = self.operator
        if operator is _EXISTS:
            return self.key in labels
        if operator is _DOES_NOT_EXIST:
            return self.key not in labels
        if operator in _POSITIVE:
            return labels.get(self.key) in self.values
        if operator in _NEGATIVE:
            return labels.get(self.key) not in self.values
        actual, bound = _integer(labels.get(self.key)), _integer(self.values[0])
        if actual is None or bound is None:
            return False
        return actual > bound if operator is Operator.GREATER_THAN else actual < bound

    def __str__(self) -> str:
        match self.operator:
            case Operator.EXISTS:
                return self.key
            case Operator.DOES_NOT_EXIST:
                return f"!{self.key}"
            case Operator.IN | Operator.NOT_IN:
                return f"{self.key} {self.operator} ({','.join(sorted(self.values))})"
            case Operator.GREATER_THAN:
                return f"{self.key}>{self.values[0]}"
            case Operator.LESS_THAN:
                return f"{self.key}<{self.values[0]}"
            case _:
                return f"{self.key}{self.operator}{self.values[0]}"


class Selector:
    __slots__ = ("_exact", "_others", "_requirements")

    _requirements: tuple[Requirement, ...]  # sorted by key
    # The requirements for matching: most are equality with one value, which needs no call.
    _exact: tuple[tuple[str, str], ...]
    _others: tuple[Requirement, ...]

    def __init__(self, requirements: Iterable[Requirement] = ()) -> None:
        self._requirements = tuple(sorted(requirements, key=_by_key))
        exact: list[tuple[str, str]] = []
        others: list[Requirement] = []
        for requirement in self._requirements:
            if requirement.operator in _POSITIVE and len(requirement.values) == 1:
                exact.append((requirement.key, requirement.values[0]))
            else:
                others.append(requirement)
        self._exact = tuple(exact)
        self._others = tuple(others)

    def matches(self, labels: Mapping[str, str]) -> bool:
        for key, value in self._exact:
            if labels.get(key) != value:
                return False
        for requirement in self._others:  # noqa: SIM110 - a generator takes longer than the matching
            if not requirement.matches(labels):
                return False
        return True

    @property
    def requirements(self) -> tuple[Requirement, ...]:
        return self._requirements

    @property
    def empty(self) -> bool:
        """Whether it has no requirements: it matches all objects."""
        return not self._requirements

    @property
    def selects_nothing(self) -> bool:
        """Whether it is `nothing()`. Contradictory requirements are not detected."""
        return False

    def requires_exact_match(self, key: str) -> str | None:
        """Return the value that the label must have, if its first requirement allows only one."""
        for requirement in self._requirements:
            if requirement.key == key:
                exact = requirement.operator in _POSITIVE and len(requirement.values) == 1
                return requirement.values[0] if exact else None
        return None

    def with_requirements(self, *requirements: Requirement) -> Selector:
        """Return a selector with further requirements."""
        return Selector((*self._requirements, *requirements))

    def __str__(self) -> str:
        return ",".join(map(str, self._requirements))

    def __repr__(self) -> str:
        return f"labels.parse({str(self)!r})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Selector):
            return NotImplemented
        return self._requirements == other._requirements and self.selects_nothing == other.selects_nothing

    def __hash__(self) -> int:
        return hash(self._requirements)


class _Nothing(Selector):
    __slots__ = ()

    def matches(self, labels: Mapping[str, str]) -> bool:  # noqa: ARG002
        return False

    @property
    def empty(self) -> bool:
        return False

    @property
    def selects_nothing(self) -> bool:
        return True

    def with_requirements(self, *requirements: Requirement) -> Selector:  # noqa: ARG002
        return self

    def __repr__(self) -> str:
        return "labels.nothing()"


_EVERYTHING: Final = Selector()
_NOTHING: Final = _Nothing()


def everything() -> Selector:
    return _EVERYTHING


def nothing() -> Selector:
    return _NOTHING


def parse(text: str) -> Selector:
    """Parse the string form, as in `?labelSelector=` and `kubectl get -l`. Raises SelectorError."""
    if not text:
        return _EVERYTHING
    requirements: list[Requirement] = []
    for key, operator, values in label_parser.parse(text):
        try:
            requirements.append(Requirement.checked(key, operator, values))
        except SelectorError as error:
            raise SelectorError(f"unable to parse requirement: {error}") from None
    return Selector(requirements)


def from_set(labels: Mapping[str, str]) -> Selector:
    """Return a selector for objects with all of these labels, which are not validated."""
    return Selector(Requirement(key, Operator.EQUALS, (value,)) for key, value in labels.items())


def from_label_selector(selector: Mapping[str, Any] | None) -> Selector:
    """Convert a `LabelSelector` in JSON form. Raises SelectorError."""
    if selector is None:
        return _NOTHING
    match_labels = _field(selector, "matchLabels", Mapping)
    match_expressions = _field(selector, "matchExpressions", list)
    if not match_labels and not match_expressions:
        return _EVERYTHING
    requirements = [
        Requirement.checked(key, Operator.EQUALS, _strings([value])) for key, value in (match_labels or {}).items()
    ]
    for expression in match_expressions or ():
        name = _field(expression, "operator", str) or ""
        operator = _STRUCT_OPERATORS.get(name)
        if operator is None:
            raise SelectorError(f"{quote(name)} is not a valid label selector operator")
        values = _strings(_field(expression, "values", list) or ())
        requirements.append(Requirement.checked(_field(expression, "key", str) or "", operator, values))
    return Selector(requirements)


def validate_label_selector(
    selector: Mapping[str, Any] | None, path: Path, *, allow_invalid_values: bool = False
) -> list[FieldError]:
    """Validate a `LabelSelector` in JSON form, of the types in its schema.

    `allow_invalid_values` accepts invalid label values, for objects that are older than the rule.
    """
    if selector is None:
        return []
    errors = validate_labels(selector.get("matchLabels") or {}, path.child("matchLabels"))
    expressions = path.child("matchExpressions")
    for index, expression in enumerate(selector.get("matchExpressions") or ()):
        errors += _expression_errors(expression, expressions.index(index), allow_invalid_values)
    return errors


def _expression_errors(expression: Mapping[str, Any], path: Path, allow_invalid_values: bool) -> list[FieldError]:
    errors: list[FieldError] = []
    key, operator = expression.get("key") or "", expression.get("operator") or ""
    values = expression.get("values") or ()
    match operator:
        case "In" | "NotIn":
            if not values:
                detail = "must be specified when `operator` is 'In' or 'NotIn'"
                errors.append(FieldError.required(path.child("values"), detail))
        case "Exists" | "DoesNotExist":
            if values:
                detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
                errors.append(FieldError.forbidden(path.child("values"), detail))
        case _:
            errors.append(FieldError.invalid(path.child("operator"), operator, "not a valid selector operator"))
    errors += (FieldError.invalid(path.child("key"), key, message) for message in is_label_key(key))
    if not allow_invalid_values:
        for index, value in enumerate(values):
            where = path.child("values").index(index)
            errors += (FieldError.invalid(where, value, message) for message in is_label_value(value))
    return errors


def _requirement_errors(key: str, operator: Operator, values: Sequence[str]) -> list[FieldError]:
    errors: list[FieldError] = []
    if messages := is_label_key(key):
        errors.append(FieldError.invalid(Path("key"), key, "; ".join(messages)))
    where = Path("values")
    shown = list(values) or None
    match operator:
        case Operator.IN | Operator.NOT_IN:
            if not values:
                detail = "for 'in', 'notin' operators, values set can't be empty"
                errors.append(FieldError.invalid(where, shown, detail))
        case Operator.EQUALS | Operator.DOUBLE_EQUALS | Operator.NOT_EQUALS:
            if len(values) != 1:
                detail = "exact-match compatibility requires one single value"
                errors.append(FieldError.invalid(where, shown, detail))
        case Operator.EXISTS | Operator.DOES_NOT_EXIST:
            if values:
                detail = "values set must be empty for exists and does not exist"
                errors.append(FieldError.invalid(where, shown, detail))
        case _:
            if len(values) != 1:
                detail = "for 'Gt', 'Lt' operators, exactly one value is required"
                errors.append(FieldError.invalid(where, shown, detail))
            detail = "for 'Gt', 'Lt' operators, the value must be an integer"
            errors += (
                FieldError.invalid(where.index(index), value, detail)
                for index, value in enumerate(values)
                if _integer(value) is None
            )
    for index, value in enumerate(values):
        if messages := is_label_value(value):
            errors.append(FieldError.invalid(where.index(index).key(key), value, "; ".join(messages)))
    return errors


def _integer(text: object) -> int | None:
    """Parse a 64-bit integer."""
    match = _INTEGER.fullmatch(text) if isinstance(text, str) else None
    if match is None:
        return None
    number = -int(match[1]) if match[0][0] == "-" else int(match[1])
    return number if -(2**63) <= number < 2**63 else None


def _field(container: object, name: str, kind: type[Any]) -> Any:
    """Return a field of a `LabelSelector`; only its outer type is checked."""
    if not isinstance(container, Mapping):
        raise SelectorError(f"label selector: {container!r} is not an object")
    value = container.get(name)
    if value is not None and not isinstance(value, kind):
        raise SelectorError(f"label selector: {name}: {value!r} is not of type {kind.__name__.lower()}")
    return value


def _strings(values: Iterable[object]) -> list[str]:
    strings: list[str] = []
    for value in values:
        if not isinstance(value, str):
            raise SelectorError(f"label selector: {value!r} is not a string")
        strings.append(value)
    return strings
