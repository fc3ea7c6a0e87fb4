"""Authors of changes, by managedFields: the entries that a change added or changed.

A server records there who set which fields, with the name that the client gave (its field manager), and for writes of
a subresource its name. A deletion leaves no trace in it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

Json = dict[str, Any]

# Field managers of Kubernetes' own components: programs, not people.
COMPONENTS: Final = frozenset(
    {
        "Go-http-client",
        "cloud-controller-manager",
        "kube-apiserver",
        "kube-controller-manager",
        "kube-proxy",
        "kube-scheduler",
        "kubelet",
    }
)


class Author(NamedTuple):
    """`manager`: "" if unknown. `subresource`: "" if it was a write of the object itself."""

    manager: str = ""
    subresource: str = ""


def author_of(before: Json | None, after: Json, paths: Sequence[str] = ()) -> Author:
    """Return the author of the change between two states.

    - `before`: None for an object that was created.
    - `paths`: the fields that changed. A second write of the same fields within a second leaves managedFields as they
      are; the author is then the manager that owns these fields.
    """
    known = [] if before is None else _entries(before)
    entries = _entries(after)
    changed = [each for each in entries if each not in known] or [each for each in entries if _owns(each, paths)]
    if not changed:
        return Author()
    # An entry that lost the field to another manager has changed too.
    last = max(changed, key=lambda each: (_owns(each, paths), str(each.get("time") or "")))
    return Author(str(last.get("manager") or ""), str(last.get("subresource") or ""))


def _owns(entry: Json, paths: Sequence[str]) -> bool:
    """Whether an entry of managedFields contains one of the fields; of a list, the list itself."""
    for path in paths:
        owned: Any = entry.get("fieldsV1")
        for name in path.partition("[")[0].split("."):
            owned = owned.get(f"f:{name}") if isinstance(owned, dict) else None
        if owned is not None:
            return True
    return False


def _entries(instance: Json) -> list[Json]:
    metadata = instance.get("metadata")
    entries = metadata.get("managedFields") if isinstance(metadata, dict) else None
    return [each for each in entries if isinstance(each, dict)] if isinstance(entries, list) else []
