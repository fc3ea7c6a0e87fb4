"""Queries: the parameters of a request."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isfinite

from ostinato.page.facts import Ref


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

    def flag(self, name: str) -> bool:
        return self.text(name) in ("1", "true")

    def count(self, name: str, default: int, most: int) -> int:
        text = self.text(name)
        if text and not text.isdecimal():
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
                self.text("namespace"),
                self.required("name"),
                self.text("uid"),
            )
            ref.gvk  # noqa: B018 - parses
        except ValueError as error:
            raise BadQuery(f"apiVersion: {error}") from None
        return ref
