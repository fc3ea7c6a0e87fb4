"""Field selectors: which objects are meant, by the values of a few of their fields.

    parse("metadata.namespace=default,status.phase!=Running")

- Terms are joined by commas; empty ones are skipped. There are `=`, `==` and `!=` only.
- In a value, backslash, comma and equals sign are written with a backslash before them, and nothing else is.
- A field that an object lacks reads as the empty text.

Which fields can be asked for depends on the kind: `transform` is where a server renames or refuses them.
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
    """A selector that cannot be understood or served; the message is the one that the API server gives."""


class Term(msgspec.Struct, frozen=True, gc=False):
    """One condition: the field has the value, or (`negated`) has not."""

    field: str
    value: str
    negated: bool = False

    def matches(self, fields: Mapping[str, str]) -> bool:
        return (fields.get(self.field, "") == self.value) is not self.negated

    def __str__(self) -> str:
        return f"{self.field}{'!=' if self.negated else '='}{escape(self.value)}"


class Selector(msgspec.Struct, frozen=True):
    """All of the terms. Without any it matches everything."""

    terms: tuple[Term, ...] = ()
    selects_nothing: bool = False

    def matches(self, fields: Mapping[str, str]) -> bool:
        if self.selects_nothing:
            return False
        return all((fields.get(term.field, "") == term.value) is not term.negated for term in self.terms)

    @property
    def empty(self) -> bool:
        """Whether it matches everything."""
        return not self.terms and not self.selects_nothing

    def requires_exact_match(self, field: str) -> str | None:
        """The value that the field must have, if a term says so."""
        for term in self.terms:
            if term.field == field and not term.negated:
                return term.value
        return None

    def transform(self, function: Transform) -> Selector:
        """With each field and value replaced; a term that becomes empty in both is dropped."""
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
    """Objects whose fields have all of these values."""
    return Selector(tuple(Term(field, value) for field, value in sorted(fields.items())))


def parse(text: str) -> Selector:
    """Read the text form, as in `?fieldSelector=` and `kubectl get --field-selector`; terms are sorted."""
    terms = (_parse_term(part, text) for part in sorted(_split_terms(text)) if part)
    return Selector(tuple(term for term in terms if term.field or term.value))


def only(supported: Iterable[str]) -> Transform:
    """For `Selector.transform`: these fields as they are, no others."""
    names = frozenset(supported)

    def check(field: str, value: str) -> tuple[str, str]:
        if field not in names:
            raise FieldSelectorError(f"field label not supported: {field}")
        return field, value

    return check


def metadata_only(field: str, value: str) -> tuple[str, str]:
    """For `Selector.transform`: what every kind has, and custom resources without selectable fields have alone."""
    if field not in ("metadata.name", "metadata.namespace"):
        known = '"metadata.name", "metadata.namespace"'
        raise FieldSelectorError(f"{quote(field)} is not a known field selector: only {known}")
    return field, value


def escape(value: str) -> str:
    """A value as it is written in the text form."""
    return value.replace("\\", "\\\\").replace(",", "\\,").replace("=", "\\=")


def _split_terms(text: str) -> list[str]:
    """At the commas that have no backslash before them; backslashes stay."""
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
    """Split at the first operator: names of fields hold none and are not escaped."""
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
            # Kubernetes prints the number of the character here
            raise FieldSelectorError(f"invalid field selector: unescaped character in value: {ord(character)}")
        else:
            characters.append(character)
    return "".join(characters)
