"""The words of strategic merge patches: strategies that a schema names, and directives that a patch holds."""

from __future__ import annotations

from typing import Final

# What `x-kubernetes-patch-strategy` and, the first two, `$patch` say.
MERGE: Final = "merge"
REPLACE: Final = "replace"
RETAIN: Final = "retainKeys"  # a strategy only: patches of this field name the keys that stay
DELETE: Final = "delete"  # a directive only

# Keys among the fields of a map.
PATCH: Final = "$patch"
RETAIN_KEYS: Final = "$retainKeys"

# Keys in front of the name of a list that stands beside them, after a slash.
SET_ELEMENT_ORDER: Final = "$setElementOrder"
DELETE_FROM_PRIMITIVE_LIST: Final = "$deleteFromPrimitiveList"
