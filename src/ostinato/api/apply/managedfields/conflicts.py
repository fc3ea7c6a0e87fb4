"""Conflicts of an apply: the 409 response, with kube-apiserver's messages."""

from __future__ import annotations

from collections.abc import Sequence

from ostinato.api.apply.fieldpath.field_set import Path, path_text
from ostinato.api.apply.managedfields.entries import identity_text
from ostinato.api.apply.managedfields.updater import Identity
from ostinato.api.errors import Conflict
from ostinato.api.status import FIELD_MANAGER_CONFLICT, StatusCause
from ostinato.api.text.go_format import quote


def conflict_error(found: Sequence[tuple[Identity, Path]]) -> Conflict:
    """Return the 409 that names each field and its manager."""
    causes = [
        StatusCause(FIELD_MANAGER_CONFLICT, f"conflict with {_shown(owner)}", path_text(path)) for owner, path in found
    ]
    return Conflict.of_apply(causes, _message(found))


def _message(found: Sequence[tuple[Identity, Path]]) -> str:
    if len(found) == 1:
        owner, path = found[0]
        return f"Apply failed with 1 conflict: conflict with {_shown(owner)}: {path_text(path)}"
    by_owner: dict[Identity, list[Path]] = {}
    for owner, path in found:
        by_owner.setdefault(owner, []).append(path)
    lines: list[str] = []
    for owner in sorted(by_owner, key=identity_text):
        lines.append(f"conflicts with {_shown(owner)}:")
        lines.extend(f"- {path_text(path)}" for path in by_owner[owner])
    return f"Apply failed with {len(found)} conflicts: " + "\n".join(lines)


def _shown(owner: Identity) -> str:
    shown = quote(owner.manager)
    if owner.subresource:
        shown += f" with subresource {quote(owner.subresource)}"
    return f"{shown} using {owner.api_version}" if owner.operation == "Update" else shown
