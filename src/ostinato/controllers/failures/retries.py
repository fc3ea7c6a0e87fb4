"""Retries: which failed keys run again, and when.

- A key that fails more than `limit` times in a row, or with a `PermanentError`, is given up: it runs again only for a
  reason other than a requeue or a resync, that is, when something has changed.
- A success resets the count, and so does giving up: after a change all retries are available again.
"""

from __future__ import annotations

from collections.abc import Hashable

from ostinato.controllers.reasons import Why


class Retries:
    def __init__(self, limit: int) -> None:
        """`limit`: retries of each key; negative is no limit."""
        self._limit = limit
        self._failures: dict[Hashable, int] = {}  # in a row, by key; without a limit they are not counted
        self._given_up: set[Hashable] = set()

    def failed(self, key: Hashable, *, permanent: bool) -> bool:
        """Record a failure, and return whether the key is given up."""
        failures = self._failures.get(key, 0) + 1
        if permanent or 0 <= self._limit < failures:
            self._failures.pop(key, None)
            self._given_up.add(key)
            return True
        if self._limit >= 0:
            self._failures[key] = failures
        return False

    def succeeded(self, key: Hashable) -> None:
        self._failures.pop(key, None)

    def skips(self, key: Hashable, why: Why) -> bool:
        """Return whether the key must not run: it was given up, and nothing has changed since."""
        if key not in self._given_up:
            return False
        if why.is_repetition:
            return True
        self._given_up.discard(key)
        return False
