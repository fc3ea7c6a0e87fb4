"""Ids: object uids, suffixes of generated names, secret tokens; and hashes, written as those suffixes are.

In the real world all ids come from the operating system's entropy. In a simulation they come from the seed, so
that a run can be repeated; nothing there is worth keeping secret.
"""

from __future__ import annotations

import os
from collections.abc import Callable

from ostinato.world.rng import Rng

# No vowels, and no digits that look like letters: no accidental words. Kubernetes draws its suffixes from the same.
ALPHABET = "bcdfghjklmnpqrstvwxz2456789"

_VARIANTS = dict(zip("0123456789abcdef", "89ab" * 4, strict=True))  # of a UUID: a random digit, its upper bits 10


class Ids:
    __slots__ = ("_entropy",)

    def __init__(self, entropy: Callable[[int], bytes]) -> None:
        """`entropy(count)` gives that many random bytes."""
        self._entropy = entropy

    @classmethod
    def real(cls) -> Ids:
        return cls(os.urandom)

    @classmethod
    def simulated(cls, rng: Rng) -> Ids:
        return cls(rng.bytes)

    def uid(self) -> str:
        """A version 4 UUID in its canonical form, as in `metadata.uid`."""
        text = self._entropy(16).hex()
        variant = _VARIANTS[text[16]]
        return f"{text[:8]}-{text[8:12]}-4{text[13:16]}-{variant}{text[17:20]}-{text[20:]}"  # 4 is the version

    def suffix(self, length: int = 5) -> str:
        """Random characters for the end of a generated name."""
        if length < 0:
            raise ValueError(f"a suffix cannot have {length} characters")
        characters: list[str] = []
        while len(characters) < length:
            # Five bits index the alphabet; the values beyond its end are dropped, so that all are equally likely.
            indexes = (byte & 0x1F for byte in self._entropy(2 * length))
            characters += (ALPHABET[index] for index in indexes if index < len(ALPHABET))
        return "".join(characters[:length])

    def token(self, size: int = 32) -> bytes:
        """Random bytes fit for secrets."""
        if size < 0:
            raise ValueError(f"a token cannot have {size} bytes")
        return self._entropy(size)


def hash_text(number: int) -> str:
    """A hash as it stands in names and labels: digits turned into letters of which no word comes by chance."""
    return "".join(ALPHABET[ord(digit) % len(ALPHABET)] for digit in str(number))
