"""Encodings and hashes."""

from __future__ import annotations

import base64
import hashlib
import re
import zlib
from typing import Final

from ostinato.gotemplate.library.registry import Registry
from ostinato.gotemplate.strings import decode, encode

ENCODINGS: Final = Registry()
_register = ENCODINGS

_NEWLINES: Final = re.compile(rb"[\r\n]")
_BASE64: Final = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")
_BASE32: Final = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567")


class CorruptInputError(ValueError):
    """A text is not base64 or base32; the message is Go's, with the position."""


def base64_decoded(text: str) -> bytes:
    """Decode standard base64 with padding; newlines are ignored. Raises CorruptInputError."""
    return _decoded(encode(text), _BASE64, 4, (2, 3), "base64", base64.b64decode)


def _decoded(
    data: bytes, alphabet: frozenset[int], group: int, ends: tuple[int, ...], name: str, decoder: object
) -> bytes:
    position = _corrupt(data, alphabet, group, ends)
    if position is not None:
        raise CorruptInputError(f"illegal {name} data at input byte {position}")
    assert callable(decoder)
    made = decoder(_NEWLINES.sub(b"", data))
    assert isinstance(made, bytes)
    return made


def _corrupt(data: bytes, alphabet: frozenset[int], group: int, ends: tuple[int, ...]) -> int | None:
    """Return the position of the first byte that is not valid; None if there is none."""
    filled = padding = 0
    for position, byte in enumerate(data):
        if byte in b"\r\n":
            continue
        if padding:
            if byte != ord("=") or padding == -1:
                return position
            filled, padding = (0, -1) if filled + 1 == group else (filled + 1, padding + 1)
        elif byte == ord("="):
            if filled not in ends:
                return position
            filled, padding = (0, -1) if filled + 1 == group else (filled + 1, 1)
        elif byte in alphabet:
            filled = (filled + 1) % group
        else:
            return position
    if not filled:
        return None
    return len(data) if padding > 0 or group == 8 else len(data) - filled


@_register("b64enc", "string")
def b64enc(text: str) -> str:
    return base64.b64encode(encode(text)).decode()


@_register("b64dec", "string")
def b64dec(text: str) -> str:
    try:
        return decode(base64_decoded(text))
    except CorruptInputError as error:
        return str(error)


@_register("b32enc", "string")
def b32enc(text: str) -> str:
    return base64.b32encode(encode(text)).decode()


@_register("b32dec", "string")
def b32dec(text: str) -> str:
    try:
        return decode(_decoded(encode(text), _BASE32, 8, (2, 4, 5, 7), "base32", base64.b32decode))
    except CorruptInputError as error:
        return str(error)


@_register("sha1sum", "string")
def sha1sum(text: str) -> str:
    return hashlib.sha1(encode(text), usedforsecurity=False).hexdigest()


@_register("sha256sum", "string")
def sha256sum(text: str) -> str:
    return hashlib.sha256(encode(text)).hexdigest()


@_register("sha512sum", "string")
def sha512sum(text: str) -> str:
    return hashlib.sha512(encode(text)).hexdigest()


@_register("adler32sum", "string")
def adler32sum(text: str) -> str:
    return str(zlib.adler32(encode(text)))
