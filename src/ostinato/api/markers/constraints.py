"""Constraints: which values a field may have. An API server enforces them; decoding here never does."""

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
    """Greater than this, or equal to it."""

    __slots__ = ()

    @property
    def schema(self) -> dict[str, Any]:
        return {"minimum": self.number}


class Gt(_Number):
    """Greater than this."""

    __slots__ = ()

    @property
    def schema(self) -> dict[str, Any]:
        return {"minimum": self.number, "exclusiveMinimum": True}


class Le(_Number):
    """Less than this, or equal to it."""

    __slots__ = ()

    @property
    def schema(self) -> dict[str, Any]:
        return {"maximum": self.number}


class Lt(_Number):
    """Less than this."""

    __slots__ = ()

    @property
    def schema(self) -> dict[str, Any]:
        return {"maximum": self.number, "exclusiveMaximum": True}


class MultipleOf(_Number):
    """A multiple of this."""

    __slots__ = ()

    def __init__(self, number: float) -> None:
        super().__init__(number)
        if number <= 0:
            raise ValueError(f"MultipleOf needs a number above 0, got {number!r}")

    @property
    def schema(self) -> dict[str, Any]:
        return {"multipleOf": self.number}


class Len(SilentMarker):
    """How long a text, or how large a list or a map may be: `Len(1, 63)`, `Len(1)`, `Len(at_most=63)`."""

    __slots__ = ()
    types = frozenset(_LENGTHS)

    def __init__(self, at_least: int = 0, at_most: int | None = None) -> None:
        for bound in (at_least, 0 if at_most is None else at_most):
            if isinstance(bound, bool) or not isinstance(bound, int) or bound < 0:
                raise ValueError(f"Len needs whole numbers from 0 on, got {bound!r}")
        if at_most is not None and at_most < at_least:
            raise ValueError(f"Len({at_least}, {at_most}): nothing is that long")
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
    """A regular expression that is found somewhere in the text, in the syntax of RE2 (no lookahead, no \\1)."""

    __slots__ = ()
    types = _TEXTS
    word = "pattern"


class Format(TextMarker):
    """A named form: "date-time", "ipv4", "uri", "int32", ... A server knows some and passes over the others."""

    __slots__ = ()
    types = frozenset({"string", "integer", "number"})
    word = "format"


class Enum(Marker):
    """The values that are known. The type stays `str` (or `int`): a newer server may send others."""

    __slots__ = ()
    types = frozenset({"string", "integer", "number", "int-or-string"})

    def __init__(self, *values: Any) -> None:
        if not values:
            raise ValueError("Enum needs values: without any, everything is allowed")
        super().__init__(*values)

    @property
    def values(self) -> tuple[Any, ...]:
        return self.arguments

    @property
    def schema(self) -> dict[str, Any]:
        return {"enum": list(self.values)}


class Rule(Marker):
    """A rule in CEL over `self`, on a field or a class: `Rule("self.min <= self.max", message="min is above max")`.

    Several add up. `reason` is one of FieldValueInvalid (the default), FieldValueForbidden, FieldValueRequired and
    FieldValueDuplicate. `optional_old_self` makes `oldSelf` an optional, so that the rule runs on creation, too.
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
        said = {
            "message": message,
            "message_expression": message_expression,
            "reason": reason,
            "field_path": field_path,
            "optional_old_self": optional_old_self,
        }
        super().__init__(rule, **{name: value for name, value in said.items() if value})

    @property
    def rule(self) -> str:
        return str(self.arguments[0])

    @property
    def schema(self) -> dict[str, Any]:
        rule = {"rule": self.rule, **{self._WORDS[name]: value for name, value in self.keywords.items()}}
        return {"x-kubernetes-validations": [rule]}


class Immutable(Marker):
    """The value cannot be changed once it is set; nor, where the field is optional, be removed."""

    __slots__ = ()

    @property
    def schema(self) -> dict[str, Any]:
        return Rule("self == oldSelf", message="Value is immutable").schema


class MembersMarker(SilentMarker):
    """A rule about how many of some fields of a class are set. Fields are named as in Python or as on the wire."""

    __slots__ = ()
    types = frozenset({"object"})
    relation: ClassVar[str]
    words: ClassVar[tuple[str, str]]

    def __init__(self, *fields: str) -> None:
        if len(fields) < 2:
            raise ValueError(f"{type(self).__name__} needs the names of two fields or more")
        super().__init__(*fields)

    @property
    def fields(self) -> tuple[str, ...]:
        return self.arguments

    def rule(self, wire: list[str], shown: list[str]) -> Rule:
        """The rule, which the class makes, as it knows the names: `wire` as CEL writes them, `shown` as people do."""
        message = f"{self.words[0]} of the fields in [{' '.join(shown)}] {self.words[1]} be set"
        return Rule(self._condition([f"has(self.{name})" for name in wire]), message=message)

    def _condition(self, there: list[str]) -> str:
        """In words that cost little: the rule may stand on the items of a list that has no bound."""
        return " + ".join(f"({each} ? 1 : 0)" for each in there) + f" {self.relation}"


class ExactlyOneOf(MembersMarker):
    """Of these fields, one is set and no more."""

    __slots__ = ()
    relation, words = "== 1", ("exactly one", "must")


class AtMostOneOf(MembersMarker):
    """Of these fields, one is set or none."""

    __slots__ = ()
    relation, words = "<= 1", ("at most one", "may")


class AtLeastOneOf(MembersMarker):
    """Of these fields, one is set or more."""

    __slots__ = ()
    words = ("at least one", "must")

    def _condition(self, there: list[str]) -> str:
        return " || ".join(there)
