"""Save, check and restore the objects of an etcd.

- A snapshot is etcd's own: `etcdutl` can check and restore it, and what `etcdctl` has saved can be restored here.
- A restore writes to a running etcd, below the prefix, what differs. So revisions continue, and no resourceVersion is
  given out twice.
- Until a restore is complete, its mark keeps servers from starting.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from ostinato.etcd import EtcdClient, KeyValue, Op, compare, op, prefix_end
from ostinato.server.store.etcd.layout import RESTORING
from ostinato.server.store.etcd.objects import pages
from ostinato.server.store.etcd.snapshots.contents import Contents, read
from ostinato.server.store.records import UnusableStore
from ostinato.world import Ids

_SERVERS: Final = "/masterleases/"
_OWN: Final = (_SERVERS, "/ostinato/")  # below the prefix: of running servers, not objects
_MAX_OPERATIONS: Final = 100  # of a transaction; etcd's limit is 128
_MAX_BYTES: Final = 1 << 20  # etcd's limit is 1.5 MB


class Status(NamedTuple):
    """Facts about an etcd or a snapshot of one."""

    place: str
    objects: int  # below the prefix
    revision: int
    size: int  # bytes
    servers: Sequence[str] = ()  # that use it


class Restored(NamedTuple):
    written: int
    deleted: int
    revision: int


async def status(client: EtcdClient) -> Status:
    """Facts about an etcd. Raises EtcdError."""
    prefix = client.settings.prefix
    start = f"{prefix}/".encode()
    found = await client.range(start, prefix_end(start), keys_only=True)
    objects = sum(_is_object(kv.key, prefix) for kv in found.kvs)
    size = (await client.status()).db_size
    return Status(str(client.settings), objects, found.revision, size, await _servers(client))


def snapshot_status(path: Path, prefix: str) -> Status:
    """Read and check a snapshot; UnusableStore if it is not complete."""
    contents = read(path)
    return Status(str(path), len(_objects(contents, prefix)), contents.revision, contents.size)


async def save(client: EtcdClient, target: Path, ids: Ids) -> Status:
    """Save an etcd in a new file. Raises EtcdError, or UnusableStore if the file cannot be written."""
    target, new = _new_file(target, ids)
    try:
        descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            with os.fdopen(descriptor, "wb") as file:
                async for part in client.snapshot():
                    file.write(part)
                file.flush()
                os.fsync(file.fileno())
            found = snapshot_status(new, client.settings.prefix)
            new.rename(target)
        finally:
            new.unlink(missing_ok=True)
    except OSError as error:
        raise UnusableStore(f"cannot write {target}: {error.strerror}") from error
    return found._replace(place=str(target))


def _new_file(target: Path, ids: Ids) -> tuple[Path, Path]:
    """The whole path of a file that does not exist, and that of its first version."""
    target = target.resolve()
    if target.exists():
        raise UnusableStore(f"{target} exists already; choose another name")
    return target, target.with_name(f"{target.name}.{ids.token(4).hex()}.new")


async def restore(client: EtcdClient, source: Path) -> Restored:
    """Replace the objects of an etcd that no server uses. Raises EtcdError, or UnusableStore if it must not be done."""
    contents = read(source)
    prefix = client.settings.prefix
    wanted = _objects(contents, prefix)
    if not wanted:
        raise UnusableStore(f"{source} has no keys below {prefix}; check --etcd-prefix")
    await _check(client, contents, source)
    mark = (prefix + RESTORING).encode()
    guard = compare.mod_revision(mark, "=", (await client.put(mark, b"")).revision)
    current = {kv.key: kv for kv in await _all(client, prefix)}
    changed = [kv for key, kv in wanted.items() if not _is_same(current.get(key), kv)]
    gone = [key for key in current if key not in wanted and _is_object(key, prefix)]
    leases: dict[int, int] = {}
    for kv in changed:
        if kv.lease and kv.lease not in leases:
            leases[kv.lease] = (await client.lease_grant(max(contents.leases.get(kv.lease, 0), 1))).id
    puts = ((op.put(kv.key, kv.value, lease=leases.get(kv.lease, 0)), len(kv.value)) for kv in changed)
    deletions = ((op.delete(key), 0) for key in gone)
    for batch in (*_batches(puts), *_batches(deletions)):
        if not (await client.txn([guard], batch)).succeeded:
            raise UnusableStore(f"{client.settings}: another restore has begun")
    revision = (await client.delete_range(mark)).revision
    return Restored(len(changed), len(gone), revision)


async def _check(client: EtcdClient, contents: Contents, source: Path) -> None:
    """UnusableStore if servers use the etcd, or if resourceVersions would go back."""
    if servers := await _servers(client):
        raise UnusableStore(f"{client.settings}: servers use it: {', '.join(servers)}; stop them first")
    revision = await client.revision()
    if revision < contents.revision:
        raise UnusableStore(
            f"{client.settings} is at revision {revision}, the snapshot at {contents.revision}: resourceVersions would "
            f"go back; start etcd on a directory that has them: `etcdutl snapshot restore {source} --data-dir DIR "
            "--bump-revision 1000000000 --mark-compacted` (etcd 3.6)"
        )


async def _servers(client: EtcdClient) -> list[str]:
    start = (client.settings.prefix + _SERVERS).encode()
    found = await client.range(start, prefix_end(start), keys_only=True)
    return [kv.key.removeprefix(start).decode("utf-8", "replace") for kv in found.kvs]


async def _all(client: EtcdClient, prefix: str) -> list[KeyValue]:
    start = f"{prefix}/".encode()
    return [kv async for page in pages(client, start) for kv in page.kvs]


def _objects(contents: Contents, prefix: str) -> dict[bytes, KeyValue]:
    return {key: kv for key, kv in contents.below(prefix).items() if _is_object(key, prefix)}


def _is_object(key: bytes, prefix: str) -> bool:
    return not key.startswith(tuple(f"{prefix}{path}".encode() for path in _OWN))


def _is_same(current: KeyValue | None, wanted: KeyValue) -> bool:
    return current is not None and current.value == wanted.value and bool(current.lease) == bool(wanted.lease)


def _batches(operations: Iterable[tuple[Op, int]]) -> Iterable[list[Op]]:
    """Group operations, with their sizes, into transactions that etcd accepts."""
    batch: list[Op] = []
    size = 0
    for operation, length in operations:
        if batch and (len(batch) >= _MAX_OPERATIONS or size + length > _MAX_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(operation)
        size += length
    if batch:
        yield batch
