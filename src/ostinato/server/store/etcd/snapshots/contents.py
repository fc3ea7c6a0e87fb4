"""Contents of a snapshot of etcd: the newest state of each key."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Final, NamedTuple

from ostinato.etcd.messages import KeyValue, read_key_value
from ostinato.etcd.wire import WireError, fields
from ostinato.server.store.etcd.snapshots.bolt import DamagedDatabase, Database
from ostinato.server.store.records import UnusableStore

_BLOCK: Final = 512  # sizes of databases are multiples of it
_TOMBSTONE: Final = b"t"
_COMPACTIONS: Final = (b"scheduledCompactRev", b"finishedCompactRev")


class Contents(NamedTuple):
    """The state at the revision of the snapshot."""

    revision: int
    keys: dict[bytes, KeyValue]
    leases: dict[int, int]  # by id: seconds that they were granted for
    size: int  # bytes of the file

    def below(self, prefix: str) -> dict[bytes, KeyValue]:
        start = f"{prefix}/".encode()
        return {key: kv for key, kv in self.keys.items() if key.startswith(start)}


def read(path: Path) -> Contents:
    """Read and check a snapshot; UnusableStore if it is not complete."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        raise UnusableStore(f"there is no snapshot at {path}") from None
    except OSError as error:
        raise UnusableStore(f"cannot read the snapshot {path}: {error.strerror}") from error
    body = memoryview(data)[: len(data) - len(data) % _BLOCK]
    if len(data) % _BLOCK != hashlib.sha256().digest_size or hashlib.sha256(body).digest() != data[len(body) :]:
        raise UnusableStore(f"{path} is damaged or not a snapshot: its checksum is wrong; use another snapshot")
    try:
        return _contents(Database(body), len(data))
    except (DamagedDatabase, WireError) as error:
        raise UnusableStore(f"{path} is damaged: {error}; use another snapshot") from None


def _contents(database: Database, size: int) -> Contents:
    keys: dict[bytes, KeyValue] = {}
    revision = 0
    for place, value in database.bucket(b"key"):  # in the order of revisions: 8 bytes, "_", 8 bytes, "t" if deleted
        revision = int.from_bytes(place[:8], "big")
        kv = read_key_value(value)
        if place[17:] == _TOMBSTONE:
            keys.pop(kv.key, None)
        else:
            keys[kv.key] = kv
    for name, value in database.bucket(b"meta"):
        if name in _COMPACTIONS:
            revision = max(revision, int.from_bytes(value[:8], "big"))
    leases = {}
    for _, value in database.bucket(b"lease"):
        found = dict(fields(value))
        leases[int(found.get(1, 0))] = int(found.get(2, 0))
    return Contents(revision, keys, leases, size)
