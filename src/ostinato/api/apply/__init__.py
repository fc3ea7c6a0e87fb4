"""Server-side apply: who owns which field of an object, and what becomes of it when somebody applies.

`FieldManager` is what an API server needs; the pieces it is made of are pure functions on JSON values:

| module | is |
|---|---|
| `elements`, `fieldset` | paths and sets of fields, which are their own JSON (`fieldsV1`) |
| `rules`, `check` | schemas as server-side apply reads them, and what they refuse |
| `typed`, `merge` | the fields of a value, the changes between two, merging, removing and extracting |
| `adapt`, `ownership` | the algebra of owners |
| `entries`, `conflict`, `lastapplied`, `scale`, `zero`, `unchanged`, `extract` | managedFields and what goes with it |
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
