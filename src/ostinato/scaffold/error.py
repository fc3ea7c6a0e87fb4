"""The error of all scaffolding commands."""

from __future__ import annotations


class ScaffoldError(Exception):
    """A project cannot be generated or changed; the message says why and what to do."""
