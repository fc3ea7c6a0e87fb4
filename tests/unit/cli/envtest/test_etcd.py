"""The etcd stand-in as a process, and what kube-apiserver asks it."""

from __future__ import annotations

import asyncio
import http.client
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ostinato.cli.envtest.etcd import Storage
from ostinato.cli.envtest.handover import storage_of
from ostinato.cli.error import CommandError
from ostinato.http.server import HttpRequest, HttpResponse, SmallHttpServer
from ostinato.world import World

SECONDS = 30
ETCD = [sys.executable, "-m", "ostinato.cli.envtest", "etcd"]


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
        return port


@pytest.fixture
def etcd() -> Iterator[Callable[..., subprocess.Popen[str]]]:
    started: list[subprocess.Popen[str]] = []

    def start(*flags: str) -> subprocess.Popen[str]:
        process = subprocess.Popen([*ETCD, *flags], stderr=subprocess.PIPE, text=True, env={**os.environ})
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate(timeout=SECONDS)


def _get(port: int, path: str) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=SECONDS)
    connection.request("GET", path)
    response = connection.getresponse()
    body = response.read()
    connection.close()
    return response.status, body


def _storage(port: int) -> Storage:
    return asyncio.run(storage_of([f"http://127.0.0.1:{port}"], World.real().clock))


def test_it_answers_health_checks_and_hands_its_directory_over(
    etcd: Callable[..., subprocess.Popen[str]], tmp_path: Path
) -> None:
    port, data = _free_port(), tmp_path / "new" / "data"
    url = f"http://127.0.0.1:{port}"
    process = etcd(f"--listen-client-urls={url}", f"--data-dir={data}", "--unsafe-no-fsync=true", "--quota=1")
    assert _storage(port) == Storage(str(data), durable=False)  # waits until it listens
    assert data.stat().st_mode & 0o777 == 0o700
    status, body = _get(port, "/health")
    assert (status, json.loads(body)["health"]) == (200, "true")
    assert _get(port, "/readyz") == (200, b"ok\n")
    assert json.loads(_get(port, "/version")[1])["etcdserver"].startswith("3.6.")
    assert _get(port, "/v3/kv/range")[0] == 404
    second = etcd(f"--listen-client-urls={url}", f"--data-dir={data}")
    assert second.wait(SECONDS) == 1
    assert second.stderr is not None
    assert second.stderr.read().startswith(f"etcd: cannot listen on {url}: ")
    process.send_signal(signal.SIGTERM)
    assert process.wait(SECONDS) == 0
    assert process.stderr is not None
    assert process.stderr.read() == "flag is not supported and has no effect program=etcd flag=--quota\n"


@pytest.mark.parametrize(
    "url", ["https://127.0.0.1:1", "127.0.0.1:1", "http://127.0.0.1", "unix://x:1", "http://[::1:1"]
)
def test_urls_that_it_cannot_serve(etcd: Callable[..., subprocess.Popen[str]], url: str, tmp_path: Path) -> None:
    process = etcd(f"--listen-client-urls={url}", f"--data-dir={tmp_path}")
    assert process.wait(SECONDS) == 1
    assert process.stderr is not None
    assert process.stderr.read() == f"etcd: --listen-client-urls {url}: want http://HOST:PORT\n"


@pytest.mark.parametrize(
    ("response", "message"),
    [
        (HttpResponse(404, b"404 page not found\n"), "not the etcd of `ostinato envtest`; a real one is not supported"),
        (HttpResponse(200, b'{"dataDir":7}'), "not the etcd of `ostinato envtest`; a real one is not supported"),
        (HttpResponse(200, b'{"dataDir":"/no/such","durable":true}'), "data directory /no/such is not on this machine"),
        (HttpResponse(200, b'{"dataDir":"..","durable":true}'), "data directory .. is not on this machine"),
    ],
)
def test_another_server_at_its_address(response: HttpResponse, message: str) -> None:
    async def ask() -> None:
        async def answer(_: HttpRequest) -> HttpResponse:
            return response

        clock = World.real().clock
        server = SmallHttpServer(answer, clock)
        await server.start("127.0.0.1", 0)
        try:
            await storage_of([f"http://127.0.0.1:{server.address[1]}"], clock)
        finally:
            await server.stop(0)

    with pytest.raises(CommandError) as failure:
        asyncio.run(ask())
    assert message in str(failure.value)
