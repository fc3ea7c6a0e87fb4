"""Writes that change only times in managedFields: the times are restored, so that the write is a no-op.

Nothing is stored and no watch event is sent. Corresponds to `ignoreManagedFieldsTimestamps` in apiserver.
"""

from __future__ import annotations

from typing import Any

from ostinato.api.equality import equal


def restore_times(old: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    """Return the new object, with the old times in managedFields if nothing else differs."""
    if any(old.get(name) != value for name, value in new.items() if name != "metadata"):
        return new  # as most updates
    old_entries, new_entries = (_entries(value) for value in (old, new))
    if not new_entries or len(old_entries) != len(new_entries):
        return new
    if all(before.get("time") == after.get("time") for before, after in zip(old_entries, new_entries, strict=True)):
        return new
    if not equal([_timeless(entry) for entry in old_entries], [_timeless(entry) for entry in new_entries]):
        return new
    restored = {**new, "metadata": {**new["metadata"], "managedFields": old["metadata"]["managedFields"]}}
    return restored if equal(old, restored) else new


def _entries(value: dict[str, Any]) -> list[dict[str, Any]]:
    metadata = value.get("metadata")
    entries = metadata.get("managedFields") if isinstance(metadata, dict) else None
    return entries if isinstance(entries, list) else []


def _timeless(entry: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in entry.items() if name != "time"}
