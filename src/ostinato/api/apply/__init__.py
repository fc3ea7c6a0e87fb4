"""Server-side apply: field managers, their field sets, conflicts and merging.

`FieldManager` is the entry point for an API server. The packages follow structured-merge-diff and apimachinery; all of
them are pure functions on JSON values:

| package | here | in Go |
|---|---|---|
| `fieldpath` | path elements and field sets, in the JSON form of `fieldsV1` | structured-merge-diff `fieldpath` |
| `typed` | values with the merge rules of their schema: validate, compare, merge | structured-merge-diff `typed` |
| `managedfields` | the entries of managedFields, and their updates on writes | apimachinery `util/managedfields` |
"""

from ostinato.api.apply.field_manager import ApplyError, FieldManager
from ostinato.api.apply.fieldpath.field_set import ANY, FieldSet, FieldSetError, field_path, from_paths, only, without
from ostinato.api.apply.managedfields.entries import ManagedFieldsError, decode, encode
from ostinato.api.apply.managedfields.extract import extract_applied
from ostinato.api.apply.managedfields.scale import ScaleOwnership
from ostinato.api.apply.managedfields.unchanged_times import restore_times
from ostinato.api.apply.managedfields.updater import UnknownVersionError
from ostinato.api.apply.typed.validate import TypedError
from ostinato.api.apply.typed.zero_object import zero_object

__all__ = [
    "ANY",
    "ApplyError",
    "FieldManager",
    "FieldSet",
    "FieldSetError",
    "ManagedFieldsError",
    "ScaleOwnership",
    "TypedError",
    "UnknownVersionError",
    "decode",
    "encode",
    "extract_applied",
    "field_path",
    "from_paths",
    "only",
    "restore_times",
    "without",
    "zero_object",
]
