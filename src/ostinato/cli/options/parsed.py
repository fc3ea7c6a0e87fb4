"""Parsed arguments, and the type of the subparsers that commands are added to."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    Commands = argparse._SubParsersAction[argparse.ArgumentParser]


def values(options: argparse.Namespace) -> dict[str, Any]:
    """Return the arguments by name, without the parser's own entries."""
    return {name: value for name, value in vars(options).items() if name not in ("command", "prog")}
