"""The command `ostinato`, with points at which the process dies.

`OSTINATO_FAILPOINT=FILE`: on SIGUSR2 the file is read. If it has `before-commit:7`, the process kills itself (SIGKILL)
when it gets to that point for the seventh time. The points are set from outside: the store has no code for them.
`OSTINATO_DEFECT`: see `defects`.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

VARIABLE = "OSTINATO_FAILPOINT"
POINTS = (
    "before-transaction",  # nothing is written
    "before-commit",  # nothing is in the file, or all rows but the commit
    "after-commit",  # durable; the mark is behind, no one knows
    "after-mark",  # the mark is advanced; no one knows
    "after-batch",  # the event loop has the result; the index has not
    "before-answer",  # readers and watchers see it; no response is sent
)


class Failpoint:
    """Counts down to the death of this process."""

    def __init__(self) -> None:
        self._name = ""
        self._left = 0

    def arm(self, text: str) -> None:
        name, _, count = text.partition(":")
        self._name, self._left = name, int(count)

    def reach(self, name: str) -> None:
        if name == self._name:
            self._left -= 1
            if self._left == 0:
                os.kill(os.getpid(), signal.SIGKILL)


def enable(point: Failpoint) -> None:
    """Set the points in the SQLite log and in the index."""
    from ostinato.server.store.local import LocalIndex
    from ostinato.server.store.log_sqlite import SQLiteLog

    _before(SQLiteLog, "_append", lambda: point.reach("before-transaction"))
    _before(SQLiteLog, "_advance_mark", lambda: point.reach("after-commit"))
    _after(SQLiteLog, "_advance_mark", lambda: point.reach("after-mark"))
    _before(LocalIndex, "_apply", lambda: point.reach("after-batch"))
    _before(LocalIndex, "_end_batch", lambda: point.reach("before-answer"))
    opened = SQLiteLog.__init__

    def opening(self: SQLiteLog, *args: Any, **options: Any) -> None:
        opened(self, *args, **options)
        self._database = _Database(self._database, point)  # type: ignore[assignment]

    SQLiteLog.__init__ = opening  # type: ignore[method-assign]


class _Database:
    """A connection that reports the boundaries of its transactions."""

    def __init__(self, inner: Any, point: Failpoint) -> None:
        self._inner = inner
        self._point = point

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def execute(self, statement: str, *values: Any) -> Any:
        is_single = statement.startswith("INSERT") and not self._inner.in_transaction
        if statement == "COMMIT" or is_single:
            self._point.reach("before-commit")
        return self._inner.execute(statement, *values)


def _before(owner: type, name: str, reach: Callable[[], None]) -> None:
    original = getattr(owner, name)

    def reaching(*args: Any, **options: Any) -> Any:
        reach()
        return original(*args, **options)

    setattr(owner, name, reaching)


def _after(owner: type, name: str, reach: Callable[[], None]) -> None:
    original = getattr(owner, name)

    def reaching(*args: Any, **options: Any) -> Any:
        result = original(*args, **options)
        reach()
        return result

    setattr(owner, name, reaching)


def main() -> None:
    if file := os.environ.get(VARIABLE):
        point = Failpoint()
        enable(point)
        signal.signal(signal.SIGUSR2, lambda *_: point.arm(Path(file).read_text()))
    if name := os.environ.get("OSTINATO_DEFECT"):
        from tests.faults.real.defects import DEFECTS

        DEFECTS[name]()
    from ostinato.cli.app import run

    sys.exit(run(sys.argv[1:]))


if __name__ == "__main__":
    main()
