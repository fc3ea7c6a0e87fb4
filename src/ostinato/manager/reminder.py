"""Reminder at exit: a program added runnables to a manager and never ran it, so it ended without doing anything."""

from __future__ import annotations

import atexit
import sys

from ostinato.controllers.guards.program import program


class Reminder:
    """Armed by `add`, disarmed by `run`. Only the user's own program is reminded: no test runner, no other command."""

    def __init__(self) -> None:
        self._names: list[str] = []  # of the runnables
        self._program = ""

    def arm(self, name: str) -> None:
        """Remind of a runnable at exit. The program is determined here: `__main__` has no `__file__` at exit."""
        if not self._names and (found := program()):
            self._program = found
            atexit.register(self._report)
        self._names.append(name)

    def disarm(self) -> None:
        atexit.unregister(self._report)

    def _report(self) -> None:
        if not hasattr(sys, "last_type"):  # the program failed, which says more
            sys.stderr.write(
                f"{self._program} adds {', '.join(self._names)} to a manager and does not run it; "
                f"call its run(), or use `ostinato run {self._program}`\n"
            )
