"""Ids: object uids, suffixes of generated names, secret tokens; and hashes in the alphabet of those suffixes.

The real ids are from the operating system's entropy, simulated ones from the seed.
"""

from __future__ import annotations

import os
from collections.abc import Callable

from ostinato.world.rng import Rng

# Kubernetes' alphabet of suffixes: no vowels and no digits that look like letters, to avoid accidental words.
ALPHABET = "bcdfghjklmnpqrstvwxz2456789"

_VARIANTS = dict(zip("0123456789abcdef", "89ab" * 4, strict=True))  # of a UUID: random, with upper bits 10


class Ids:
    __slots__ = ("_entropy",)

    def __init__(self, entropy: Callable[[int], bytes]) -> None:
        """`entropy`: returns a number of random bytes."""
        self._entropy = entropy

    @classmethod
    def real(cls) -> Ids:
        return cls(os.urandom)

    @classmethod
    def simulated(cls, rng: Rng) -> Ids:
        return cls(rng.bytes)

    def uid(self) -> str:
        """Return a version 4 UUID in canonical form, as in `metadata.uid`."""
        text = self._entropy(16).hex()
        variant = _VARIANTS[text[16]]
        return f"{text[:8]}-{text[8:12]}-4{text[13:16]}-{variant}{text[17:20]}-{text[20:]}"  # 4 is the version

    def suffix(self, length: int = 5) -> str:
        """Return random characters for the end of a generated name."""
        if length < 0:
            raise ValueError(f"suffix() length is {length}; it must not be negative")
        characters: list[str] = []
        while len(characters) < length:
            # Five bits index the alphabet; larger values are dropped, for a uniform distribution.
            indexes = (byte & 0x1F for byte in self._entropy(2 * length))
            characters += (ALPHABET[index] for index in indexes if index < len(ALPHABET))
        return "".join(characters[:length])

    def token(self, size: int = 32) -> bytes:
        """Return random bytes suitable for secrets."""
        if size < 0:
            raise ValueError(f"token() size is {size}; it must not be negative")
        return self._entropy(size)


def hash_text(number: int) -> str:
    """Encode a hash for names and labels, as Kubernetes' `SafeEncodeString`."""
    return "".join(ALPHABET[ord(digit) % len(ALPHABET)] for digit in str(number))
