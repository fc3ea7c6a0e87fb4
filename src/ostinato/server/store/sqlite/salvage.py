"""Salvage: rebuild a damaged store from its readable rows, for `--accept-data-loss`.

The write-ahead log is read twice: with repaired checksums, so that transactions behind a damaged frame count, and as
SQLite would read it. A row is used if its own checksum is valid. Lost objects are logged.
"""

from __future__ import annotations

import logging
import shutil
import sqlite3
from contextlib import closing, suppress
from pathlib import Path
from typing import NamedTuple

import msgspec

from ostinato.server.store.sqlite.contents import Row, Summary, checksum_of, create, name_of
from ostinato.server.store.sqlite.files import DamagedStore, size_of, wal_of
from ostinato.server.store.sqlite.mark import Mark
from ostinato.server.store.sqlite.replace import new_name, next_version, replace
from ostinato.server.store.sqlite.wal import mended
from ostinato.world import World

_logger = logging.getLogger(__name__)

_ROWS = "SELECT collection, key, version, data, {} FROM object NOT INDEXED ORDER BY rowid"
_NAMED = 1000  # maximum lost objects logged by name


Key = tuple[str, str]  # collection, key


class Reading(NamedTuple):
    """The result of one way to read the files."""

    whole: bool  # SQLite read everything
    version: int
    rows: dict[Key, Row]
    lost: dict[Key, object]  # resourceVersions of objects known to be missing; None if unknown
    expected: int | None  # the expected number of objects


class Salvaged(NamedTuple):
    """The merged result."""

    version: int
    rows: list[Row]
    lost: dict[Key, object]
    older: dict[Key, object]  # missing resourceVersions of objects that are present in an older state
    unknown: int  # the number of further missing objects


def salvage(path: Path, mark: Mark, damage: DamagedStore, world: World) -> None:
    """Replace a damaged store with its readable part; the damaged files are kept."""
    scratch = path.with_name(f".{path.name}.salvage")
    shutil.rmtree(scratch, ignore_errors=True)  # of an interrupted attempt
    scratch.mkdir(mode=0o700)
    try:
        found = _merge(_readings(path, scratch / "store"))
    finally:
        shutil.rmtree(scratch)
    acknowledged = 0 if mark.reading is None else mark.reading.version
    version = next_version(path, mark, found.version)
    new = new_name(path)
    store = world.ids.token(16).hex()
    with closing(sqlite3.connect(new, isolation_level=None)) as database:
        create(database, version, found.rows, store)
    kept = replace(path, mark, new, store, version, "damaged")
    _logger.warning(
        "damaged store rebuilt from its readable part damage=%r kept=%s objects=%d "
        "readable_up_to=%d acknowledged_up_to=%d next_resource_version=%d",
        damage.what,
        kept,
        len(found.rows),
        found.version,
        acknowledged,
        version + 1,
    )
    _log_objects("object lost", found.lost)
    _log_objects("object recovered at an older resourceVersion", found.older)
    if found.unknown > 0:
        _logger.warning("unnamed objects lost count=%d", found.unknown)


def _log_objects(message: str, objects: dict[Key, object]) -> None:
    for number, ((collection, key), version) in enumerate(sorted(objects.items(), key=lambda item: item[0])):
        if number == _NAMED:
            _logger.warning("%s further=%d", message, len(objects) - _NAMED)
            break
        name = name_of(collection, key, "unknown" if version is None else version)
        _logger.warning("%s object=%r", message, name)


def _merge(readings: list[Reading]) -> Salvaged:
    """Merge the readings: the newest state of each object.

    The first complete reading determines which objects exist, as later ones know less of the write-ahead log. If none
    is complete, all objects are kept: deleted ones may reappear.
    """
    rows: dict[Key, Row] = {}
    lost: dict[Key, object] = {}
    older: dict[Key, object] = {}
    settled = False  # the set of objects is known
    for reading in readings:
        for key, row in reading.rows.items():
            if key in lost:
                older[key] = lost.pop(key)
                rows[key] = row
            elif not settled:
                rows.setdefault(key, row)
        if not settled:
            lost |= {key: version for key, version in reading.lost.items() if key not in rows and key not in lost}
        settled = settled or reading.whole
    version = max((reading.version for reading in readings), default=0)
    expected = next((reading.expected for reading in readings if reading.expected is not None), 0)
    unknown = max(0, expected - len(rows) - len(lost))
    return Salvaged(version, [rows[key] for key in sorted(rows)], lost, older, unknown)


def _readings(path: Path, scratch: Path) -> list[Reading]:
    """Read the files in every way, the most complete first."""
    wal = wal_of(path).read_bytes() if size_of(wal_of(path)) else b""
    if size_of(path) == 0 and not wal:
        return []
    readings = []
    for log in (mended(wal), wal, b""):
        if log is None:
            continue
        for file in scratch.parent.iterdir():
            file.unlink()
        scratch.write_bytes(_with_a_header(path.read_bytes()) if path.exists() else b"")
        if log:
            wal_of(scratch).write_bytes(log)
            if size_of(scratch) == 0:
                _make_first_page(scratch, log)
        readings.append(_read(scratch))
        if readings[-1].whole and not readings[-1].lost:
            break
    return readings


def _with_a_header(data: bytes) -> bytes:
    """A database with a header reconstructed from the constants of our format."""
    if len(data) < 100:
        return data
    return b"SQLite format 3\0" + data[16:18] + b"\x02\x02\0\x40\x20\x20" + data[24:]


def _make_first_page(path: Path, log: bytes) -> None:
    """Write the first page: SQLite deletes the write-ahead log of an empty database."""
    page_size = int.from_bytes(log[8:12], "big")
    with closing(sqlite3.connect(path.with_name("first"), isolation_level=None)) as database:
        database.execute(f"PRAGMA page_size = {page_size}")
        database.execute("PRAGMA journal_mode = WAL")
        database.execute("CREATE TABLE any (x)")
    path.write_bytes(path.with_name("first").read_bytes()[:page_size])


def _read(path: Path) -> Reading:
    rows: dict[Key, Row] = {}
    lost: dict[Key, object] = {}
    version, expected, whole = 0, None, True
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        database.text_factory = lambda data: data.decode(errors="backslashreplace")
        try:
            columns = [name for _, name, *_ in database.execute("PRAGMA table_info(object)")]
        except sqlite3.DatabaseError:
            columns, whole = [], False
        query = _ROWS.format("checksum" if "checksum" in columns else "NULL")
        for direction in ("ASC", "DESC"):
            try:
                for *row, stored in database.execute(f"{query} {direction}"):
                    collection, key, number, data = row
                    if not _is_good(row, stored):
                        lost[str(collection), str(key)] = number
                    elif collection:
                        rows[collection, key] = (collection, key, number, data)
                        version = max(version, number)
                    else:
                        version = max(version, number)
                        with suppress(ValueError):
                            expected = Summary.decode(data).objects
                break
            except sqlite3.DatabaseError:
                whole = False  # read the rest from the other end
        try:
            keys = database.execute(
                "SELECT collection, key FROM object INDEXED BY sqlite_autoindex_object_1"
            ).fetchall()
        except sqlite3.DatabaseError:
            whole, keys = False, []
    lost |= {key: None for key in keys if key[0] and key not in rows and key not in lost}
    lost = {key: number for key, number in lost.items() if key[0] and key not in rows}
    return Reading(whole, version, rows, lost, expected)


def _is_good(row: list[object], stored: object) -> bool:
    """Whether a row is valid: its checksum, or in format 1, which has none, whether it is JSON."""
    if not all(isinstance(value, kind) for value, kind in zip(row, (str, str, int, bytes), strict=True)):
        return False
    if stored is not None:
        return checksum_of(*row) == stored  # type: ignore[arg-type]  # checked above
    if row[0] == "":
        return True
    try:
        msgspec.json.decode(row[3])  # type: ignore[call-overload]  # checked above
    except (msgspec.DecodeError, UnicodeDecodeError):
        return False
    return True
