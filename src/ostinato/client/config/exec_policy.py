"""Exec policy: which credential plugins may run.

A kubeconfig can name any program. The policy is therefore set in code, never in the kubeconfig:
`ExecPolicy.deny_all()`, or `ExecPolicy.allow("aws", "/usr/local/bin/kubelogin")`.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

LookUp = Callable[[str], str | None]
"""Returns the absolute path of a command; None if it is not found."""


@dataclass(frozen=True, slots=True)
class ExecPolicy:
    """Construct it with the class methods. `allowed`: None for all programs."""

    allowed: tuple[str, ...] | None

    @classmethod
    def allow_all(cls) -> Self:
        return cls(None)

    @classmethod
    def deny_all(cls) -> Self:
        return cls(())

    @classmethod
    def allow(cls, *commands: str) -> Self:
        """Allow these programs only: paths, or names that are looked up in PATH."""
        if not commands:
            raise ValueError("allow() got no programs; use deny_all()")
        for command in commands:
            if not command or os.path.normpath(command) != command:
                raise ValueError(
                    f"allow() got {command!r}, which is not a normalized path; use {os.path.normpath(command or '.')!r}"
                )
        return cls(commands)

    def permits(self, command: str, look_up: LookUp | None = None) -> bool:
        """Whether the program may run: its name, or the file that it resolves to, is allowed."""
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
    """Look up a command in PATH. A name found only in the current directory is ignored."""
    from shutil import which  # noqa: PLC0415 - slow import, rarely needed

    found = which(command)
    if found is None or (os.sep not in command and not os.path.isabs(found)):
        return None
    return found
