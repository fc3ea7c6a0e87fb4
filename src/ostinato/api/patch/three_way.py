"""Three-way merge: the patch of a live object to a new configuration, as client-side `kubectl apply` computes it.

- `original` is the last applied configuration, `modified` the new one, `current` the live object.
- Additions and changes are from `current` to `modified`, deletions from `original` to `modified`: fields that were
  never in a configuration are kept.
- Built-in kinds have strategic merge patches; custom resources, whose schemas have no merge keys, have merge patches.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final, Literal

import msgspec

from ostinato.api.patch.conflicts import has_conflicts
from ostinato.api.patch.errors import PatchConflict, PreconditionFailed
from ostinato.api.patch.go_values import go_value, shown
from ostinato.api.patch.merge_patch import create_merge_patch, merge_patch
from ostinato.api.patch.strategic import merged_patches
from ostinato.api.patch.strategic_diff import Wanted, difference
from ostinato.api.schema import Schema

Precondition = Callable[[dict[str, Any]], bool]
"""Whether a computed patch leaves alone what it must."""


def key_unchanged(key: str) -> Precondition:
    """Precondition: the patch does not contain a top-level field."""
    return lambda patch: key not in patch


def metadata_key_unchanged(key: str) -> Precondition:
    """Precondition: the patch does not contain a field of the metadata."""

    def unchanged(patch: dict[str, Any]) -> bool:
        metadata = patch.get("metadata")
        return not isinstance(metadata, dict) or key not in metadata

    return unchanged


SAME_OBJECT: Final[tuple[Precondition, ...]] = (
    key_unchanged("apiVersion"),
    key_unchanged("kind"),
    metadata_key_unchanged("name"),
)
"""What `kubectl apply` demands of a merge patch: it is still the same object."""


def create_three_way_strategic(
    original: dict[str, Any],
    modified: dict[str, Any],
    current: dict[str, Any],
    schema: Schema | None,
    *,
    overwrite: bool = True,
    preconditions: Iterable[Precondition] = (),
) -> dict[str, Any]:
    """Return the strategic merge patch for `current`; it shares values with the arguments.

    Without `overwrite`, a field that was changed to different values in `modified` and `current` raises PatchConflict.
    """
    changes = difference(current, modified, schema, Wanted(deletions=False))
    deletions = difference(original, modified, schema, Wanted(changes=False))
    patch = merged_patches(deletions, changes, schema)
    _check(patch, preconditions)
    if not overwrite:
        changed = difference(original, current, schema, Wanted(order=False))
        if has_conflicts(patch, changed, schema):
            raise _conflict(patch, changed)
    return patch


def create_three_way_merge(
    original: dict[str, Any],
    modified: dict[str, Any],
    current: dict[str, Any],
    *,
    preconditions: Iterable[Precondition] = (),
) -> dict[str, Any]:
    """Return the merge patch for `current`; it shares values with the arguments."""
    changes = _only(create_merge_patch(current, modified), nulls=False)
    deletions = _only(create_merge_patch(original, modified), nulls=True)
    patch = merge_patch(deletions, changes)
    _check(patch, preconditions)
    return patch


class ApplyPatch(msgspec.Struct, frozen=True):
    """A patch with its type."""

    content_type: Literal["application/strategic-merge-patch+json", "application/merge-patch+json"]
    patch: dict[str, Any]


def create_apply_patch(
    original: dict[str, Any] | None,
    modified: dict[str, Any],
    current: dict[str, Any],
    schema: Schema | None,
    *,
    overwrite: bool = True,
) -> ApplyPatch:
    """Return the patch that client-side `kubectl apply` sends. An empty patch need not be sent.

    - `original`: None if the object was not created by apply.
    - `schema`: that of a built-in kind, None for custom resources.
    """
    original = original or {}
    if schema is None:
        patch = create_three_way_merge(original, modified, current, preconditions=SAME_OBJECT)
        return ApplyPatch("application/merge-patch+json", patch)
    patch = create_three_way_strategic(original, modified, current, schema, overwrite=overwrite)
    return ApplyPatch("application/strategic-merge-patch+json", patch)


def _only(patch: dict[str, Any], *, nulls: bool) -> dict[str, Any]:
    """Return only the deletions of a merge patch, or all but them. Maps that become empty are dropped."""
    kept: dict[str, Any] = {}
    for key, value in patch.items():
        if isinstance(value, dict) and value:
            below = _only(value, nulls=nulls)
            if below:
                kept[key] = below
        elif (value is None) == nulls:
            kept[key] = value
    return kept


def _check(patch: dict[str, Any], preconditions: Iterable[Precondition]) -> None:
    if not all(holds(patch) for holds in preconditions):
        raise PreconditionFailed(f"precondition failed for: {go_value(patch)}")


def _conflict(patch: dict[str, Any], changed: dict[str, Any]) -> PatchConflict:
    return PatchConflict(
        f"patch:\n{shown(patch)}\nconflicts with changes made from original to current:\n{shown(changed)}\n"
    )
