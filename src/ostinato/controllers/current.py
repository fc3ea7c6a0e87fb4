"""The reconcile that is running: for logs and traces, which say on their own whose they are.

`current_reconcile()` is None outside of one. Tasks and threads that a reconcile starts belong to it too.
"""

from __future__ import annotations

from collections.abc import Hashable
from contextvars import ContextVar

import msgspec

from ostinato.api.gvk import GroupVersionKind
from ostinato.controllers.reasons import Why


class Reconcile(msgspec.Struct, frozen=True, kw_only=True):
    """One run of a reconciler."""

    id: str  # of this run alone
    controller: str
    request: Hashable
    gvk: GroupVersionKind | None  # of what it is about, if that is an object
    why: Why
    attempt: int  # 1, and one more after each failure in a row


_current: ContextVar[Reconcile | None] = ContextVar("ostinato.controllers.reconcile", default=None)


def current_reconcile() -> Reconcile | None:
    return _current.get()


def reconcile_id() -> str:
    """Of the reconcile that is running, "" outside of one."""
    found = _current.get()
    return "" if found is None else found.id


class running:  # noqa: N801 - it is used like a function: `with running(reconcile):`
    """In the block, this reconcile runs."""

    __slots__ = ("_reconcile", "_token")

    def __init__(self, reconcile: Reconcile) -> None:
        self._reconcile = reconcile

    def __enter__(self) -> None:
        self._token = _current.set(self._reconcile)

    def __exit__(self, *_: object) -> None:
        _current.reset(self._token)
