"""The metrics endpoint: further handlers, TLS, and access control by a real API server."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from tests.stage.server import standalone_server
from tests.unit.manager.test_real import alone, ask, soon

from ostinato.api.gvk import NamespacedName
from ostinato.certificates.files import CERTIFICATE, KEY
from ostinato.certificates.generate import generate_certificate
from ostinato.client import Client, Config
from ostinato.client.config.config import Impersonation
from ostinato.crd import Access, review_access, roles_of
from ostinato.crd.program import access_of_managers
from ostinato.http.server import HttpRequest, HttpResponse
from ostinato.manager import Manager, MetricsOptions
from ostinato.server.access.authentication.settings import AuthenticationSettings
from ostinato.world import World

OPERATOR = NamespacedName("default", "operator")
USER = "system:serviceaccount:default:operator"


@asynccontextmanager
async def served(manager: Manager) -> AsyncIterator[int]:
    """Run a manager, and yield the port of its metrics."""
    serving = asyncio.create_task(manager.serve())
    await asyncio.sleep(0)
    await manager.elected()
    try:
        yield next(each.port for each in manager._endpoints if each.name == "metrics")
    finally:
        manager.stop()
        await serving


async def ask_securely(port: int, path: str, token: str = "", authority: bytes = b"") -> tuple[int, str]:
    context = ssl.create_default_context(cadata=authority.decode()) if authority else False
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    url = f"https://localhost:{port}{path}"
    async with aiohttp.ClientSession(headers=headers) as session, session.get(url, ssl=context) as answer:
        return answer.status, await answer.text()


def test_further_handlers_are_served_beside_the_metrics() -> None:
    async def echo(request: HttpRequest) -> HttpResponse:
        return HttpResponse(201, request.method.encode() + await request.read(10))

    def blocking(request: HttpRequest) -> str:
        return f"{request.path} {request.query['q'][0]}"

    async def play() -> None:
        manager = alone(metrics="127.0.0.1:0")
        manager.add_metrics_handler("/echo", echo).add_metrics_handler("/below/", blocking)
        manager.add_metrics_handler("/below/wrong", lambda request: 7)  # type: ignore[arg-type, return-value]
        async with served(manager) as port:
            assert await ask(port, "/echo", "POST") == (201, "POST")
            assert await ask(port, "/below/a/b?q=1") == (200, "/below/a/b 1")
            assert (await ask(port, "/below/wrong"))[0] == 500
            assert (await ask(port, "/echo/"))[0] == 404
            assert (await ask(port, "/metrics"))[0] == 200
            with pytest.raises(RuntimeError, match="before the manager is started"):
                manager.add_metrics_handler("/late", echo)

    soon(play())


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("/metrics", "the path /metrics is that of the metrics; use another"),
        ("/metrics/", "the path /metrics is that of the metrics; use another"),
        ("twice", "'twice' is not a path for a handler; it must begin with a single slash"),
        ("//twice", "'//twice' is not a path for a handler"),
        ("/once", "the path /once has a handler; use another"),
    ],
)
def test_invalid_paths_of_handlers_are_rejected(path: str, message: str) -> None:
    manager = alone(metrics=":0").add_metrics_handler("/once", lambda _: "")
    with pytest.raises(ValueError, match=message):
        manager.add_metrics_handler(path, lambda _: "")


def test_handlers_need_the_endpoint() -> None:
    with pytest.raises(RuntimeError, match=r"needs the metrics endpoint; set Manager\(metrics=\.\.\.\)"):
        alone().add_metrics_handler("/once", lambda _: "")


def test_tokens_are_not_accepted_without_tls() -> None:
    with pytest.raises(ValueError, match="authorize needs tls"):
        MetricsOptions(":0", tls=False)
    with pytest.raises(ValueError, match="is not a listen address"):
        MetricsOptions("8443")


def test_certificate_files_are_reloaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    world = World.real()

    def written() -> bytes:
        made = generate_certificate(world, ["localhost"], timedelta(days=1))
        (tmp_path / CERTIFICATE).write_bytes(made.certificate)
        (tmp_path / KEY).write_bytes(made.key)
        return made.authorities

    async def play() -> None:
        first = written()
        manager = alone(metrics=MetricsOptions("127.0.0.1:0", certificates=tmp_path, authorize=False))
        endpoint: Any = manager._endpoints[0]
        endpoint._certificate._source.interval = 0.01
        async with served(manager) as port:
            assert (await ask_securely(port, "/metrics", authority=first))[0] == 200
            second = written()
            while True:
                try:
                    assert (await ask_securely(port, "/metrics", authority=second))[0] == 200
                    break
                except aiohttp.ClientConnectorCertificateError:
                    await world.clock.sleep(0.01)
            with pytest.raises(aiohttp.ClientConnectorCertificateError):
                await ask_securely(port, "/metrics", authority=first)

    soon(play())
    world.executor.close()


def test_only_permitted_tokens_get_the_metrics_over_tls(tmp_path: Path) -> None:
    """The manager has the roles that are derived for it, and nothing else."""
    tokens = tmp_path / "tokens.csv"
    tokens.write_text("scraper-token,prometheus,1,monitors\nother-token,other,2\n")

    async def play() -> None:
        authentication = AuthenticationSettings(token_file=tokens)
        async with standalone_server(tmp_path / "state", authentication=authentication) as server:
            admin = Config.load(path=server.kubeconfig)
            options = MetricsOptions("127.0.0.1:0")
            config = replace(admin, impersonate=Impersonation(user=USER, groups=("system:serviceaccounts",)))
            manager = Manager(config, metrics=options)
            manager.add_metrics_handler("/debug/", lambda request: request.path)
            rules = access_of_managers([manager], namespace="default")
            assert [each for each in review_access() if each not in rules] == []
            async with Client.connect(admin) as client, served(manager) as port:
                assert (await ask_securely(port, "/metrics", "scraper-token"))[0] == 500, "it may not review tokens yet"
                for role in roles_of(rules, name="operator", service_account=OPERATOR):
                    await client.create(role)
                assert await ask_securely(port, "/metrics") == (401, "Unauthorized\n")
                assert await ask_securely(port, "/metrics", "invented") == (401, "Unauthorized\n")
                assert await ask_securely(port, "/metrics", "other-token") == (
                    403,
                    "Authorization denied for user other\n",
                )
                scrape = [Access(urls=("/metrics",), verbs=("get",))]
                for role in roles_of(scrape, name="scrape", service_account=OPERATOR):
                    if "subjects" in role:
                        group = "rbac.authorization.k8s.io"
                        role["subjects"] = [{"kind": "Group", "name": "monitors", "apiGroup": group}]
                    await client.create(role)
                status, text = await ask_securely(port, "/metrics", "scraper-token")
                assert (status, "process_cpu_seconds_total" in text) == (200, True)
                assert (await ask_securely(port, "/debug/queues", "scraper-token"))[0] == 403
                assert (await ask_securely(port, "//metrics", "scraper-token"))[0] == 403
                asked = manager.metrics.text()
                assert (await ask_securely(port, "/metrics", "scraper-token"))[0] == 200
                assert _reviews(manager.metrics.text()) == _reviews(asked), "the second answer is cached"
            with pytest.raises(aiohttp.ClientConnectionError):
                await ask_securely(port, "/metrics", "scraper-token")

    soon(play())


def _reviews(text: str) -> list[str]:
    return [
        line for line in text.splitlines() if line.startswith("rest_client_requests_total") and 'method="POST"' in line
    ]
