"""Namespace patterns: which namespaces a controller reconciles.

| patterns | namespaces |
|---|---|
| `"team-*"` | that begin with `team-`, also those that are created later |
| `["team-*", "shared"]`, or `"team-*,shared"` | these and `shared` |
| `"!kube-*"` | all but those that begin with `kube-` |
| `"team-*,!team-test-?"` | those of a team, except for its tests |

`*` is any text, `?` one character. A namespace is included if a pattern matches, or all are exclusions, and no
exclusion matches. Cluster-scoped objects have no namespace, and are always included.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Sequence
from functools import lru_cache
from typing import Final, TypeAlias

from ostinato.api.gvk import NamespacedName

NamespaceSelection: TypeAlias = str | Sequence[str]

_REMEMBERED: Final = 4096  # namespaces
_PATTERN: Final = re.compile(r"!?[a-z0-9*?-]+")


class NamespacePatterns:
    def __init__(self, selection: NamespaceSelection) -> None:
        """Raises ValueError for a pattern that no namespace can match."""
        parts = selection.split(",") if isinstance(selection, str) else list(selection)
        patterns = [each.strip() if isinstance(each, str) else each for each in parts]
        for each in patterns:
            if not isinstance(each, str) or not _PATTERN.fullmatch(each):
                raise ValueError(
                    f"namespaces: {each!r} is not a pattern; use lower-case letters, digits, '-', '*' and '?', "
                    "with '!' in front to exclude"
                )
        self._text = ",".join(patterns)
        self._included = _matcher(tuple(each for each in patterns if not each.startswith("!")))
        self._excluded = _matcher(tuple(each[1:] for each in patterns if each.startswith("!")))
        self._known: dict[str, bool] = {}  # by namespace

    def __str__(self) -> str:
        return self._text

    @property
    def includes_all(self) -> bool:
        return self._text == "*"

    def includes_key(self, key: Hashable) -> bool:
        """Return whether the namespace of a key is included; True for a key of another form."""
        return not isinstance(key, NamespacedName) or self.includes(key.namespace)

    def includes(self, namespace: str) -> bool:
        if not namespace:
            return True
        known = self._known.get(namespace)
        if known is None:
            if len(self._known) >= _REMEMBERED:
                self._known.clear()
            known = self._known[namespace] = self._match(namespace)
        return known

    def _match(self, namespace: str) -> bool:
        if self._excluded is not None and self._excluded.fullmatch(namespace):
            return False
        return self._included is None or self._included.fullmatch(namespace) is not None


def is_pattern(text: str) -> bool:
    """Return whether the text is more than the name of one namespace."""
    return not {"*", "?", "!", ","}.isdisjoint(text)


@lru_cache(maxsize=64)
def _matcher(patterns: tuple[str, ...]) -> re.Pattern[str] | None:
    """Return an expression for any of the patterns; None without patterns."""
    if not patterns:
        return None
    texts = [re.escape(each).replace(r"\*", ".*").replace(r"\?", ".") for each in patterns]
    return re.compile("|".join(f"(?:{each})" for each in texts))
