"""What a command cannot do, said to who called it."""

from __future__ import annotations


class Failure(Exception):  # noqa: N818 - told to the user as it is
    """The command cannot do what it was asked to; the message says why, and what to do."""
