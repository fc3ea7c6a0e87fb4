"""Contents of a store's database, and their checks.

- Each object is a row with a checksum of its collection, key, resourceVersion and data.
- A row without a key holds the last resourceVersion and a summary: the number of objects, and the sum and the sum of
  squares of their resourceVersions. Each resourceVersion belongs to one write, so the summary reveals rows that are
  missing, outdated, or present again after a deletion. It costs a few additions per write.
- Format 1 had neither checksums nor a summary; it is upgraded when it is opened.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote
from zlib import crc32

from ostinato.api.object import plural_of
from ostinato.kinds.index import MODULES
from ostinato.server.store.records import UnusableStore, Write
from ostinato.server.store.sqlite.files import DamagedStore

FORMAT = 2
APPLICATION = 0x4F535449  # "OSTI": identifies our files

_TABLE = """CREATE TABLE object (collection TEXT NOT NULL, key TEXT NOT NULL, version INTEGER NOT NULL,
    data BLOB NOT NULL, checksum INTEGER NOT NULL DEFAULT 0, PRIMARY KEY (collection, key))"""
# Reads through the index: an object that the index lacks is detected, since a write would not find it either.
_OBJECTS = """SELECT collection, key, version, data, {} FROM object INDEXED BY sqlite_autoindex_object_1
              WHERE collection > '' ORDER BY collection, key"""
_LAST = "SELECT version, data, {} FROM object WHERE collection = '' AND key = ''"
_PUT_LAST = "INSERT OR REPLACE INTO object VALUES ('', '', ?, ?, ?)"

Row = tuple[str, str, int, bytes]  # collection, key, resourceVersion, data


class NotOurs(UnusableStore):
    """The file is not a database, or belongs to another program."""


class Summary(NamedTuple):
    """The row without a key."""

    store: str  # the database id, in hexadecimal
    objects: int = 0
    versions: int = 0  # the sum of resourceVersions
    squares: int = 0  # the sum of their squares

    def after(self, writes: Iterable[Write]) -> Summary:
        store, objects, versions, squares = self
        for write in writes:
            if write.data is not None:
                version = write.version
                objects += 1
                versions += version
                squares += version * version
            if write.replaces:
                version = write.replaces
                objects -= 1
                versions -= version
                squares -= version * version
        return Summary(store, objects, versions, squares)

    def encode(self) -> bytes:
        return b"%s %d %d %d" % (self.store.encode(), *self[1:])

    @staticmethod
    def decode(data: bytes) -> Summary:
        store, objects, versions, squares = data.decode().split(" ")
        return Summary(store, int(objects), int(versions), int(squares))


class Contents(NamedTuple):
    """A complete database."""

    format: int = 0  # 0: not created yet
    version: int = 0  # the last resourceVersion
    rows: Sequence[Row] = ()  # by collection and key
    summary: Summary | None = None  # None: an older format


def checksum_of(collection: str, key: str, version: int, data: bytes) -> int:
    return crc32(data, crc32(f"{collection}\0{key}\0{version}\0".encode()))


def last_row(version: int, summary: Summary) -> Write:
    """The row without a key."""
    return Write("", "", version, summary.encode())


def name_of(collection: str, key: str, version: object) -> str:
    """An object in messages: `ConfigMap default/a (resourceVersion 12)`."""
    return f"{_kind_of(collection)} {key} (resourceVersion {version})"


def _kind_of(collection: str) -> str:
    plural, _, group = collection.partition(".")
    kinds = (kind for of, _, kind in MODULES if of == group and plural_of(kind) == plural)
    return next(kinds, collection)


def open_read_only(path: Path, wait: float = 0.2) -> sqlite3.Connection:
    """Open a connection that modifies nothing; closing an ordinary one would checkpoint the write-ahead log."""
    return sqlite3.connect(f"file:{quote(str(path))}?mode=ro", uri=True, isolation_level=None, timeout=wait)


def format_of(database: sqlite3.Connection, path: Path) -> int:
    """The format of a database, 0 for an empty one; UnusableStore if it is not a store, or of a newer format."""
    (version,) = database.execute("PRAGMA user_version").fetchone()
    (application,) = database.execute("PRAGMA application_id").fetchone()
    (tables,) = database.execute("SELECT count(*) FROM sqlite_schema").fetchone()
    if tables and application != APPLICATION:
        raise NotOurs(f"{path} is a database of another program; use another file")
    if version > FORMAT:
        raise UnusableStore(
            f"{path}: format {version} is newer than this Ostinato reads ({FORMAT}); "
            "use the version that wrote it, or another file"
        )
    return int(version)


def read(database: sqlite3.Connection, path: Path) -> Contents:
    """Read and check everything; DamagedStore if something is missing or was modified."""
    try:
        found = format_of(database, path)
        if found == 0:
            return Contents()
        last = database.execute(_LAST.format(_checksum_column(found))).fetchone()
        if last is None:
            raise DamagedStore(f"the store {path} is damaged: the row with its last resourceVersion is missing")
        if found == 1:
            rows = database.execute(_OBJECTS.format("0")).fetchall()
            return Contents(1, last[0], [row[:4] for row in rows])
        summary = _summary(last, path)
        return Contents(found, last[0], _checked(database, summary, path), summary)
    except sqlite3.OperationalError as error:
        if "locked" in str(error):
            raise UnusableStore(f"the store {path} is in use by another process") from error
        if "UTF-8" in str(error):  # a key
            raise DamagedStore(f"the store {path} is damaged: {_unreadable(database)}") from error
        if "no such" not in str(error):  # missing tables or columns
            raise
        raise DamagedStore(f"the store {path} is damaged: {error}") from error
    except sqlite3.DatabaseError as error:
        if "not a database" in str(error):
            raise NotOurs(f"cannot open the store {path}: {error}") from error
        raise DamagedStore(f"the store {path} is damaged: {error}") from error


def _checksum_column(form: int) -> str:
    return "checksum" if form > 1 else "0"


def _summary(row: tuple[int, bytes, int], path: Path) -> Summary:
    version, data, checksum = row
    try:
        if checksum_of("", "", version, data) == checksum:
            return Summary.decode(data)
    except (TypeError, ValueError):
        pass
    raise DamagedStore(f"the store {path} is damaged: the row with its last resourceVersion cannot be read")


def _checked(database: sqlite3.Connection, summary: Summary, path: Path) -> list[Row]:
    rows: list[Row] = []
    versions = squares = 0
    collection = key = version = None
    try:
        for collection, key, version, data, checksum in database.execute(_OBJECTS.format("checksum")):
            if crc32(data, crc32(f"{collection}\0{key}\0{version}\0".encode())) != checksum:
                raise ValueError("wrong checksum")
            rows.append((collection, key, version, data))
            versions += version
            squares += version * version
    except (TypeError, ValueError) as error:
        name = name_of(str(collection), str(key), version)
        raise DamagedStore(f"{name}: damaged in the store {path}: wrong checksum") from error
    found = Summary(summary.store, len(rows), versions, squares)
    if found != summary:
        raise DamagedStore(
            f"the store {path} is damaged: it should have {summary.objects} objects and has {len(rows)}"
            if summary.objects != len(rows)
            else f"the store {path} is damaged: some of its {len(rows)} objects are not the last written"
        )
    return rows


def _unreadable(database: sqlite3.Connection) -> str:
    """The first row whose key is not valid text."""
    database.text_factory = lambda data: data.decode(errors="backslashreplace")
    for collection, key, version, data, checksum in database.execute(_OBJECTS.format("checksum")):
        if "\\x" in f"{collection}{key}" or checksum_of(collection, key, version, data) != checksum:
            return f"{name_of(collection, key, version)}: its key cannot be read"
    return "a key cannot be read"


# Writing


def create(database: sqlite3.Connection, version: int, rows: Sequence[Row], store: str) -> Summary:
    """Fill an empty database, in one transaction."""
    summary = Summary(store).after(Write(*row) for row in rows)
    last = last_row(version, summary).data
    assert last is not None
    database.execute("BEGIN IMMEDIATE")
    database.execute(_TABLE)
    put = "INSERT INTO object VALUES (?, ?, ?, ?, ?)"
    database.executemany(put, ((*row, checksum_of(*row)) for row in rows))
    database.execute(put, ("", "", version, last, checksum_of("", "", version, last)))
    database.execute(f"PRAGMA application_id = {APPLICATION}")
    database.execute(f"PRAGMA user_version = {FORMAT}")
    database.execute("COMMIT")
    return summary


def upgrade(database: sqlite3.Connection, contents: Contents, store: str) -> Summary:
    """Upgrade a database of format 1 to the current format, in one transaction."""
    summary = Summary(store).after(Write(*row) for row in contents.rows)
    last = last_row(contents.version, summary).data
    assert last is not None
    database.create_function("checksum_of", 4, checksum_of, deterministic=True)
    database.execute("BEGIN IMMEDIATE")
    database.execute("ALTER TABLE object ADD COLUMN checksum INTEGER NOT NULL DEFAULT 0")
    database.execute("UPDATE object SET checksum = checksum_of(collection, key, version, data)")
    database.execute(_PUT_LAST, (contents.version, last, checksum_of("", "", contents.version, last)))
    database.execute(f"PRAGMA user_version = {FORMAT}")
    database.execute("COMMIT")
    return summary


def set_version(database: sqlite3.Connection, version: int, summary: Summary) -> None:
    """Set the resourceVersion, and the id of the summary."""
    last = summary.encode()
    database.execute(_PUT_LAST, (version, last, checksum_of("", "", version, last)))
