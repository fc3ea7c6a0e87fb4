"""Which programs may be run for credentials.

A kubeconfig names programs to run; whoever can write one can run anything. So the policy is set in code, never in the
kubeconfig: `ExecPolicy.deny_all()`, or `ExecPolicy.allow("aws", "/usr/local/bin/kubelogin")`.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

LookUp = Callable[[str], str | None]
"""Where a command is found: its absolute path, None if it is not."""


@dataclass(frozen=True, slots=True)
class ExecPolicy:
    """Make one with the class methods. `allowed` is None for all programs."""

    allowed: tuple[str, ...] | None

    @classmethod
    def allow_all(cls) -> Self:
        return cls(None)

    @classmethod
    def deny_all(cls) -> Self:
        return cls(())

    @classmethod
    def allow(cls, *commands: str) -> Self:
        """Only these: paths, or names which stand for what PATH has under them."""
        if not commands:
            raise ValueError("the list of allowed programs is empty: deny_all() says that")
        for command in commands:
            if not command or os.path.normpath(command) != command:
                raise ValueError(f"{command!r} is not a plain path: write {os.path.normpath(command or '.')!r}")
        return cls(commands)

    def permits(self, command: str, look_up: LookUp | None = None) -> bool:
        """Whether the program may run: as it is called, or as the file that it is found at, is in the list."""
        if self.allowed is None:
            return True
        find = look_up or find_program
        command = os.path.normpath(command)
        found = find(command)
        if command in self.allowed or found in self.allowed:
            return True
        name = os.path.basename(command)
        candidates = [entry for entry in self.allowed if os.path.basename(entry) == name]
        return found is not None and any(find(entry) == found for entry in candidates)


def find_program(command: str) -> str | None:
    """A bare name is looked up in PATH; what is found in the current directory alone does not count."""
    from shutil import which  # noqa: PLC0415 - slow to load, and few run a plugin

    found = which(command)
    if found is None or (os.sep not in command and not os.path.isabs(found)):
        return None
    return found
