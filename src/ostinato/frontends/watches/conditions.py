"""Conditions in the form of operator-sdk, which has fields beyond those of Kubernetes' conditions."""

from __future__ import annotations

from typing import Any

from ostinato.api.time import Time

Json = dict[str, Any]


class Conditions:
    """The conditions of a status, as JSON. Unknown ones are kept."""

    def __init__(self, status: Any, now: Time) -> None:
        found = status.get("conditions") if isinstance(status, dict) else None
        self._items: list[Json] = [dict(each) for each in found or () if isinstance(each, dict)]
        self._now = str(now)

    def find(self, kind: str) -> Json | None:
        return next((each for each in self._items if each.get("type") == kind), None)

    def set(self, kind: str, status: str, **fields: Any) -> None:
        """Set a condition. Its lastTransitionTime is kept while its status is unchanged. None omits a field."""
        old = self.find(kind)
        is_same = old is not None and old.get("status") == status and old.get("lastTransitionTime")
        since = old["lastTransitionTime"] if old is not None and is_same else self._now
        new = {"type": kind, "status": status, "lastTransitionTime": since}
        new.update({name: value for name, value in fields.items() if value is not None})
        if old is None:
            self._items.append(new)
        else:
            self._items[self._items.index(old)] = new

    def set_status(self, kind: str, status: str) -> None:
        """Change the status of a condition that exists; its other fields stay."""
        old = self.find(kind)
        if old is not None and old.get("status") != status:
            old.update(status=status, lastTransitionTime=self._now)

    def remove(self, kind: str) -> None:
        self._items = [each for each in self._items if each.get("type") != kind]

    def as_list(self) -> list[Json]:
        return self._items
