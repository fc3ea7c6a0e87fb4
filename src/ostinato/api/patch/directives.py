"""Keywords of strategic merge patches: strategies in schemas, and directives in patches."""

from __future__ import annotations

from typing import Final

# Values of `x-kubernetes-patch-strategy`; the first two also of `$patch`.
MERGE: Final = "merge"
REPLACE: Final = "replace"
RETAIN: Final = "retainKeys"  # strategy only: patches of the field list the keys to retain
DELETE: Final = "delete"  # directive only

# Keys in maps, beside the fields.
PATCH: Final = "$patch"
RETAIN_KEYS: Final = "$retainKeys"

# Prefixes of keys: followed by a slash and the name of a list.
SET_ELEMENT_ORDER: Final = "$setElementOrder"
DELETE_FROM_PRIMITIVE_LIST: Final = "$deleteFromPrimitiveList"
