"""Packing: an object in a store takes a fraction of its size, for it is like others of its kind.

What follows the metadata of an object is kept as its differences from that of another, the *reference*. Metadata, which
controllers ask for most, stays as it is.

- The reference is one that came before: that to which the object's last state was compared, else the last that was
  like none. Lists come in the order of names, and objects that stand together are alike.
- What is not like the reference stays as it came, and is the next reference. So references take no memory of their own
  as long as the object they were taken from stays what it is, and a collection of all sorts is merely not packed.
- What is small is not worth it, and what is very large would take too long in one step. Where several in a row were
  like none, few of those that follow are compared at all.
"""

from __future__ import annotations

import zlib
from typing import Final

from ostinato.cache.store.entry import Entry

SMALLEST: Final = 256  # bytes
LARGEST: Final = 1 << 14  # bytes
_ALIKE: Final = 3  # what takes a third or less is worth it
_SEVERAL: Final = 4
_FEW: Final = 16  # one of so many
_NARROW: Final = 1 << 12  # references up to this size need but a small window, which is made in half of the time


class Packer:
    """Packs the objects of one collection."""

    __slots__ = ("_misses", "_reference")

    def __init__(self) -> None:
        self._reference = b""  # what followed the metadata of the last object that was like none; b"" if none came
        self._misses = 0  # objects since the last that was packed

    def packed(self, entry: Entry, reference: bytes = b"") -> Entry:
        """The entry as it is to be kept; `reference` is that of the object's last state, if it had one."""
        rest = entry.suffix
        if entry.reference or not SMALLEST <= len(rest) <= LARGEST:
            return entry.stored()
        reference = reference or self._reference
        if reference and (self._misses < _SEVERAL or self._misses % _FEW == 0):
            differences = _differences(rest, reference)
            if len(differences) * _ALIKE <= len(rest):
                self._misses = 0
                return entry.stored(differences, reference)
        self._misses += 1
        self._reference = rest
        return entry.stored()


def _differences(data: bytes, reference: bytes) -> bytes:
    narrow = len(reference) <= _NARROW
    packer = zlib.compressobj(1, zlib.DEFLATED, -13 if narrow else -15, 5 if narrow else 8, 0, reference)
    return packer.compress(data) + packer.flush()
