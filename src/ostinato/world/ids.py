"""Ids: object uids, suffixes of generated names, secret tokens; and hashes in the alphabet of those suffixes.

The real ids are from the operating system's entropy, simulated ones from the seed.
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable

from ostinato.world.rng import Rng

# Kubernetes' alphabet of suffixes: no vowels and no digits that look like letters, to avoid accidental words.
ALPHABET = "bcdfghjklmnpqrstvwxz2456789"

_VARIANTS = dict(zip("0123456789abcdef", "89ab" * 4, strict=True))  # of a UUID: random, with upper bits 10


class Ids:
    __slots__ = ("_entropy", "_uid_entropy")

    def __init__(self, entropy: Callable[[int], bytes], uid_entropy: Callable[[int], bytes] | None = None) -> None:
        """`entropy`: returns a number of random bytes. `uid_entropy`: those of uids, which are no secrets."""
        self._entropy = entropy
        self._uid_entropy = uid_entropy or entropy

    @classmethod
    def real(cls) -> Ids:
        return cls(os.urandom, _UidEntropy().take)

    @classmethod
    def simulated(cls, rng: Rng) -> Ids:
        return cls(rng.bytes)

    def uid(self) -> str:
        """Return a version 4 UUID in canonical form, as in `metadata.uid`."""
        text = self._uid_entropy(16).hex()
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


class _UidEntropy:
    """Entropy of many uids, read in advance: each read is a system call that releases the GIL.

    Threads may share it, since `pop` is atomic. A forked child discards it, or it would repeat the uids of its parent.
    """

    _UIDS = 256

    def __init__(self) -> None:
        self._pieces: list[bytes] = []
        _in_advance.add(self)

    def take(self, size: int) -> bytes:
        while True:
            try:
                return self._pieces.pop()
            except IndexError:
                read = os.urandom(size * self._UIDS)
                self._pieces += [read[start : start + size] for start in range(0, len(read), size)]

    def discard(self) -> None:
        self._pieces.clear()


_in_advance: weakref.WeakSet[_UidEntropy] = weakref.WeakSet()


def _discard_after_fork() -> None:
    for entropy in _in_advance:
        entropy.discard()


os.register_at_fork(after_in_child=_discard_after_fork)


def hash_text(number: int) -> str:
    """Encode a hash for names and labels, as Kubernetes' `SafeEncodeString`."""
    return "".join(ALPHABET[ord(digit) % len(ALPHABET)] for digit in str(number))
