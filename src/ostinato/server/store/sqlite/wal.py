"""Parser of SQLite's write-ahead log.

SQLite treats the first frame with a wrong checksum as the end of the log: after a crash the last transaction may be
torn. A damaged frame in the middle looks the same, and SQLite drops all later transactions.

The two can be distinguished. Each transaction is synced before the next one is written, so only the last can be torn.
Frames of a *further* transaction after the first bad frame prove that the bad one was synced: it is damaged.

The format: https://www.sqlite.org/fileformat.html#the_write_ahead_log
"""

from __future__ import annotations

import struct
import sys
from array import array
from typing import NamedTuple

_HEADER = struct.Struct(">8I")  # magic, version, page size, checkpoint sequence, salt 1 and 2, checksum 1 and 2
_FRAME = struct.Struct(">6I")  # page, size of the database after a commit or 0, salt 1 and 2, checksum 1 and 2
_MAGIC = 0x377F0682  # checksums over little-endian words; with the lowest bit set, over big-endian ones
_MASK = 0xFFFFFFFF
_PAGE_SIZES = {1 << power for power in range(9, 17)}

_Sum = tuple[int, int]


class _Frame(NamedTuple):
    start: int
    page: int
    commit: int  # size of the database after the transaction that this frame commits; 0 for other frames
    salts: tuple[int, int]
    checksum: _Sum


class _Log(NamedTuple):
    data: memoryview
    page_size: int
    big_endian: bool
    salts: tuple[int, int]
    checksum: _Sum | None  # of the header; None: damaged
    frames: list[_Frame]


def is_damaged(data: bytes) -> bool:
    """Whether a synced transaction was damaged later. False for a log that a crash has torn."""
    log = _parse(data)
    if log is None:
        return False
    frames, valid = log.frames, _valid(log)
    for frame, following in zip(frames[valid:], frames[valid + 1 :], strict=False):
        if frame.commit and frame.salts == following.salts == log.salts and _follows(log, following, frame.checksum):
            return True
    return False


def holds_transactions(data: bytes) -> bool:
    """Whether it has a transaction that SQLite would read."""
    log = _parse(data)
    return log is not None and any(frame.commit for frame in log.frames[: _valid(log)])


def mended(data: bytes) -> bytes | None:
    """The log with recomputed checksums, so that SQLite reads all of it; None if it has no frames.

    Damaged pages remain damaged: the reader must check every row.
    """
    log = _parse(data)
    if log is None:
        return None
    last = max((n for n, frame in enumerate(log.frames) if frame.salts == log.salts and frame.commit), default=-1)
    if last < 0:
        return None
    magic = _MAGIC | log.big_endian
    header = struct.pack(">6I", magic, 3007000, log.page_size, 0, *log.salts)
    checksum = _checksum(header, log.big_endian, (0, 0))
    whole = bytearray(header + struct.pack(">2I", *checksum))
    for frame in log.frames[: last + 1]:
        page = log.data[frame.start + _FRAME.size : frame.start + _FRAME.size + log.page_size]
        head = struct.pack(">2I", frame.page, frame.commit)
        checksum = _checksum(page, log.big_endian, _checksum(head, log.big_endian, checksum))
        whole += head + struct.pack(">4I", *log.salts, *checksum) + page
    return bytes(whole)


def _parse(data: bytes) -> _Log | None:
    if len(data) < _HEADER.size + _FRAME.size + min(_PAGE_SIZES):
        return None
    magic, version, page_size, _, salt1, salt2, *stored = _HEADER.unpack_from(data)
    big_endian = bool(magic & 1)
    computed = _checksum(data[:24], big_endian, (0, 0))
    if magic & ~1 == _MAGIC and version == 3007000 and page_size in _PAGE_SIZES and computed == tuple(stored):
        return _frames(data, page_size, big_endian, (salt1, salt2), computed)
    return _behind_a_damaged_header(data)


def _behind_a_damaged_header(data: bytes) -> _Log | None:
    """The frames after a damaged header. Byte order and page size are inferred: each checksum follows from the previous
    one.
    """
    for page_size in sorted(_PAGE_SIZES, key=lambda size: size != 4096):
        for big_endian in (False, True):
            log = _frames(data, page_size, big_endian, (0, 0), None)
            pairs = zip(log.frames, log.frames[1:4], strict=False)
            if any(a.salts == b.salts and _follows(log, b, a.checksum) for a, b in pairs):
                return log._replace(salts=log.frames[1].salts)
    return None


def _frames(data: bytes, page_size: int, big_endian: bool, salts: tuple[int, int], checksum: _Sum | None) -> _Log:
    frames = []
    for start in range(_HEADER.size, len(data) - _FRAME.size - page_size + 1, _FRAME.size + page_size):
        page, commit, salt1, salt2, sum1, sum2 = _FRAME.unpack_from(data, start)
        frames.append(_Frame(start, page, commit, (salt1, salt2), (sum1, sum2)))
    return _Log(memoryview(data), page_size, big_endian, salts, checksum, frames)


def _valid(log: _Log) -> int:
    """The number of frames that SQLite reads."""
    checksum = log.checksum
    if checksum is None:
        return 0
    for number, frame in enumerate(log.frames):
        if frame.salts != log.salts or frame.page == 0 or not _follows(log, frame, checksum):
            return number
        checksum = frame.checksum
    return len(log.frames)


def _follows(log: _Log, frame: _Frame, checksum: _Sum) -> bool:
    """Whether a frame was written after the one with this checksum."""
    page = frame.start + _FRAME.size
    head = _checksum(log.data[frame.start : frame.start + 8], log.big_endian, checksum)
    return _checksum(log.data[page : page + log.page_size], log.big_endian, head) == frame.checksum


def _checksum(data: bytes | memoryview, big_endian: bool, start: _Sum) -> _Sum:
    words = array("I", bytes(data))
    if big_endian != (sys.byteorder == "big"):
        words.byteswap()
    first, second = start
    pairs = iter(words)
    for word, next_word in zip(pairs, pairs, strict=True):
        first = (first + word + second) & _MASK
        second = (second + next_word + first) & _MASK
    return first, second
