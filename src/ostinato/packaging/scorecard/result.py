"""The result of one check."""

from __future__ import annotations

from typing import Literal

import msgspec

State = Literal["pass", "fail", "skip"]


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """
    - `errors`: what is wrong, and what to do; not empty if it failed.
    - `suggestions`: what could be better; they do not fail the check.
    - `skipped`: why the check was not made. Defaults to "": it was made.
    """

    suite: str
    name: str
    errors: tuple[str, ...] = ()
    suggestions: tuple[str, ...] = ()
    skipped: str = ""

    @property
    def state(self) -> State:
        return "skip" if self.skipped else "fail" if self.errors else "pass"
