"""Stand-in for etcd: answers health checks, and hands its data directory to kube-apiserver.

It stores nothing itself. The API server keeps its store in the data directory, so objects outlive a restart of either
program, as long as the directory exists. etcd's gRPC API is not served.
"""

from __future__ import annotations

import argparse
import asyncio
import signal
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import urlsplit

import msgspec

from ostinato.cli.envtest.etcd_flags import VERSION
from ostinato.cli.envtest.parent import ParentWatch
from ostinato.cli.error import CommandError
from ostinato.http.server import HttpRequest, HttpResponse, SmallHttpServer
from ostinato.world import World

HANDOVER: Final = "/ostinato/storage"  # path of the `Storage`
_STOP_SECONDS: Final = 1.0


class Storage(msgspec.Struct, frozen=True, rename="camel"):
    """What kube-apiserver gets: the directory, and whether writes are synced to disk."""

    data_dir: str
    durable: bool


class _ClientUrl(NamedTuple):
    text: str
    host: str
    port: int


def run(options: argparse.Namespace, watch: ParentWatch) -> None:
    """Serve until SIGTERM or SIGINT; CommandError for invalid flags and addresses in use."""
    urls = [_client_url(url) for url in options.listen_client_urls.split(",")]
    directory = Path(options.data_dir or f"{options.name}.etcd").absolute()
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise CommandError(f"--data-dir {directory}: {error.strerror or error}") from None
    asyncio.run(_serve(urls, Storage(str(directory), not options.unsafe_no_fsync), watch))


def _client_url(text: str) -> _ClientUrl:
    try:
        url = urlsplit(text)
        host, port = url.hostname, url.port
    except ValueError:
        host = port = None
    if host is None or port is None or url.scheme != "http":
        raise CommandError(f"--listen-client-urls {text}: want http://HOST:PORT")
    return _ClientUrl(text, host, port)


async def _serve(urls: list[_ClientUrl], storage: Storage, watch: ParentWatch) -> None:
    loop = asyncio.get_running_loop()
    clock = World.real().clock
    stopping = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopping.set)
    answers = _answers(storage)

    async def answer(request: HttpRequest) -> HttpResponse:
        return answers.get(request.path) or HttpResponse(404, b"404 page not found\n")

    servers: list[SmallHttpServer] = []
    try:
        for url in urls:
            server = SmallHttpServer(answer, clock)
            try:
                await server.start(url.host, url.port)
            except OSError as error:
                raise CommandError(f"cannot listen on {url.text}: {error.strerror or error}") from None
            servers.append(server)
        waits = [loop.create_task(stopping.wait()), loop.create_task(watch.exited(clock))]
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        for wait in waits:
            wait.cancel()
    finally:
        for server in servers:
            await server.stop(_STOP_SECONDS)


def _answers(storage: Storage) -> dict[str, HttpResponse]:
    json = "application/json"
    version = {"etcdserver": VERSION, "etcdcluster": "3.6.0", "storage": "3.6.0"}
    return {
        "/health": HttpResponse(200, b'{"health":"true","reason":""}', json),
        "/livez": HttpResponse(200, b"ok\n"),
        "/readyz": HttpResponse(200, b"ok\n"),
        "/version": HttpResponse(200, msgspec.json.encode(version), json),
        HANDOVER: HttpResponse(200, msgspec.json.encode(storage), json),
    }
