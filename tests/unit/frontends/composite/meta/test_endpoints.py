"""Hooks over HTTPS with credentials from Secrets, at an address that `resolve` gives."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from aiohttp import web
from tests.unit.client.http import certificates
from tests.unit.client.http.servers import server_context
from tests.unit.frontends.composite.meta.stage import PARENTS, Json, cat, composite_of, config_map

from ostinato.api.codec import from_dict
from ostinato.client import MergePatch
from ostinato.frontends.composite.meta.controllers import MetaSettings
from ostinato.frontends.composite.meta.definitions import EndpointConfig, Webhook
from ostinato.frontends.composite.meta.endpoints import Endpoints
from ostinato.frontends.composite.meta.following import MetaControllers
from ostinato.frontends.kernel.sync import DeciderError
from ostinato.kinds.core_v1 import ConfigMap, Secret
from ostinato.testing import Cluster

HOST = "hook.default"
REF = {"name": "hook", "namespace": "default"}
SERVICE = {"service": {**REF, "port": 443, "protocol": "https"}, "path": "/sync"}
CREDENTIALS = {
    "caBundle": {"configMapRef": REF},
    "clientTLS": {"secretRef": REF},
    "authorization": {"secretRef": {**REF, "key": "token"}},
}


@asynccontextmanager
async def guarded(tokens: list[str]) -> AsyncIterator[int]:
    """A hook that wants a client certificate and one of the tokens; yields its port."""

    async def answer(request: web.BaseRequest) -> web.StreamResponse:
        assert request.transport is not None
        if not request.transport.get_extra_info("peercert"):
            return web.Response(status=403)
        if request.headers.get("Authorization") not in [f"Bearer {each}" for each in tokens]:
            return web.Response(status=401, text="wrong token")
        document = await request.json()
        return web.json_response({"children": [config_map(document["parent"], "made")], "status": {}})

    runner = web.ServerRunner(web.Server(answer), shutdown_timeout=0.1)
    await runner.setup()
    context = server_context(certificates.server(HOST), certificates.authority().pem)
    await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context).start()
    try:
        yield runner.addresses[0][1]
    finally:
        await runner.cleanup()


async def credentials(cluster: Cluster, token: str) -> None:
    """Create the objects that the definitions name."""
    own = certificates.client("metacontroller")
    data = {"tls.crt": own.pem, "tls.key": own.key_pem, "token": token.encode()}
    encoded = {name: base64.b64encode(value).decode() for name, value in data.items()}
    for kind, content in (("Secret", encoded), ("ConfigMap", {"ca.crt": certificates.authority().pem.decode()})):
        await cluster.client.create({"apiVersion": "v1", "kind": kind, "metadata": {"name": "hook"}, "data": content})


async def test_a_hook_behind_tls_is_called_and_a_new_token_is_read_after_a_failure(
    cluster: Cluster,
) -> None:
    tokens = ["second"]
    async with guarded(tokens) as port:
        await cluster.install(PARENTS)
        await credentials(cluster, "first")
        configs: list[Json] = [{"host": "other.default"}, {"host": HOST, **CREDENTIALS}]
        definition = composite_of("cats", {"sync": {"webhook": SERVICE}}, endpointConfigs=configs)
        settings = MetaSettings(resolve={HOST: f"127.0.0.1:{port}"})
        manager = cluster.manager(rbac=False)
        await manager.start(MetaControllers([definition], settings=settings))
        await cluster.client.create(cat())
        event = await cluster.events.expect("SyncError", regarding="tom", note="status 401: wrong token")
        assert "first" not in event.note
        assert await cluster.client.get(ConfigMap, "made", missing=None) is None
        token = base64.b64encode(b"second").decode()
        await cluster.client.patch(Secret, "hook", MergePatch({"data": {"token": token}}))
        await cluster.eventually(ConfigMap, "made")
        await manager.end()
        assert manager.errors


UNUSABLE = [
    ({"caBundle": {}}, "exactly one of inline, secretRef and configMapRef"),
    ({"caBundle": {"inline": "x", "secretRef": REF}}, "exactly one of"),
    ({"authorization": {"type": "basic", "secretRef": {**REF, "key": "token"}}}, "use basicAuth"),
    ({"authorization": {"secretRef": {**REF, "key": "missing"}}}, "key 'missing' is missing or empty"),
    ({"authorization": {"secretRef": {**REF, "key": "token"}}, "basicAuth": {"secretRef": REF}}, "exclusive"),
    ({"basicAuth": {"secretRef": {"name": "nothing", "namespace": "default"}}}, "Secret default/nothing"),
]


async def test_credentials_that_cannot_be_used_are_refused_with_their_field(cluster: Cluster) -> None:
    await credentials(cluster, "t")
    endpoints = Endpoints(cluster.manager(rbac=False).client, {})
    for fields, said in UNUSABLE:
        with pytest.raises(DeciderError) as error:
            await endpoints.of(from_dict(Webhook, {"url": "https://hook/", **fields}), [])
        assert said in str(error.value)


async def test_own_credentials_of_a_hook_replace_those_of_its_host(cluster: Cluster) -> None:
    await credentials(cluster, "t")
    endpoints = Endpoints(cluster.manager(rbac=False).client, {"hook:8443": "127.0.0.1"})
    configs = [from_dict(EndpointConfig, {"host": "hook:8443", **CREDENTIALS})]
    shared = await endpoints.of(from_dict(Webhook, {"url": "https://hook:8443/"}), configs)
    assert (shared.address, bool(shared.ca), bool(shared.certificate)) == ("127.0.0.1:8443", True, True)
    inline = {"url": "https://hook:8443/", "caBundle": {"inline": "pem"}, "timeout": "3s"}
    own = await endpoints.of(from_dict(Webhook, inline), configs)
    assert (own.ca, own.certificate, own.authorization, own.timeout) == (b"pem", b"", None, 3.0)
