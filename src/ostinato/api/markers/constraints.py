"""Constraints on values. The API server enforces them; decoding does not."""

from __future__ import annotations

import math
from typing import Any, ClassVar

from ostinato.api.markers.marker import Marker, SilentMarker, TextMarker

_NUMBERS = frozenset({"integer", "number", "int-or-string"})
_TEXTS = frozenset({"string", "int-or-string"})
_LENGTHS = {"string": "Length", "array": "Items", "object": "Properties"}


class _Number(Marker):
    """A marker with one number."""

    __slots__ = ()
    types = _NUMBERS

    def __init__(self, number: float) -> None:
        if isinstance(number, bool) or not isinstance(number, int | float) or not math.isfinite(number):
            raise TypeError(f"{type(self).__name__} needs a number, got {number!r}")
        super().__init__(number)

    @property
    def number(self) -> float:
        bound: float = self.arguments[0]
        return bound


class Ge(_Number):
    """Minimum, inclusive."""

    __slots__ = ()

    @property
    def schema(self) -> dict[str, Any]:
        return {"minimum": self.number}


class Gt(_Number):
    """Minimum, exclusive."""

    __slots__ = ()

    @property
    def schema(self) -> dict[str, Any]:
        return {"minimum": self.number, "exclusiveMinimum": True}


class Le(_Number):
    """Maximum, inclusive."""

    __slots__ = ()

    @property
    def schema(self) -> dict[str, Any]:
        return {"maximum": self.number}


class Lt(_Number):
    """Maximum, exclusive."""

    __slots__ = ()

    @property
    def schema(self) -> dict[str, Any]:
        return {"maximum": self.number, "exclusiveMaximum": True}


class MultipleOf(_Number):
    """Multiple of a number."""

    __slots__ = ()

    def __init__(self, number: float) -> None:
        super().__init__(number)
        if number <= 0:
            raise ValueError(f"MultipleOf needs a number above 0, got {number!r}")

    @property
    def schema(self) -> dict[str, Any]:
        return {"multipleOf": self.number}


class Len(SilentMarker):
    """Minimum and maximum length of a string, list or map: `Len(1, 63)`, `Len(1)`, `Len(at_most=63)`."""

    __slots__ = ()
    types = frozenset(_LENGTHS)

    def __init__(self, at_least: int = 0, at_most: int | None = None) -> None:
        for bound in (at_least, 0 if at_most is None else at_most):
            if isinstance(bound, bool) or not isinstance(bound, int) or bound < 0:
                raise ValueError(f"Len needs non-negative integers, got {bound!r}")
        if at_most is not None and at_most < at_least:
            raise ValueError(f"Len({at_least}, {at_most}): the minimum exceeds the maximum")
        if at_least and at_most is not None:
            super().__init__(at_least, at_most)
        elif at_most is not None:
            super().__init__(at_most=at_most)
        else:
            super().__init__(at_least)

    @property
    def at_least(self) -> int:
        return self.arguments[0] if self.arguments else 0

    @property
    def at_most(self) -> int | None:
        return self.arguments[1] if len(self.arguments) == 2 else self.keywords.get("at_most")

    def schema_for(self, json_type: str) -> dict[str, Any]:
        word = _LENGTHS[json_type]
        least = {f"min{word}": self.at_least} if self.at_least else {}
        return least if self.at_most is None else {**least, f"max{word}": self.at_most}


class Pattern(TextMarker):
    """Regular expression that matches anywhere in the string, in RE2 syntax (no lookahead, no \\1)."""

    __slots__ = ()
    types = _TEXTS
    word = "pattern"


class Format(TextMarker):
    """Named format: "date-time", "ipv4", "uri", "int32", ... A server ignores unknown ones."""

    __slots__ = ()
    types = frozenset({"string", "integer", "number"})
    word = "format"


class Enum(Marker):
    """The known values. The type remains `str` (or `int`), as a newer server may send others."""

    __slots__ = ()
    types = frozenset({"string", "integer", "number", "int-or-string"})

    def __init__(self, *values: Any) -> None:
        if not values:
            raise ValueError("Enum needs at least one value")
        super().__init__(*values)

    @property
    def values(self) -> tuple[Any, ...]:
        return self.arguments

    @property
    def schema(self) -> dict[str, Any]:
        return {"enum": list(self.values)}


class Rule(Marker):
    """CEL validation rule on a field or class: `Rule("self.min <= self.max", message="min is above max")`.

    - `reason`: FieldValueInvalid, FieldValueForbidden, FieldValueRequired or FieldValueDuplicate. Defaults to
      FieldValueInvalid.
    - `optional_old_self`: `oldSelf` is an optional, so that the rule is evaluated on creation too.

    Several rules accumulate.
    """

    __slots__ = ()

    _WORDS: ClassVar[dict[str, str]] = {
        "message": "message",
        "message_expression": "messageExpression",
        "reason": "reason",
        "field_path": "fieldPath",
        "optional_old_self": "optionalOldSelf",
    }

    def __init__(
        self,
        rule: str,
        *,
        message: str = "",
        message_expression: str = "",
        reason: str = "",
        field_path: str = "",
        optional_old_self: bool = False,
    ) -> None:
        keywords = {
            "message": message,
            "message_expression": message_expression,
            "reason": reason,
            "field_path": field_path,
            "optional_old_self": optional_old_self,
        }
        super().__init__(rule, **{name: value for name, value in keywords.items() if value})

    @property
    def rule(self) -> str:
        return str(self.arguments[0])

    @property
    def schema(self) -> dict[str, Any]:
        rule = {"rule": self.rule, **{self._WORDS[name]: value for name, value in self.keywords.items()}}
        return {"x-kubernetes-validations": [rule]}


class Immutable(Marker):
    """The value cannot be changed or removed once it is set."""

    __slots__ = ()

    @property
    def schema(self) -> dict[str, Any]:
        return Rule("self == oldSelf", message="Value is immutable").schema


class MembersMarker(SilentMarker):
    """Base of rules on the number of fields that are set. Fields have their Python or JSON names."""

    __slots__ = ()
    types = frozenset({"object"})
    relation: ClassVar[str]
    words: ClassVar[tuple[str, str]]

    def __init__(self, *fields: str) -> None:
        if len(fields) < 2:
            raise ValueError(f"{type(self).__name__} needs the names of at least two fields")
        super().__init__(*fields)

    @property
    def fields(self) -> tuple[str, ...]:
        return self.arguments

    def rule(self, wire: list[str], shown: list[str]) -> Rule:
        """Return the rule; `wire` are the field names in CEL, `shown` those in messages."""
        message = f"{self.words[0]} of the fields in [{' '.join(shown)}] {self.words[1]} be set"
        return Rule(self._condition([f"has(self.{name})" for name in wire]), message=message)

    def _condition(self, there: list[str]) -> str:
        """Return the condition in a form of low cost, as the rule may apply to the items of an unbounded list."""
        return " + ".join(f"({each} ? 1 : 0)" for each in there) + f" {self.relation}"


class ExactlyOneOf(MembersMarker):
    """Exactly one of these fields is set."""

    __slots__ = ()
    relation, words = "== 1", ("exactly one", "must")


class AtMostOneOf(MembersMarker):
    """At most one of these fields is set."""

    __slots__ = ()
    relation, words = "<= 1", ("at most one", "may")


class AtLeastOneOf(MembersMarker):
    """At least one of these fields is set."""

    __slots__ = ()
    words = ("at least one", "must")

    def _condition(self, there: list[str]) -> str:
        return " || ".join(there)
