"""Calls with failover, retries and authentication.

A call is tried again until its deadline if it is a read, or if it has certainly not been run. Other failures of writes
are reported, with `may_have_happened`.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import Callable
from functools import partial
from typing import Final

from ostinato.etcd.errors import (
    DeadlineExceeded,
    EtcdError,
    NoLeader,
    TlsError,
    Unauthenticated,
    Unavailable,
    etcd_error,
    is_stale_token,
)
from ostinato.etcd.link import Link
from ostinato.etcd.settings import EtcdSettings
from ostinato.etcd.wire import fields, text
from ostinato.grpc import Connection, RpcError
from ostinato.grpc.channel import request_head
from ostinato.world import World

_LOG: Final = logging.getLogger(__name__)
_AUTHENTICATE: Final = "/etcdserverpb.Auth/Authenticate"
_AUTH_SECONDS: Final = 5.0
_FIRST_DELAY: Final = 0.02
_MAX_DELAY: Final = 0.5
_LEADER: Final = (("hasleader", "true"),)


class Transport:
    """Calls to a cluster. See the module."""

    def __init__(self, settings: EtcdSettings, world: World) -> None:
        self._settings = settings
        self._world = world
        self._tls = settings.tls_context()
        self._link = self.new_link()
        self._heads: dict[tuple[str, bool], bytes] = {}  # encoded headers, by method and whether a leader is required
        self._token = ""
        self._authenticating: asyncio.Task[None] | None = None
        self._needs_token = bool(settings.user)

    @property
    def has_user(self) -> bool:
        """Whether calls are authenticated by a token."""
        return bool(self._settings.user)

    def new_link(self, *endpoints: str) -> Link:
        """Return another connection of these endpoints, or of all; its user closes it."""
        return Link(self._settings, self._tls_context, self._world, endpoints or self._settings.endpoints)

    def _tls_context(self) -> ssl.SSLContext | None:
        """Read the files again: certificates are renewed while the process runs."""
        try:
            self._tls = self._settings.tls_context()
        except ValueError as error:
            _LOG.warning("cannot read the certificates for etcd, using the previous ones error=%s", error)
        return self._tls

    async def close(self) -> None:
        if self._authenticating is not None and not self._authenticating.done():
            self._authenticating.cancel()
            await asyncio.wait([self._authenticating])
        await self._link.close()

    async def call(
        self,
        method: str,
        request: bytes,
        within: float,
        *,
        is_write: bool = False,
        needs_leader: bool = True,
        link: Link | None = None,
    ) -> bytes:
        """Make a call. Raises EtcdError."""
        link = link or self._link
        deadline = 0.0
        delay = _FIRST_DELAY
        refreshes = 0
        left = within
        reason = ""  # of the last failure
        while True:
            connection = None if self._needs_token else link.current()
            try:
                if connection is None:
                    deadline = deadline or self._world.clock.monotonic() + within
                    async with self._world.clock.deadline(deadline):
                        await self._authenticated()
                        connection = await link.connected()
                    left = deadline - self._world.clock.monotonic()
                return await connection.call(method, self.head(method, needs_leader=needs_leader), request, left)
            except TimeoutError:
                failed: EtcdError = DeadlineExceeded(reason or f"{method}: no connection within {within:g} s")
            except TlsError:
                raise
            except Unavailable as error:
                failed = error
            except RpcError as error:
                if is_stale_token(error) and self._settings.user and refreshes < 2:
                    refreshes += 1
                    self.refresh_token()
                    continue
                failed = etcd_error(error, is_write=is_write)
                if not isinstance(failed, Unavailable):
                    raise failed from None
                if connection is not None and (isinstance(failed, NoLeader) or _is_of_member(error)):
                    link.leave(connection)
            if isinstance(failed, DeadlineExceeded) or (is_write and failed.may_have_happened):
                raise failed from None
            reason = str(failed)
            deadline = deadline or self._world.clock.monotonic() + within
            pause = delay * (0.5 + self._world.rng.random() / 2)
            left = deadline - self._world.clock.monotonic() - pause
            if left <= 0:
                raise failed from None
            await self._world.clock.sleep(pause)
            delay = min(2 * delay, _MAX_DELAY)

    def ask(self, method: str, request: bytes, within: float, on_end: Callable[[bytes | EtcdError], None]) -> bool:
        """Make a read on the connection in use, once and without a task; False if there is no connection.

        It is sent at once. `on_end` is called with the answer or the error.
        """
        connection = None if self._needs_token else self._link.current()
        if connection is None:
            return False
        head = self.head(method, needs_leader=True)
        connection.begin(method, head, request, within, partial(_ended, on_end))
        connection.flush()
        return True

    def head(self, method: str, *, needs_leader: bool) -> bytes:
        """Return the encoded headers of a call."""
        head = self._heads.get((method, needs_leader))
        if head is None:
            metadata = (*(_LEADER if needs_leader else ()), *((("token", self._token),) if self._token else ()))
            head = request_head(method, self._settings.endpoints[0], is_tls=self._settings.tls, metadata=metadata)
            self._heads[method, needs_leader] = head
        return head

    async def stream_connection(self, link: Link) -> Connection:
        """Return a connection for a stream, with a token if one is needed."""
        await self._authenticated()
        return await link.connected()

    def refresh_token(self) -> None:
        """Get another token before the next call."""
        self._needs_token = True

    async def _authenticated(self) -> None:
        if not self._needs_token:
            return
        if self._authenticating is None or self._authenticating.done():
            self._authenticating = asyncio.get_running_loop().create_task(self._authenticate())
            self._authenticating.add_done_callback(_retrieved)
        await asyncio.shield(self._authenticating)

    async def _authenticate(self) -> None:
        request = text(1, self._settings.user) + text(2, self._settings.password)
        connection = await self._link.connected()
        head = request_head(_AUTHENTICATE, self._settings.endpoints[0], is_tls=self._settings.tls)
        token = ""
        try:
            answer = await connection.call(_AUTHENTICATE, head, request, _AUTH_SECONDS)
            token = next(
                (value.decode() for field, value in fields(answer) if field == 2 and isinstance(value, bytes)), ""
            )
        except RpcError as error:
            if str(error) != "etcdserver: authentication is not enabled":
                failed = etcd_error(error, is_write=False)
                if isinstance(failed, Unavailable):
                    self._link.leave(connection)
                elif error.is_of_server:
                    failed = Unauthenticated(f"user {self._settings.user}: {error}")
                raise failed from None
        self._token = token
        self._heads.clear()
        self._needs_token = False


def _ended(on_end: Callable[[bytes | EtcdError], None], result: bytes | RpcError) -> None:
    on_end(etcd_error(result, is_write=False) if isinstance(result, RpcError) else result)


def _is_of_member(error: RpcError) -> bool:
    """Whether another member may do better."""
    return error.is_of_server and str(error) != "etcdserver: leader changed"


def _retrieved(task: asyncio.Task[None]) -> None:
    """Mark the error as seen: all who waited may have been cancelled."""
    if not task.cancelled():
        task.exception()
