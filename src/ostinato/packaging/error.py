"""The error for input from which no package can be made."""

from __future__ import annotations


class PackageError(ValueError):
    """The message names the file, field or object, and says what to do."""
