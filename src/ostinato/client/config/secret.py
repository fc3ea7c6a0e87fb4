"""Secret: a string that is not shown accidentally.

It is redacted in `repr`, `str`, formatting, errors and logs, and cannot be pickled. `reveal()` is the only access,
which makes every use easy to find.
"""

from __future__ import annotations

import hmac
from typing import Any, Final, NoReturn, Self

REDACTED: Final = "--- REDACTED ---"  # as client-go prints it


class Secret:
    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def reveal(self) -> str:
        return self._text

    def __bool__(self) -> bool:
        return bool(self._text)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Secret):
            return NotImplemented
        return hmac.compare_digest(self._text.encode(), other._text.encode())

    def __hash__(self) -> int:
        return hash((Secret, self._text))

    def __repr__(self) -> str:
        return REDACTED

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, _memo: dict[int, Any]) -> Self:
        return self

    def __reduce__(self) -> NoReturn:
        raise TypeError("a Secret cannot be pickled; pass on its source instead")
