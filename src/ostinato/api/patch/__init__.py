"""Patches: apply and compute JSON patch, JSON merge patch and strategic merge patch.

- Pure functions on JSON values: arguments are not modified. Results share structure with them; copy a result before you
  modify it in place.
- Errors are subclasses of PatchError, with kube-apiserver's messages and status codes.
"""

from __future__ import annotations

from ostinato.api.patch.errors import (
    InapplicablePatch,
    MalformedPatch,
    PatchConflict,
    PatchError,
    PatchTooLarge,
    PreconditionFailed,
    TestFailed,
    UnmergeablePatch,
)
from ostinato.api.patch.json_diff import create_json_patch
from ostinato.api.patch.json_patch import MAX_COPIED_BYTES, MAX_OPERATIONS, check_operations, json_patch
from ostinato.api.patch.merge_patch import create_merge_patch, merge_patch
from ostinato.api.patch.strategic import strategic_merge
from ostinato.api.patch.strategic_diff import create_two_way_strategic
from ostinato.api.patch.three_way import (
    SAME_OBJECT,
    ApplyPatch,
    Precondition,
    create_apply_patch,
    create_three_way_merge,
    create_three_way_strategic,
    key_unchanged,
    metadata_key_unchanged,
)

__all__ = [
    "MAX_COPIED_BYTES",
    "MAX_OPERATIONS",
    "SAME_OBJECT",
    "ApplyPatch",
    "InapplicablePatch",
    "MalformedPatch",
    "PatchConflict",
    "PatchError",
    "PatchTooLarge",
    "Precondition",
    "PreconditionFailed",
    "TestFailed",
    "UnmergeablePatch",
    "check_operations",
    "create_apply_patch",
    "create_json_patch",
    "create_merge_patch",
    "create_three_way_merge",
    "create_three_way_strategic",
    "create_two_way_strategic",
    "json_patch",
    "key_unchanged",
    "merge_patch",
    "metadata_key_unchanged",
    "strategic_merge",
]
