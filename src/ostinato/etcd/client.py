"""Client of an etcd cluster."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from functools import partial
from types import TracebackType
from typing import Final, Self, TypeVar

from msgspec import Struct

from ostinato.etcd import messages
from ostinato.etcd.errors import EtcdError, LeaseNotFound, ProtocolError, etcd_error
from ostinato.etcd.messages import Compare, DeleteResult, Op, PutResult, RangeResult, TxnResult
from ostinato.etcd.settings import EtcdSettings
from ostinato.etcd.transport import Transport
from ostinato.etcd.watch_stream import WatchStream
from ostinato.etcd.wire import WireError, fields, number, signed
from ostinato.grpc import RpcError
from ostinato.world import World

T = TypeVar("T")

WITHIN: Final = 10.0
"""Seconds that a call may take, with its retries."""
_LONG: Final = 120.0
_SERVICE: Final = "/etcdserverpb."
_REVISION: Final = messages.range_request(b"\0", count_only=True)  # its answer has a header and no key


class Lease(Struct, frozen=True):
    """A granted lease; `ttl` in seconds."""

    id: int
    ttl: int


class Member(Struct, frozen=True):
    """A member of the cluster."""

    id: int
    name: str
    peer_urls: list[str]
    client_urls: list[str]
    is_learner: bool


class Status(Struct, frozen=True):
    """The state of one member."""

    endpoint: str
    version: str
    db_size: int
    db_size_in_use: int
    leader: int
    member_id: int
    raft_index: int
    raft_term: int
    revision: int
    errors: list[str]


class Alarm(Struct, frozen=True):
    """An alarm of a member: NOSPACE or CORRUPT."""

    member_id: int
    kind: str


_ALARMS: Final = ("NONE", "NOSPACE", "CORRUPT")


class EtcdClient:
    """A client; connections are opened on demand. All calls raise EtcdError, and take at most `within` seconds."""

    def __init__(self, settings: EtcdSettings, world: World) -> None:
        self.settings = settings
        self._world = world
        self._transport = Transport(settings, world)
        self._streams: set[WatchStream] = set()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """End all watches and connections."""
        for stream in list(self._streams):
            await stream.close()
        await self._transport.close()

    @property
    def endpoints(self) -> tuple[str, ...]:
        """The endpoints of the settings, `host:port` each."""
        return self.settings.endpoints

    # Keys

    async def range(
        self,
        key: bytes,
        end: bytes = b"",
        *,
        limit: int = 0,
        revision: int = 0,
        serializable: bool = False,
        keys_only: bool = False,
        count_only: bool = False,
        within: float = WITHIN,
    ) -> RangeResult:
        """Read a key, or the keys from `key` to `end`. `serializable`: from any member, which may be behind."""
        request = messages.range_request(
            key,
            end,
            limit=limit,
            revision=revision,
            serializable=serializable,
            keys_only=keys_only,
            count_only=count_only,
        )
        answer = await self._transport.call(_SERVICE + "KV/Range", request, within, needs_leader=not serializable)
        return _read(messages.read_range, answer)

    async def revision(self, *, within: float = WITHIN) -> int:
        """Return the revision of the cluster; no write that was acknowledged before has a later one."""
        return (await self.range(b"\0", count_only=True, within=within)).revision

    def ask_revision(self, within: float, on_answer: Callable[[int | EtcdError], None]) -> bool:
        """Ask for the revision of the cluster once, without a task; False if there is no connection.

        The question is sent before the call returns. `on_answer` is called with the revision or the error.
        """
        return self._transport.ask(_SERVICE + "KV/Range", _REVISION, within, partial(_revision, on_answer))

    async def put(
        self, key: bytes, value: bytes, *, lease: int = 0, prev_kv: bool = False, within: float = WITHIN
    ) -> PutResult:
        """Write a key."""
        request = messages.put_request(key, value, lease=lease, prev_kv=prev_kv)
        return _read(messages.read_put, await self._write("KV/Put", request, within), is_write=True)

    async def delete_range(
        self, key: bytes, end: bytes = b"", *, prev_kv: bool = False, within: float = WITHIN
    ) -> DeleteResult:
        """Delete a key, or the keys from `key` to `end`."""
        request = messages.delete_request(key, end, prev_kv=prev_kv)
        return _read(messages.read_delete, await self._write("KV/DeleteRange", request, within), is_write=True)

    async def txn(
        self, compares: Sequence[Compare], success: Sequence[Op], failure: Sequence[Op] = (), *, within: float = WITHIN
    ) -> TxnResult:
        """Run `success` if all compares hold, and `failure` otherwise, at one revision."""
        request = messages.txn_request(compares, success, failure)
        return _read(messages.read_txn, await self._write("KV/Txn", request, within), is_write=True)

    async def compact(self, revision: int, *, physical: bool = False, within: float = _LONG) -> int:
        """Forget what is older than a revision. `physical`: wait until its space is free inside the database."""
        request = number(1, revision) + number(2, physical)
        return _header(await self._write("KV/Compact", request, within))

    # Watches

    def watch_stream(self, *, require_leader: bool = True, fragment: bool = True) -> WatchStream:
        """Return a stream for watches, on a connection of its own."""
        stream = WatchStream(
            self._transport,
            self._world,
            require_leader=require_leader,
            fragment=fragment,
            on_close=self._streams.discard,
        )
        self._streams.add(stream)
        return stream

    # Leases

    async def lease_grant(self, ttl: int, id: int = 0, *, within: float = WITHIN) -> Lease:  # noqa: A002 - etcd's name
        """Make a lease; keys with it are deleted when it has not been renewed for `ttl` seconds."""
        found = _numbers(await self._write("Lease/LeaseGrant", number(1, ttl) + number(2, id), within))
        return Lease(found.get(2, 0), found.get(3, 0))

    async def lease_revoke(self, id: int, *, within: float = WITHIN) -> None:  # noqa: A002
        """End a lease and delete its keys."""
        await self._write("Lease/LeaseRevoke", number(1, id), within)

    async def lease_keepalive(self, id: int, *, within: float = WITHIN) -> int:  # noqa: A002
        """Renew a lease; return its time to live. LeaseNotFound if it has expired."""
        ttl = 0
        async with (
            self._world.clock.timeout(within),
            aclosing(self._stream("Lease/LeaseKeepAlive", number(1, id))) as answers,
        ):
            async for answer in answers:
                ttl = _numbers(answer).get(3, 0)
                break
        if ttl <= 0:
            raise LeaseNotFound(f"etcdserver: requested lease not found: {id}")
        return ttl

    async def lease_time_to_live(self, id: int, *, within: float = WITHIN) -> int:  # noqa: A002
        """Return the seconds until a lease expires; -1 if there is none."""
        answer = await self._transport.call(_SERVICE + "Lease/LeaseTimeToLive", number(1, id), within)
        return signed(_numbers(answer).get(3, 0))

    # The cluster

    async def members(self, *, within: float = WITHIN) -> list[Member]:
        """Return the members of the cluster."""
        answer = await self._transport.call(_SERVICE + "Cluster/MemberList", b"", within)
        return [_member(value) for field, value in _fields(answer) if field == 2 and isinstance(value, bytes)]

    async def status(self, endpoint: str = "", *, within: float = WITHIN) -> Status:
        """Return the state of a member; of the one in use if none is given."""
        answer = await self._at(endpoint, "Maintenance/Status", b"", within)
        found = _numbers(answer)
        texts = [(field, value) for field, value in _fields(answer) if isinstance(value, bytes)]
        header = _numbers(next((value for field, value in texts if field == 1), b""))
        version = next((value.decode() for field, value in texts if field == 2), "")
        errors = [value.decode("utf-8", "replace") for field, value in texts if field == 8]
        return Status(
            endpoint,
            version,
            db_size=found.get(3, 0),
            db_size_in_use=found.get(9, 0),
            leader=found.get(4, 0),
            member_id=header.get(2, 0),
            raft_index=found.get(5, 0),
            raft_term=found.get(6, 0),
            revision=header.get(3, 0),
            errors=errors,
        )

    async def defragment(self, endpoint: str, *, within: float = _LONG) -> None:
        """Give the free space of a member's database back to the file system; the member stops for that time."""
        await self._at(endpoint, "Maintenance/Defragment", b"", within)

    async def hash_kv(self, endpoint: str, revision: int = 0, *, within: float = _LONG) -> int:
        """Return a member's checksum of all keys up to a revision."""
        return _numbers(await self._at(endpoint, "Maintenance/HashKV", number(1, revision), within)).get(2, 0)

    async def alarms(self, *, within: float = WITHIN) -> list[Alarm]:
        """Return the alarms that are set."""
        answer = await self._transport.call(_SERVICE + "Maintenance/Alarm", b"", within)
        found = [_numbers(value) for field, value in _fields(answer) if field == 2 and isinstance(value, bytes)]
        return [Alarm(each.get(1, 0), _ALARMS[min(each.get(2, 0), 2)]) for each in found]

    async def disarm(self, alarm: Alarm, *, within: float = WITHIN) -> None:
        """Clear an alarm."""
        request = number(1, 2) + number(2, alarm.member_id) + number(3, _ALARMS.index(alarm.kind))
        await self._write("Maintenance/Alarm", request, within)

    async def snapshot(self) -> AsyncGenerator[bytes, None]:
        """Yield the database of a member, with a SHA-256 of it as the last 32 bytes."""
        async with aclosing(self._stream("Maintenance/Snapshot", b"")) as answers:
            async for answer in answers:
                for field, value in _fields(answer):
                    if field == 3 and isinstance(value, bytes):
                        yield value

    async def _write(self, method: str, request: bytes, within: float) -> bytes:
        return await self._transport.call(_SERVICE + method, request, within, is_write=True)

    async def _at(self, endpoint: str, method: str, request: bytes, within: float) -> bytes:
        """Call one member."""
        link = self._transport.new_link(endpoint) if endpoint else None
        try:
            return await self._transport.call(_SERVICE + method, request, within, needs_leader=False, link=link)
        finally:
            if link is not None:
                await link.close()

    async def _stream(self, method: str, request: bytes) -> AsyncGenerator[bytes, None]:
        link = self._transport.new_link()
        try:
            connection = await self._transport.stream_connection(link)
            head = self._transport.head(_SERVICE + method, needs_leader=False)
            stream = connection.stream(method, head, request, is_last=True)
            try:
                while (answer := await stream.receive()) is not None:
                    yield answer
            except RpcError as error:
                raise etcd_error(error, is_write=False) from None
            finally:
                stream.close()
        finally:
            await link.close()


def _revision(on_answer: Callable[[int | EtcdError], None], answer: bytes | EtcdError) -> None:
    if not isinstance(answer, bytes):
        on_answer(answer)
        return
    try:
        revision = messages.read_range(answer).revision
    except WireError as error:
        on_answer(ProtocolError(f"invalid response: {error}"))
    else:
        on_answer(revision)


def _read(reader: Callable[[bytes], T], answer: bytes, *, is_write: bool = False) -> T:
    try:
        return reader(answer)
    except WireError as error:
        raise ProtocolError(f"invalid response: {error}", may_have_happened=is_write) from None


def _fields(answer: bytes) -> list[tuple[int, int | bytes]]:
    return _read(lambda data: list(fields(data)), answer)


def _numbers(answer: bytes) -> dict[int, int]:
    return {field: value for field, value in _fields(answer) if isinstance(value, int)}


def _header(answer: bytes) -> int:
    headers = (value for field, value in _fields(answer) if field == 1 and isinstance(value, bytes))
    return messages.read_header(next(headers, b""))


def _member(message: bytes) -> Member:
    names: dict[int, list[str]] = {2: [], 3: [], 4: []}
    for field, value in _fields(message):
        if field in names and isinstance(value, bytes):
            names[field].append(value.decode("utf-8", "replace"))
    found = _numbers(message)
    return Member(found.get(1, 0), "".join(names[2]), names[3], names[4], bool(found.get(5)))
