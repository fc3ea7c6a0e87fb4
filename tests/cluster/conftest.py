"""The cluster of these tests: Ostinato's, or another with --cluster KUBECONFIG. Tests must pass on both."""

from __future__ import annotations

import asyncio
import base64
import http.client
import itertools
import json
import os
import ssl
import tempfile
import urllib.parse
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest
import yaml

from ostinato.api.meta import ObjectMeta
from ostinato.client import Client, Config
from ostinato.kinds.core_v1 import Namespace
from ostinato.server.in_process.transport import InProcessTransport
from ostinato.world import World
from tests.stage.server import started_server
from tests.unit.plane.network.machine import TestMachine, machine

SECONDS = 60
Play = Callable[[Client], Awaitable[None]]

_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def kubeconfig(request: pytest.FixtureRequest) -> Path:
    other = request.config.getoption("--cluster")
    return Path(other) if other else request.getfixturevalue("apiserver").kubeconfig


class Admin:
    """The user of a kubeconfig, with nothing but the standard library."""

    def __init__(self, kubeconfig: Path) -> None:
        config = yaml.safe_load(kubeconfig.read_text())
        cluster, self._user = config["clusters"][0]["cluster"], config["users"][0]["user"]
        self._url = urllib.parse.urlsplit(cluster["server"])
        self._tls = ssl.create_default_context(cadata=base64.b64decode(cluster["certificate-authority-data"]).decode())
        if "client-certificate-data" in self._user:
            with tempfile.NamedTemporaryFile() as pem:
                for part in ("client-certificate-data", "client-key-data"):
                    pem.write(base64.b64decode(self._user[part]))
                pem.flush()
                self._tls.load_cert_chain(pem.name)

    def __call__(self, method: str, path: str, body: object = None) -> int:
        headers = {"Content-Type": "application/json"}
        if "token" in self._user:
            headers["Authorization"] = f"Bearer {self._user['token']}"
        connection = http.client.HTTPSConnection(
            self._url.hostname or "", self._url.port, context=self._tls, timeout=30
        )
        connection.request(method, path, json.dumps(body) if body else None, headers)
        response = connection.getresponse()
        response.read()
        connection.close()
        return response.status


@pytest.fixture
def namespace(kubeconfig: Path) -> Iterator[str]:
    """A namespace of the test's own."""
    admin = Admin(kubeconfig)
    name = f"test-{os.getpid()}-{next(_numbers)}"
    assert admin("POST", "/api/v1/namespaces", {"metadata": {"name": name}}) == 201
    yield name
    admin("DELETE", f"/api/v1/namespaces/{name}")


@pytest.fixture(params=["over HTTP", "in one process"])
def run(request: pytest.FixtureRequest) -> Iterator[Callable[[Play], None]]:
    """Runs a test with a client that has a namespace of its own."""
    if request.param == "over HTTP":
        kubeconfig, namespace = request.getfixturevalue("kubeconfig"), request.getfixturevalue("namespace")

        async def over_http(play: Play) -> None:
            config = Config.load(path=kubeconfig, namespace=namespace)
            async with Client.connect(config, field_manager="test") as client, asyncio.timeout(SECONDS):
                await play(client)

        yield lambda play: asyncio.run(over_http(play))
        return
    if request.config.getoption("--cluster"):
        pytest.skip("another server is not in this process")

    async def in_process(play: Play) -> None:
        world = World.real()
        async with started_server(world) as server:
            transport = InProcessTransport(server)
            async with Client(transport, world=world, namespace="test", field_manager="test") as client:
                await client.create(Namespace(metadata=ObjectMeta(name="test")))
                async with asyncio.timeout(SECONDS):
                    await play(client)

    yield lambda play: asyncio.run(in_process(play))


@pytest.fixture
def here(request: pytest.FixtureRequest) -> Iterator[TestMachine]:
    """A machine of the test's own: a network namespace with an uplink that leads nowhere else."""
    if request.config.getoption("--cluster"):
        pytest.skip("these are about our own plane")
    with machine() as found:
        yield found
