"""A store with acknowledged objects, as a killed server leaves it, and ways to damage its files."""

from __future__ import annotations

import asyncio
import shutil
from contextlib import closing
from pathlib import Path

from ostinato.server.store.log_sqlite import SQLiteLog
from ostinato.server.store.records import UnusableStore, Write
from ostinato.world import World

OBJECTS = 150
FILES = ("store.db", "store.db-wal", "store.db-mark")


def data_of(number: int) -> bytes:
    return (b"%06d" % number) * 60


def expected(objects: int = OBJECTS) -> dict[str, bytes]:
    return {f"default/{number}": data_of(number) for number in range(objects)}


def write(log: SQLiteLog, first: int, last: int, batch: int = 5) -> None:
    """Acknowledge objects with these numbers, some of them after an earlier version that is replaced."""
    version = 2 + 3 * first
    for start in range(first, last, batch):
        numbers = range(start, min(start + batch, last))
        asyncio.run(
            log.append([Write("configmaps", f"default/{n}", version + 3 * (n - first), b"old") for n in numbers])
        )
        writes = []
        for n in numbers:
            old = version + 3 * (n - first)
            writes.append(Write("configmaps", f"default/{n}", old + 1, data_of(n), old))
        asyncio.run(log.append(writes))


def killed(directory: Path, world: World, *, checkpointed: int = 0, objects: int = OBJECTS) -> Path:
    """The files of a store whose server was killed, with all but `checkpointed` objects in the write-ahead log."""
    (directory / "alive").mkdir()
    (directory / "killed").mkdir()
    with closing(SQLiteLog(directory / "alive" / "store.db", world)) as log:
        write(log, 0, checkpointed)
        log._database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        write(log, checkpointed, objects)
        copy(directory / "alive", directory / "killed")
    return directory / "killed" / "store.db"


def copy(source: Path, target: Path) -> None:
    for file in target.glob("store.db*"):
        file.unlink()
    for name in FILES:
        if (source / name).exists():
            shutil.copyfile(source / name, target / name)


def objects_of(path: Path, world: World, *, accept_data_loss: bool = False) -> dict[str, bytes]:
    """What a start finds; UnusableStore if it is refused."""
    with closing(SQLiteLog(path, world, accept_data_loss=accept_data_loss)) as log:
        return {key: data for _, key, _, data in log.load()[1]}


def refusal(path: Path, world: World) -> str | None:
    """Why a start is refused, or None if everything is there. Silent loss fails the test."""
    before = _files(path)
    try:
        found = objects_of(path, world)
    except UnusableStore as error:
        message = str(error)
    else:
        assert found == expected()
        return None
    assert _files(path) == before, "a refused start changed the files"
    assert "\n" not in message
    return message


def _files(path: Path) -> dict[str, bytes]:
    """Those that hold something: opening a database for reading makes an empty write-ahead log."""
    files = {file.name: file.read_bytes() for file in path.parent.iterdir() if not file.name.endswith("-shm")}
    return {name: data for name, data in files.items() if data}


def flip(path: Path, offset: int, bit: int) -> None:
    data = bytearray(path.read_bytes())
    data[offset] ^= 1 << bit
    path.write_bytes(data)
