"""Packing: stores an object compressed against a similar object of the same kind.

The JSON after the metadata is compressed with zlib, with that of another object, the *reference*, as the dictionary.
Metadata, which controllers read most, stays as it is. docs/dev/cache-memory.md has the measurements.

- The reference is that of the object's previous state, else the last object that was not similar to its own reference.
  Lists are sorted by name, and neighbours are similar.
- An object that is not similar to the reference is stored as it is, and becomes the next reference. So references
  take no memory of their own while that object is unchanged, and a heterogeneous collection is not packed.
- Small objects are not worth it, and very large ones would block the event loop. After several dissimilar objects in a
  row only some of the next ones are tried.
"""

from __future__ import annotations

import zlib
from typing import Final

from ostinato.cache.store.entry import Entry

SMALLEST: Final = 256  # bytes
LARGEST: Final = 1 << 14  # bytes
_MIN_RATIO: Final = 3  # pack if that saves two thirds
_MAX_MISSES: Final = 4  # dissimilar objects in a row, after which only some are tried
_TRY_EVERY: Final = 16
_SMALL_REFERENCE: Final = 1 << 12  # bytes; a smaller zlib window suffices, set up in half the time


class Packer:
    """Packs the objects of one collection."""

    __slots__ = ("_misses", "_reference")

    def __init__(self) -> None:
        self._reference = b""  # of the last dissimilar object; b"" before the first
        self._misses = 0  # consecutive objects that were not packed

    def pack(self, entry: Entry, reference: bytes = b"") -> Entry:
        """Return the entry as the store keeps it; `reference` is that of the object's previous state, if any."""
        suffix = entry.suffix
        if entry.reference or not SMALLEST <= len(suffix) <= LARGEST:
            return entry.stored()
        reference = reference or self._reference
        if reference and (self._misses < _MAX_MISSES or self._misses % _TRY_EVERY == 0):
            compressed = _compress(suffix, reference)
            if len(compressed) * _MIN_RATIO <= len(suffix):
                self._misses = 0
                return entry.stored(compressed, reference)
        self._misses += 1
        self._reference = suffix
        return entry.stored()


def _compress(data: bytes, reference: bytes) -> bytes:
    small = len(reference) <= _SMALL_REFERENCE
    packer = zlib.compressobj(1, zlib.DEFLATED, -13 if small else -15, 5 if small else 8, 0, reference)
    return packer.compress(data) + packer.flush()
