"""Three-way merges: the patch that brings a live object to a new configuration, and leaves alone what others set.

Three documents go in: `original`, the configuration as it was applied last; `modified`, the configuration now; and
`current`, the live object. Additions and changes come from comparing `current` with `modified`, deletions from
comparing `original` with `modified`: a field that was never in a configuration is not deleted. Built-in kinds are
patched by strategic merge, custom resources, whose schemas say nothing of merge keys, by merge patch.
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
    """The patch does not mention a field at the top of the object."""
    return lambda patch: key not in patch


def metadata_key_unchanged(key: str) -> Precondition:
    """The patch does not mention a field of the metadata."""

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
    """The strategic merge patch for `current`.

    With `overwrite` off, a field that was changed to one value in `modified` and to another in `current` is refused
    as a PatchConflict. The result shares values with the arguments.
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
    """The merge patch for `current`. The result shares values with the arguments."""
    changes = _only(create_merge_patch(current, modified), nulls=False)
    deletions = _only(create_merge_patch(original, modified), nulls=True)
    patch = merge_patch(deletions, changes)
    _check(patch, preconditions)
    return patch


class ApplyPatch(msgspec.Struct, frozen=True):
    """A patch with the type under which it is sent."""

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
    """The patch that client-side `kubectl apply` sends: `schema` is that of a built-in kind, None for custom resources.

    `original` is None if the object was not created by apply. An empty patch need not be sent.
    """
    original = original or {}
    if schema is None:
        patch = create_three_way_merge(original, modified, current, preconditions=SAME_OBJECT)
        return ApplyPatch("application/merge-patch+json", patch)
    patch = create_three_way_strategic(original, modified, current, schema, overwrite=overwrite)
    return ApplyPatch("application/strategic-merge-patch+json", patch)


def _only(patch: dict[str, Any], *, nulls: bool) -> dict[str, Any]:
    """Of a merge patch, the deletions alone or all the rest; an empty map is a value, unless it became empty here."""
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
