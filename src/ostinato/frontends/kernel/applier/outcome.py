"""Outcome of applying a set: what was done, what is held back, and what failed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal, NoReturn

import msgspec

from ostinato.controllers import StillOwned
from ostinato.frontends.kernel.applier.refs import ObjectRef

Action = Literal["none", "create", "update", "recreate", "delete"]


class Change(msgspec.Struct, frozen=True):
    """What was done about an object, or would be.

    - `action`: "update" also if others changed an object that is up to date, and the cache had not seen it yet.
    - `diff`: unified, in YAML; only of a dry run.
    """

    ref: ObjectRef
    action: Action
    diff: str = ""


class Held(msgspec.Struct, frozen=True):
    """An object that is not as desired yet, and why: it must be gone first, or a rolling update waits."""

    ref: ObjectRef
    message: str

    def __str__(self) -> str:
        return f"{self.ref}: {self.message}"


class ApplyError(msgspec.Struct, frozen=True):
    """An object that could not be applied."""

    ref: ObjectRef
    error: Exception

    def __str__(self) -> str:
        return f"{self.ref}: {self.error}"


class SetError(Exception):
    """Objects of a set could not be applied; the others were. Nothing was deleted."""

    def __init__(self, errors: Iterable[ApplyError]) -> None:
        self.errors = tuple(errors)
        first, *others = map(str, self.errors)
        super().__init__(f"{first} (and {len(others)} more)" if others else first)


class Outcome(msgspec.Struct, kw_only=True):
    """
    - `applied`: the objects as the server has them, in the order in which they were applied.
    - `changes`: all objects, with what was done.
    - `held`: objects that are not as desired yet.
    - `errors`: objects that could not be applied. The others were applied, nothing was deleted.
    """

    applied: list[dict[str, Any]] = msgspec.field(default_factory=list)
    changes: list[Change] = msgspec.field(default_factory=list)
    held: list[Held] = msgspec.field(default_factory=list)
    errors: list[ApplyError] = msgspec.field(default_factory=list)

    @property
    def is_complete(self) -> bool:
        """Whether all objects are as desired, and all others are gone."""
        return not self.errors and not self.held

    @property
    def has_changes(self) -> bool:
        return any(each.action != "none" for each in self.changes)

    @property
    def diff(self) -> str:
        """The diffs of a dry run, one after the other."""
        return "".join(each.diff for each in self.changes)

    def raise_errors(self) -> None:
        """Raise `SetError` if there are errors; `StillOwned` if all that fails waits for the garbage collector."""
        if self.errors:
            self._raise()

    def _raise(self) -> NoReturn:
        first = self.errors[0].error
        if all(isinstance(each.error, StillOwned) for each in self.errors):
            raise first
        raise SetError(self.errors) from first
