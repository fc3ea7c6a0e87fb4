"""The current reconcile, as a context variable for logs and traces.

`current_reconcile()` returns None outside of a reconcile. Tasks and threads that a reconcile starts inherit it.
"""

from __future__ import annotations

from collections.abc import Hashable
from contextvars import ContextVar

import msgspec

from ostinato.api.gvk import GroupVersionKind
from ostinato.controllers.reasons import Why


class Reconcile(msgspec.Struct, frozen=True, kw_only=True):
    """One run of a reconciler."""

    id: str  # unique per run
    controller: str
    request: Hashable
    gvk: GroupVersionKind | None  # of the reconciled object; None if the controller has no kind
    why: Why
    attempt: int  # 1 plus the number of consecutive failures
    explanations: list[str] = msgspec.field(default_factory=list)  # why it acts, in the reconciler's words


_current: ContextVar[Reconcile | None] = ContextVar("ostinato.controllers.reconcile", default=None)


def current_reconcile() -> Reconcile | None:
    return _current.get()


def reconcile_id() -> str:
    """Return the id of the current reconcile, "" outside of one."""
    found = _current.get()
    return "" if found is None else found.id


class running:  # noqa: N801 - used like a function
    """Set the current reconcile within a block: `with running(reconcile):`."""

    __slots__ = ("_reconcile", "_token")

    def __init__(self, reconcile: Reconcile) -> None:
        self._reconcile = reconcile

    def __enter__(self) -> None:
        self._token = _current.set(self._reconcile)

    def __exit__(self, *_: object) -> None:
        _current.reset(self._token)
