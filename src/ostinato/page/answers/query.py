"""Queries: the parameters of a request."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Final

from ostinato.page.facts import Ref

_MAX_DIGITS: Final = 18
_UNSAFE: Final = frozenset("/%")


class BadQuery(Exception):  # noqa: N818 - named after the condition
    """A parameter is missing or malformed."""


class NotFound(Exception):  # noqa: N818
    """What is asked for does not exist, or is older than the history."""


class Query:
    def __init__(self, values: Mapping[str, Sequence[str]]) -> None:
        self._values = values

    def text(self, name: str, default: str = "") -> str:
        return self._values.get(name, (default,))[0]

    def required(self, name: str) -> str:
        if not (found := self.text(name)):
            raise BadQuery(f"{name}: required")
        return found

    def segment(self, name: str) -> str:
        """Return a name that becomes a segment of a path of the API: it cannot lead to another path."""
        found = self.required(name)
        if found in (".", "..") or not _UNSAFE.isdisjoint(found):
            raise BadQuery(f"{name}: must not contain '/' or '%', nor be '.' or '..'")
        return found

    def flag(self, name: str) -> bool:
        return self.text(name) in ("1", "true")

    def count(self, name: str, default: int, most: int) -> int:
        text = self.text(name)
        if text and not (text.isdecimal() and len(text) <= _MAX_DIGITS):
            raise BadQuery(f"{name}: want a number")
        return min(int(text or default), most)

    def seconds(self, name: str, default: float) -> float:
        try:
            found = float(self.text(name) or default)
        except ValueError:
            raise BadQuery(f"{name}: want seconds since the epoch") from None
        if not isfinite(found):
            raise BadQuery(f"{name}: want seconds since the epoch")
        return found

    def ref(self) -> Ref:
        try:
            ref = Ref(
                self.required("apiVersion"),
                self.required("kind"),
                self.segment("namespace") if self.text("namespace") else "",
                self.segment("name"),
                self.text("uid"),
            )
            ref.gvk  # noqa: B018 - parses
        except ValueError as error:
            raise BadQuery(f"apiVersion: {error}") from None
        return ref
