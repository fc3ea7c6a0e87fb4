"""What a process has done to its files, as recorded by `disk.c`, and what is left of it after a power failure.

The model of the file system:

- A sync of a file makes its content durable. Of what was written since, each page is on the disk or not.
- A sync of a directory makes its names durable. Of the changes since, a prefix is on the disk.
"""

from __future__ import annotations

import os
import shutil
import struct
import subprocess
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

PAGE = 4096
_HEAD = struct.Struct("=BxHIQ")
_SOURCE = Path(__file__).with_name("disk.c")

NONE, FULL, READ_ONLY, NO_SYNC, DIE = range(5)  # modes of `disk.c`


class Record(NamedTuple):
    type: str  # w(rite), s(ync), t(runcate), c(reate), u(nlink), r(ename)
    path: str
    offset: int
    data: bytes


def can_compile() -> bool:
    return shutil.which("cc") is not None


class Layer:
    """The file layer below a directory, for processes with its environment."""

    def __init__(self, root: Path, place: Path) -> None:
        """`root`: the directory. `place`: for the layer's own files."""
        place.mkdir(parents=True, exist_ok=True)
        self.root = root.resolve()
        self._library = place / "disk.so"
        self._journal = place / "journal"
        self._control = place / "control"
        self._control.write_bytes(bytes(16))
        self._base: dict[str, bytes] = {}
        command = ["cc", "-shared", "-fPIC", "-O1", "-o", str(self._library), str(_SOURCE), "-ldl", "-lpthread"]
        subprocess.run(command, check=True, capture_output=True)

    @property
    def environment(self) -> dict[str, str]:
        return {
            "LD_PRELOAD": str(self._library),
            "OSTINATO_DISK_ROOT": str(self.root),
            "OSTINATO_DISK_JOURNAL": str(self._journal),
            "OSTINATO_DISK_CONTROL": str(self._control),
        }

    def set(self, mode: int, calls: int = 0) -> None:
        """Let calls fail from now on; `calls`: until the process dies."""
        with self._control.open("r+b") as file:
            file.write(struct.pack("=qq", mode, calls))

    def begin(self) -> None:
        """Everything on the disk is durable; forget how it got there."""
        self._journal.write_bytes(b"")
        self._base = {
            str(path.relative_to(self.root)): path.read_bytes() for path in self.root.rglob("*") if path.is_file()
        }

    def records(self) -> list[Record]:
        return read(self._journal)

    def disk(self) -> Disk:
        """The disk as it was at `begin`."""
        return Disk(self._base)

    def lose_power(self, keeps: Callable[[], bool]) -> int:
        """The machine loses power: replace the files by what is on the disk. The number of lost pages."""
        disk = self.disk()
        disk.replay(self.records())
        left = disk.left(keeps)
        shutil.rmtree(self.root)
        write(self.root, left)
        return disk.lost


def read(path: Path) -> list[Record]:
    data = path.read_bytes()
    found, place = [], 0
    while place < len(data):
        kind, name, length, offset = _HEAD.unpack_from(data, place)
        place += _HEAD.size
        end = place + name + length
        found.append(Record(chr(kind), data[place : place + name].decode(), offset, data[place + name : end]))
        place = end
    return found


def write(root: Path, files: Mapping[str, bytes]) -> None:
    root.mkdir(parents=True, exist_ok=True)
    for name, data in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(data)
        os.chmod(root / name, 0o600)


@dataclass(eq=False)
class _File:
    durable: bytearray = field(default_factory=bytearray)
    unsynced: list[Record] = field(default_factory=list)

    def sync(self) -> None:
        for record in self.unsynced:
            _apply(self.durable, record)
        self.unsynced = []


class Disk:
    """The durable state, and what is not durable yet."""

    def __init__(self, base: Mapping[str, bytes]) -> None:
        self._names = {name: _File(bytearray(data)) for name, data in base.items()}  # as the process sees them
        self._durable = dict(self._names)  # as after a power failure
        self._changes: list[dict[str, _File]] = []  # states of the names since the last sync of the directory
        self.lost = 0  # pages, at the last `left`

    def replay(self, records: Iterable[Record]) -> None:
        for record in records:
            self.take(record)

    def take(self, record: Record) -> None:
        name = record.path
        if record.type in "cur":
            self._rename(record)
        elif record.type == "s" and name not in self._names:
            self._durable, self._changes = dict(self._names), []
        elif record.type == "s":
            self._names[name].sync()
        else:
            self._names.setdefault(name, _File()).unsynced.append(record)

    def _rename(self, record: Record) -> None:
        if record.type == "c":
            self._names[record.path] = _File()
        else:
            file = self._names.pop(record.path)
            if record.type == "r":
                self._names[record.data.decode()] = file
        self._changes.append(dict(self._names))

    def left(self, keeps: Callable[[], bool]) -> dict[str, bytes]:
        """What a machine finds after a power failure; `keeps` decides for each change that is not durable."""
        self.lost = 0
        names = self._durable
        for state in self._changes:
            if not keeps():
                break
            names = state
        return {name: self._content(file, keeps) for name, file in names.items()}

    def _content(self, file: _File, keeps: Callable[[], bool]) -> bytes:
        content = bytearray(file.durable)
        for record in file.unsynced:
            for piece in _pages(record):
                if keeps():
                    _apply(content, piece)
                else:
                    self.lost += 1
        return bytes(content)


def _pages(record: Record) -> list[Record]:
    """The pieces of a change that reach the disk independently of each other."""
    if record.type != "w":
        return [record]
    found, start, end = [], record.offset, record.offset + len(record.data)
    while start < end:
        stop = min(end, start - start % PAGE + PAGE)
        found.append(Record("w", record.path, start, record.data[start - record.offset : stop - record.offset]))
        start = stop
    return found


def _apply(content: bytearray, record: Record) -> None:
    if record.type == "t":
        if record.offset <= len(content):
            del content[record.offset :]
        else:
            content.extend(bytes(record.offset - len(content)))
    else:
        if record.offset > len(content):
            content.extend(bytes(record.offset - len(content)))
        content[record.offset : record.offset + len(record.data)] = record.data
