"""Outcome of a probe."""

from __future__ import annotations

from typing import Literal

import msgspec


class Outcome(msgspec.Struct, frozen=True):
    """The outcome of a check. `error`: the check could not be run."""

    result: Literal["success", "failure", "error"]
    output: str = ""
