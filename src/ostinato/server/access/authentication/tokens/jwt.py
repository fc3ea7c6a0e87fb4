"""JSON web tokens in compact form: strict parsing, before verification.

- Base64 has exactly one spelling: no padding, no line breaks, no other alphabet, no surplus bits.
- Header and claims are JSON objects in UTF-8 without duplicate keys, NaN or trailing bytes.
- A header with critical extensions is refused: none is implemented.
- Signatures are made with asymmetric keys alone; which algorithms a key is good for is decided by the key, never by the
  token.
"""

from __future__ import annotations

import base64
import binascii
import json
import math
from typing import Any, NamedTuple, NoReturn

LONGEST = 64 * 1024  # characters of a token
_ALPHABET = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_")


class MalformedToken(Exception):  # noqa: N818 - a property of the input
    """The text is not a JSON web token; the message does not quote it."""


class Token(NamedTuple):
    """A well-formed token. Its claims must not be trusted before the signature is verified."""

    header: dict[str, Any]
    claims: dict[str, Any]
    signed: bytes  # the bytes that the signature covers
    signature: bytes

    @property
    def algorithm(self) -> str:
        return str(self.header.get("alg", ""))

    @property
    def key_id(self) -> str:
        return str(self.header.get("kid") or "")

    @property
    def has_extensions(self) -> bool:
        """Whether the header has critical extensions, none of which is implemented."""
        return "crit" in self.header or self.header.get("b64", True) is not True


def parse(text: str) -> Token:
    """Parse a token; MalformedToken if it is not well formed."""
    if len(text) > LONGEST:
        raise MalformedToken("token is too long")
    parts = text.split(".")
    if len(parts) != 3 or not text.isascii():
        raise MalformedToken("compact JWS format must have three parts")
    header, claims, signature = (decode(part) for part in parts)
    signed = text[: len(parts[0]) + 1 + len(parts[1])].encode()
    found = Token(_object(header), _object(claims), signed, signature)
    for name in ("alg", "kid"):
        if not isinstance(found.header.get(name, ""), str | None):
            raise MalformedToken(f"header {name} is not a string")
    return found


def decode(text: str) -> bytes:
    """Decode base64url without padding; MalformedToken unless it is canonical."""
    data = text.encode()
    if not _ALPHABET.issuperset(data):
        raise MalformedToken("illegal base64 data")
    try:
        decoded = base64.urlsafe_b64decode(data + b"=" * (-len(data) % 4))
    except binascii.Error:
        raise MalformedToken("illegal base64 data") from None
    if encode(decoded) != data:
        raise MalformedToken("base64 is not canonical")
    return decoded


def encode(data: bytes) -> bytes:
    return base64.urlsafe_b64encode(data).rstrip(b"=")


def numeric_date(claims: dict[str, Any], name: str) -> int | None:
    """A NumericDate claim in seconds since 1970, None if absent; MalformedToken if it is not a number."""
    value = claims.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise MalformedToken("expected number value to unmarshal NumericDate")
    return int(value)


def audiences(claims: dict[str, Any]) -> list[str]:
    """The audience claim; MalformedToken if it is neither a string nor a list of strings."""
    value = claims.get("aud", [])
    if isinstance(value, str):
        return [value]
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        raise MalformedToken("expected string or array value to unmarshal to Audience")
    return value


def _object(data: bytes) -> dict[str, Any]:
    try:
        found = json.loads(data.decode(), object_pairs_hook=_distinct, parse_constant=_no_number)
    except (ValueError, RecursionError):
        raise MalformedToken("header or claims are not JSON") from None
    if not isinstance(found, dict):
        raise MalformedToken("header or claims are not a JSON object")
    return found


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("duplicate key")
    return found


def _no_number(text: str) -> NoReturn:
    raise ValueError(text)
