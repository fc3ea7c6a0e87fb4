"""Base64 as Go decodes it: line breaks are skipped, trailing bits are ignored.

Errors have the position of the invalid byte, in Go's words.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from binascii import Error
from typing import Final

_ALPHABET: Final = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")
_BREAKS: Final = str.maketrans("", "", "\r\n")


class Base64Error(ValueError):
    """The text is not valid base64."""


def canonical_base64(text: str) -> str:
    """Decode and encode again as Go does; Base64Error if the text is invalid."""
    try:
        if b64encode(b64decode(text)).decode() == text:
            return text
    except (Error, ValueError):
        pass
    at = _fault(text)
    if at is not None:
        raise Base64Error(f"illegal base64 data at input byte {at}")
    return b64encode(b64decode(text.translate(_BREAKS))).decode()


def _fault(text: str) -> int | None:
    """The position of the first invalid byte: groups of four characters, the last one padded with `=`."""
    data = text.encode()
    at = in_group = 0
    while at < len(data):
        character = chr(data[at])
        at += 1
        if character in "\r\n":
            continue
        if character in _ALPHABET:
            in_group = (in_group + 1) % 4
            continue
        if character != "=" or in_group < 2:
            return at - 1
        return _fault_at_end(data, at, in_group)
    return None if in_group == 0 else at - in_group


def _fault_at_end(data: bytes, at: int, in_group: int) -> int | None:
    """The position of an invalid byte after the first `=`, which must be the third or fourth of its group."""
    if in_group == 2:
        at = _after_breaks(data, at)
        if at == len(data):
            return at
        if data[at] != ord("="):
            return at - 1
        at += 1
    at = _after_breaks(data, at)
    return None if at == len(data) else at


def _after_breaks(data: bytes, at: int) -> int:
    while at < len(data) and data[at] in b"\r\n":
        at += 1
    return at
