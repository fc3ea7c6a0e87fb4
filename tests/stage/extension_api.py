"""An API server with an extension server behind it, for tests.

async with extension_api(tmp_path) as api:
    answer = await api.client.ask("GET", f"{BASE}/things")
"""

from __future__ import annotations

import asyncio
import base64
import ipaddress
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ostinato.plane.node.registration.machine_info import address
from ostinato.server.standalone import Standalone
from tests.stage.extension_server import ExtensionServer, json_answer
from tests.stage.https_client import Answer, ApiClient
from tests.stage.server import standalone_server
from tests.unit.client.http import certificates

GROUP = "things.example.dev"
BASE = f"/apis/{GROUP}/v1"
API_SERVICES = "/apis/apiregistration.k8s.io/v1/apiservices"
HOST = "things.default.svc"
TOKEN = "token-of-the-administrator"


class ExtensionApi(msgspec.Struct, frozen=True):
    """`backend`: the extension server, registered for `GROUP`. `client`: of an administrator."""

    server: Standalone
    backend: ExtensionServer
    client: ApiClient

    async def until(self, path: str, fits: Callable[[Answer], bool]) -> Answer:
        """Ask until an answer fits."""
        for _ in range(600):
            found = await self.client.ask("GET", path)
            if fits(found):
                return found
            await asyncio.sleep(0.02)  # real time: another server answers
        raise AssertionError(f"{path}: {found.status} {found.body!r}")

    async def condition(self, reason: str) -> dict[str, Any]:
        """Wait for the condition of the APIService to have a reason."""

        def condition(found: Answer) -> dict[str, Any]:
            conditions = (found.value.get("status") or {}).get("conditions") or [{}]
            first: dict[str, Any] = conditions[0]
            return first

        path = f"{API_SERVICES}/v1.{GROUP}"
        return condition(await self.until(path, lambda found: condition(found).get("reason") == reason))

    async def served(self) -> None:
        await self.condition("Passed")


def machine_address() -> str:
    """An address of this machine for endpoints; skips the test if there is only loopback."""
    host = address()
    if ipaddress.ip_address(host).is_loopback:
        pytest.skip("endpoints need an address of this machine other than loopback")
    return host


@asynccontextmanager
async def extension_api(place: Path, **settings: Any) -> AsyncIterator[ExtensionApi]:
    """`settings`: of the API server."""
    tokens = place / "tokens.csv"
    tokens.write_text(f'{TOKEN},admin,admin-uid,"system:masters"\n')
    from ostinato.server.access.authentication.settings import AuthenticationSettings

    own = {"authentication": AuthenticationSettings(token_file=tokens), **settings}
    async with standalone_server(place / "state", **own) as server:
        client = ApiClient(server.url, TOKEN)
        backend = ExtensionServer(await _context(client, place), machine_address())
        backend.answers[BASE] = json_answer(
            {
                "kind": "APIResourceList",
                "groupVersion": f"{GROUP}/v1",
                "resources": [{"name": "things", "namespaced": True, "kind": "Thing", "verbs": ["list"]}],
            }
        )
        async with backend:
            await _register(client, backend)
            api = ExtensionApi(server, backend, client)
            await api.served()
            yield api


async def _context(client: ApiClient, place: Path) -> ssl.SSLContext:
    """Of the extension server: it trusts front proxies as the ConfigMap says."""
    path = "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication"
    data = (await client.ask("GET", path)).value["data"]
    pair = certificates.server(HOST)
    (place / "extension.pem").write_bytes(pair.pem + pair.key_pem)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.verify_mode = ssl.CERT_OPTIONAL
    context.load_verify_locations(cadata=data["requestheader-client-ca-file"])
    context.load_cert_chain(place / "extension.pem")
    return context


async def _register(client: ApiClient, backend: ExtensionServer) -> None:
    service = {"metadata": {"name": "things"}, "spec": {"ports": [{"port": 443}]}}
    endpoints = {
        "metadata": {"name": "things", "labels": {"kubernetes.io/service-name": "things"}},
        "addressType": "IPv4",
        "ports": [{"name": "", "port": backend.port}],
        "endpoints": [{"addresses": [backend.host]}],
    }
    registered = {
        "metadata": {"name": f"v1.{GROUP}"},
        "spec": {
            "group": GROUP,
            "version": "v1",
            "groupPriorityMinimum": 2000,
            "versionPriority": 10,
            "service": {"namespace": "default", "name": "things"},
            "caBundle": base64.b64encode(certificates.authority().pem).decode(),
        },
    }
    for path, sent in (
        ("/api/v1/namespaces/default/services", service),
        ("/apis/discovery.k8s.io/v1/namespaces/default/endpointslices", endpoints),
        (API_SERVICES, registered),
    ):
        made = await client.ask("POST", path, sent)
        assert made.status == 201, made.body
