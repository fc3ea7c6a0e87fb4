"""Specs of Pods that were checked before: the Pods of a controller have equal ones, so that they are checked once."""

from __future__ import annotations

import re
from typing import Final

import msgspec

from ostinato.server.resources.strategy import Json

_MAX_SPECS: Final = 128
_MAX_BYTES: Final = 16 * 1024
_NAMED: Final = b'"ephemeral":'  # volumes whose claims are named after the Pod
_TOKEN_VOLUME: Final = re.compile(rb'"kube-api-access-[a-z0-9]{5}"')
_ANY_NAME: Final = b'"\x01"'  # not the text of any string in JSON

_encode = msgspec.json.Encoder().encode


def spec_key(pod: Json) -> bytes:
    """Return what the checks of a Pod's spec depend on; empty if that cannot be told without its name.

    The name of the token's volume is random in Pods without a controller. No check depends on its last letters, but for
    names that are equal to it, so all of them are replaced.
    """
    key = _encode((pod["spec"], pod["metadata"].get("annotations")))
    if len(key) > _MAX_BYTES or _NAMED in key:
        return b""
    volume = _TOKEN_VOLUME.search(key)
    return key if volume is None else key.replace(volume[0], _ANY_NAME)


class KnownSpecs:
    """The specs that passed a check, by key: those that were used last. Threads may share it."""

    def __init__(self) -> None:
        self._passed: dict[bytes, None] = {}  # the key that was used last is the last one

    def has(self, key: bytes) -> bool:
        if key not in self._passed:
            return False
        self._passed.pop(key, None)
        self._passed[key] = None
        return True

    def add(self, key: bytes) -> None:
        if not key:
            return
        self._passed[key] = None
        while len(self._passed) > _MAX_SPECS:
            self._passed.pop(next(iter(self._passed), b""), None)
