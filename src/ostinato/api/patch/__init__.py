"""Patches: JSON patch, merge patch and strategic merge patch, applied and computed.

All are pure functions on JSON values. They never change their arguments, and their results share with the arguments
what was not changed: whoever writes to a result in place copies it first. Errors are subclasses of PatchError, with the
words of kube-apiserver and the status code that it answers with.
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
