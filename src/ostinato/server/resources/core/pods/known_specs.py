"""Specs of Pods that were checked before: the Pods of a controller have equal ones, so that they are checked once."""

from __future__ import annotations

from typing import Final

import msgspec

from ostinato.server.resources.strategy import Json

_MAX_SPECS: Final = 128
_MAX_BYTES: Final = 16 * 1024
_NAMED: Final = b'"ephemeral":'  # volumes whose claims are named after the Pod

_encode = msgspec.json.Encoder().encode


def spec_key(pod: Json) -> bytes:
    """Return what the checks of a Pod's spec depend on; empty if that cannot be told without its name.

    Empty also for a Pod without an owner: few have an equal spec.
    """
    if not pod["metadata"].get("ownerReferences"):
        return b""
    key = _encode((pod["spec"], pod["metadata"].get("annotations")))
    return b"" if len(key) > _MAX_BYTES or _NAMED in key else key


class KnownSpecs:
    """The specs that passed a check, by key. Threads may share it."""

    def __init__(self) -> None:
        self._passed: set[bytes] = set()

    def has(self, key: bytes) -> bool:
        return key in self._passed

    def add(self, key: bytes) -> None:
        if key and len(self._passed) < _MAX_SPECS:
            self._passed.add(key)
        elif key:
            self._passed = {key}
