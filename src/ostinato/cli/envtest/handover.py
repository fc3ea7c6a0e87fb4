"""kube-apiserver's request for the storage of the etcd stand-in."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import msgspec

from ostinato.cli.envtest.etcd import HANDOVER, Storage
from ostinato.cli.error import CommandError
from ostinato.http.byte_stream import PlainStream
from ostinato.http.exchange import read_body, read_response
from ostinato.world import Clock

_WAIT_SECONDS: Final = 20.0  # for etcd to start
_ATTEMPT_SECONDS: Final = 5.0
_INTERVAL: Final = 0.1
_MOST: Final = 1 << 16  # bytes of an answer


async def storage_of(urls: Sequence[str], clock: Clock) -> Storage:
    """Ask the servers in turn until one answers; CommandError if none does, or it is a real etcd."""
    addresses = [_address(url) for url in urls]
    until = clock.monotonic() + _WAIT_SECONDS
    while True:
        for url, (host, port) in zip(urls, addresses, strict=True):
            try:
                async with clock.timeout(_ATTEMPT_SECONDS):
                    status, body = await _get(host, port)
            except (OSError, TimeoutError) as error:
                failure = f"--etcd-servers {url}: {error or 'no answer'}"
            else:
                return _storage(url, status, body)
        if clock.monotonic() > until:
            raise CommandError(f"{failure}; start the etcd beside this kube-apiserver first")
        await clock.sleep(_INTERVAL)


def _address(url: str) -> tuple[str, int]:
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        host = port = None
    if host is None or port is None or parts.scheme != "http":
        raise CommandError(f"--etcd-servers {url}: want http://HOST:PORT")
    return host, port


async def _get(host: str, port: int) -> tuple[int, bytes]:
    stream = await PlainStream.to(host, port)
    try:
        await stream.write(f"GET {HANDOVER} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode())
        response = await read_response(stream)
        body = b""
        async for piece in read_body(stream, response):
            body += piece
            if len(body) > _MOST:
                break
        return response.status, body
    finally:
        stream.close()


def _storage(url: str, status: int, body: bytes) -> Storage:
    try:
        storage = msgspec.json.decode(body, type=Storage) if status == 200 else None
    except msgspec.DecodeError:
        storage = None
    if storage is None:
        raise CommandError(f"--etcd-servers {url}: not the etcd of `ostinato envtest`; a real one is not supported")
    directory = Path(storage.data_dir)
    if not directory.is_absolute() or not directory.is_dir():
        raise CommandError(f"--etcd-servers {url}: its data directory {directory} is not on this machine")
    return storage
