"""Known applies: results for servers that get the same requests again and again.

The simulated worlds of one exploration begin alike, and their servers share the results. What an apply makes of an
object depends on the configuration, the object, the field manager and the time alone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import msgspec

if TYPE_CHECKING:
    from ostinato.api.apply import FieldManager
    from ostinato.server.request.route import Route

_MOST: Final = 4096
_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode


class KnownApplies:
    def __init__(self) -> None:
        self._known: dict[tuple[Any, ...], bytes] = {}  # the objects, encoded

    def get(
        self,
        about: tuple[FieldManager, Route, bytes, Any, str],
        old: dict[str, Any] | None,
        apply: Callable[[dict[str, Any] | None], dict[str, Any]],
    ) -> dict[str, Any]:
        """Return a new object; calls `apply` if it is not known.

        `about`: the fields' manager, the request's route, body and options, and the time.
        """
        key = (*about, _encode(old))
        known = self._known.get(key)
        if known is not None:
            found: dict[str, Any] = _decode(known)
            return found
        made = apply(old)
        if len(self._known) >= _MOST:
            self._known.clear()
        self._known[key] = _encode(made)
        return made
