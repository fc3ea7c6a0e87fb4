"""The error that ends a command with one line on standard error and exit code 1."""

from __future__ import annotations


class CommandError(Exception):
    """A command cannot run or has failed; the message says why and what to do."""
