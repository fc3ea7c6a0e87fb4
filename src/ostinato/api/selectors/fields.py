"""Field selectors: parse, print and match.

    parse("metadata.namespace=default,status.phase!=Running")

- Terms are separated by commas; empty terms are ignored. The operators are `=`, `==` and `!=`.
- In values, backslash, comma and equals sign are escaped with a backslash.
- An absent field is the empty string.
- The supported fields depend on the kind: a server renames or rejects fields with `transform`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final

import msgspec

from ostinato.api.text.go_format import quote

__all__ = [
    "FieldSelectorError",
    "Selector",
    "Term",
    "Transform",
    "escape",
    "everything",
    "from_set",
    "metadata_only",
    "nothing",
    "only",
    "parse",
]

Transform = Callable[[str, str], tuple[str, str]]

_OPERATORS: Final = ("!=", "==", "=")  # the longer before the shorter


class FieldSelectorError(ValueError):
    """The selector is invalid or not supported; the API server's message."""


class Term(msgspec.Struct, frozen=True, gc=False):
    """A condition: the field has the value, or, if negated, another one."""

    field: str
    value: str
    negated: bool = False

    def matches(self, fields: Mapping[str, str]) -> bool:
        return (fields.get(self.field, "") == self.value) is not self.negated

    def __str__(self) -> str:
        return f"{self.field}{'!=' if self.negated else '='}{escape(self.value)}"


class Selector(msgspec.Struct, frozen=True):
    """A conjunction of terms; without terms it matches all objects."""

    terms: tuple[Term, ...] = ()
    selects_nothing: bool = False

    def matches(self, fields: Mapping[str, str]) -> bool:
        if self.selects_nothing:
            return False
        return all((fields.get(term.field, "") == term.value) is not term.negated for term in self.terms)

    @property
    def empty(self) -> bool:
        """Whether it matches all objects."""
        return not self.terms and not self.selects_nothing

    def requires_exact_match(self, field: str) -> str | None:
        """Return the value that the field must have, if a term requires one."""
        for term in self.terms:
            if term.field == field and not term.negated:
                return term.value
        return None

    def transform(self, function: Transform) -> Selector:
        """Replace field and value of each term; a term with both empty is dropped."""
        terms: list[Term] = []
        for term in self.terms:
            field, value = function(term.field, term.value)
            if field or value:
                terms.append(Term(field, value, term.negated))
        return Selector(tuple(terms), self.selects_nothing)

    def __str__(self) -> str:
        return ",".join(map(str, self.terms))


def everything() -> Selector:
    return Selector()


def nothing() -> Selector:
    return Selector(selects_nothing=True)


def from_set(fields: Mapping[str, str]) -> Selector:
    """Return a selector for objects with all of these field values."""
    return Selector(tuple(Term(field, value) for field, value in sorted(fields.items())))


def parse(text: str) -> Selector:
    """Parse the string form, as in `?fieldSelector=` and `kubectl get --field-selector`; terms are sorted."""
    terms = (_parse_term(part, text) for part in sorted(_split_terms(text)) if part)
    return Selector(tuple(term for term in terms if term.field or term.value))


def only(supported: Iterable[str]) -> Transform:
    """Return a function for `Selector.transform` that rejects all but these fields."""
    names = frozenset(supported)

    def check(field: str, value: str) -> tuple[str, str]:
        if field not in names:
            raise FieldSelectorError(f"field label not supported: {field}")
        return field, value

    return check


def metadata_only(field: str, value: str) -> tuple[str, str]:
    """For `Selector.transform`: accept metadata.name and metadata.namespace only."""
    if field not in ("metadata.name", "metadata.namespace"):
        known = '"metadata.name", "metadata.namespace"'
        raise FieldSelectorError(f"{quote(field)} is not a known field selector: only {known}")
    return field, value


def escape(value: str) -> str:
    """Escape a value for the string form."""
    return value.replace("\\", "\\\\").replace(",", "\\,").replace("=", "\\=")


def _split_terms(text: str) -> list[str]:
    """Split at unescaped commas; backslashes are kept."""
    if "\\" not in text:
        return text.split(",")
    terms: list[str] = []
    start = 0
    escaped = False
    for position, character in enumerate(text):
        if escaped:
            escaped = False
        elif character == "\\":
            escaped = True
        elif character == ",":
            terms.append(text[start:position])
            start = position + 1
    terms.append(text[start:])
    return terms


def _parse_term(part: str, text: str) -> Term:
    """Split at the first operator; field names are not escaped."""
    equals = part.find("=")
    if equals < 0:
        raise FieldSelectorError(f"invalid selector: '{text}'; can't understand '{part}'")
    start = equals - 1 if part[equals - 1 : equals] == "!" else equals
    operator = next(operator for operator in _OPERATORS if part.startswith(operator, start))
    return Term(part[:start], _unescape(part[start + len(operator) :]), operator == "!=")


def _unescape(value: str) -> str:
    if "\\" not in value and "," not in value and "=" not in value:
        return value
    characters: list[str] = []
    rest = iter(value)
    for character in rest:
        if character == "\\":
            escaped = next(rest, "")
            if escaped not in ("\\", ",", "="):
                raise FieldSelectorError(f"invalid field selector: invalid escape sequence: \\{escaped}")
            characters.append(escaped)
        elif character in ",=":
            # Kubernetes prints the code point
            raise FieldSelectorError(f"invalid field selector: unescaped character in value: {ord(character)}")
        else:
            characters.append(character)
    return "".join(characters)
