"""The webhook server over real HTTPS: reviews in, answers out, certificates that change while it runs."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import inspect
import ssl
import threading
from collections.abc import AsyncIterator, Callable, Coroutine
from datetime import timedelta
from pathlib import Path
from typing import Any

import aiohttp
import msgspec
import pytest
from cryptography import x509
from tests.stage.server import started_server
from tests.unit.client.http import certificates
from tests.unit.webhook.samples import Widget, admission_review, widget

from ostinato.api.errors import ServiceUnavailable, Unauthorized
from ostinato.cache import CachedClient, Informers
from ostinato.certificates.generate import generate_certificate
from ostinato.certificates.object_access import SECRET, VALIDATING
from ostinato.client import Client, ConnectionLost, Unstructured
from ostinato.controllers.runnable import Dependencies, Families
from ostinato.server.in_process.transport import InProcessTransport
from ostinato.webhook import (
    Certificate,
    CertificateError,
    CertificateFiles,
    Dispatcher,
    Limits,
    LiveObjectAccess,
    NotServing,
    SelfSignedCertificates,
    ServiceEndpoint,
    UrlEndpoint,
    Webhooks,
    WebhookServer,
    defaulter,
    validator,
)
from ostinato.webhook import server as server_module
from ostinato.webhook.server import _seconds
from ostinato.world import World

HOSTS = ["127.0.0.1", "localhost"]
PATH = "/validate-example-dev-v1-widget"


@validator(Widget)
def check(widget: Widget) -> str:
    return f"seen {widget.metadata.name}"


@defaulter(Widget)
async def fill_in(widget: Widget) -> None:
    widget.spec.replicas = 1


class Caller:
    """An API server, as far as a webhook server notices."""

    def __init__(self, server: WebhookServer, authorities: bytes) -> None:
        self.url = f"https://127.0.0.1:{server.port}"
        self.context = ssl.create_default_context(cadata=authorities.decode())
        self.session = aiohttp.ClientSession()

    async def post(self, body: Any, path: str = PATH, **options: Any) -> tuple[int, Any]:
        headers = {"Content-Type": "application/json", **options.pop("headers", {})}
        data = body if isinstance(body, bytes) or hasattr(body, "__aiter__") else msgspec.json.encode(body)
        method = options.pop("method", "POST")
        async with self.session.request(
            method, self.url + path, data=data, headers=headers, ssl=self.context, **options
        ) as answer:
            text = await answer.read()
            return answer.status, msgspec.json.decode(text) if "json" in answer.content_type else text.decode()


@contextlib.asynccontextmanager
async def serving(
    *hooks: Any, limits: Limits | None = None, **options: Any
) -> AsyncIterator[tuple[Caller, WebhookServer]]:
    world = World.real()
    source = SelfSignedCertificates(world, HOSTS)
    dispatcher = Dispatcher(world, limits=limits)
    server = WebhookServer(world, source, host="127.0.0.1", port=0, dispatcher=dispatcher, **options)
    server.add(*(hooks or (check, fill_in)))
    await server.start()
    caller = Caller(server, (await source.current()).authorities)
    try:
        yield caller, server
    finally:
        await caller.session.close()
        await server.stop(1)
        world.executor.close()


def running(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    def run(*arguments: Any, **named: Any) -> None:
        asyncio.run(test(*arguments, **named))

    run.__name__ = test.__name__
    run.__signature__ = inspect.signature(test)  # type: ignore[attr-defined]
    return run


@running
async def test_reviews_are_answered_over_https() -> None:
    async with serving() as (caller, _):
        status, answer = await caller.post(admission_review(widget()))
        assert (status, answer["response"]["warnings"]) == (200, ["seen a"])
        status, answer = await caller.post(admission_review(widget()), "/mutate-example-dev-v1-widget?timeout=10s")
        assert (status, answer["response"]["patchType"]) == (200, "JSONPatch")


@running
async def test_a_connection_that_was_closed_twice_does_not_keep_the_server_from_stopping() -> None:
    async with serving() as (caller, server):
        await caller.post(admission_review(widget()))
        assert server._server is not None
        (connection,) = server._server._connections
        assert connection._transport is not None
        connection._transport.close()
        connection._transport.close()
        await server.stop(1)


@running
async def test_other_methods_and_paths_are_refused() -> None:
    async with serving() as (caller, _):
        assert await caller.post(b"", method="GET") == (405, "use POST\n")
        status, text = await caller.post(b"", "/nothing")
        assert status == 404
        assert "no webhook at /nothing; paths: /validate-example-dev-v1-widget" in text


@running
async def test_a_body_is_cut_off_where_it_gets_too_large() -> None:
    async def endless() -> AsyncIterator[bytes]:
        for _ in range(100):
            yield b" " * 100_000

    async with serving(limits=Limits(body=1_000_000)) as (caller, _):
        for body in (endless(), b" " * 1_000_001):
            status, answer = await caller.post(body)
            assert status == 200
            assert answer["response"]["status"]["code"] == 413
        assert (await caller.post(admission_review(widget())))[0] == 200


@running
async def test_a_server_that_will_not_wait_is_not_worked_for() -> None:
    cancelled = asyncio.Event()

    @validator(Widget)
    async def slow(widget: Widget) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    async with serving(slow) as (caller, _):
        _, answer = await caller.post(admission_review(widget()), PATH + "?timeout=50ms")
        assert answer["response"]["status"]["message"] == f"{PATH} timed out after 0.05 s"
        assert cancelled.is_set()


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("10s", 10.0), ("1m30s", 90.0), ("50ms", 0.05), ("", None), ("soon", None), ("-3s", None), ("0s", None)],
)
def test_how_long_a_server_waits_is_read_from_its_query(text: str, seconds: float | None) -> None:
    assert _seconds(text) == seconds


@running
async def test_a_blocking_hook_does_not_delay_other_requests() -> None:
    release = threading.Event()

    @validator(Widget, path="/blocking")
    def blocking(widget: Widget) -> None:
        assert release.wait(10)

    async with serving(check, blocking) as (caller, _):
        blocked = asyncio.create_task(caller.post(admission_review(widget()), "/blocking"))
        status, _ = await caller.post(admission_review(widget()))
        assert status == 200
        assert not blocked.done()
        release.set()
        assert (await blocked)[1]["response"]["allowed"]


@running
async def test_reviews_under_way_finish_when_it_stops() -> None:
    entered, release = asyncio.Event(), asyncio.Event()

    @validator(Widget)
    async def slow(widget: Widget) -> None:
        entered.set()
        await release.wait()

    async with serving(slow) as (caller, server):
        under_way = asyncio.create_task(caller.post(admission_review(widget())))
        await entered.wait()
        stopping = asyncio.create_task(server.stop())
        await asyncio.sleep(0.05)
        assert not stopping.done()
        with pytest.raises(aiohttp.ClientConnectorError):
            await caller.post(admission_review(widget()))
        release.set()
        assert (await under_way)[1]["response"]["allowed"]
        await stopping
        await server.stop()  # harmless


@running
async def test_unfinished_requests_are_dropped_when_the_stop_is_cancelled() -> None:
    entered = asyncio.Event()

    @validator(Widget)
    async def stuck(widget: Widget) -> None:
        entered.set()
        await asyncio.Event().wait()

    async with serving(stuck) as (caller, server):
        under_way = asyncio.create_task(caller.post(admission_review(widget())))
        await entered.wait()
        stopping = asyncio.create_task(server.stop())
        await asyncio.sleep(0.01)
        stopping.cancel()
        with pytest.raises(asyncio.CancelledError):
            await stopping
        with pytest.raises(aiohttp.ClientError):
            await under_way


@running
async def test_it_finds_itself_wherever_it_listens() -> None:
    world = World.real()
    made = generate_certificate(world, HOSTS, timedelta(days=1))
    for host in ("", "0.0.0.0", "127.0.0.1"):
        server = WebhookServer(world, Changing(made), host=host, port=0)
        await server.start()
        await server.check()
        await server.stop()


@running
async def test_the_check_passes_while_the_server_serves(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World.real()
    server = WebhookServer(world, SelfSignedCertificates(world, HOSTS), host="127.0.0.1", port=0)
    with pytest.raises(NotServing, match="has not been started yet"):
        await server.check()
    assert server.port == 0
    await server.start()
    await server.check()
    assert server.port > 0
    monkeypatch.setattr(server_module, "_reachable", lambda _host, port: ("127.0.0.2", port))  # where nothing listens
    with pytest.raises(NotServing, match="not reachable"):
        await server.check()
    await server.stop(1)
    with pytest.raises(NotServing):
        await server.check()


@running
async def test_a_port_in_use_is_reported_with_the_webhooks_name() -> None:
    world = World.real()
    async with serving() as (_, server):
        other = WebhookServer(world, SelfSignedCertificates(world, HOSTS), host="127.0.0.1", port=server.port)
        with pytest.raises(OSError, match=r"cannot serve webhooks: .*address already in use"):
            await other.start()
    world.executor.close()


@running
async def test_callers_may_be_required_to_have_a_certificate(tmp_path: Path) -> None:
    client = certificates.client("api-server")
    write(tmp_path, Certificate(client.pem, client.key_pem))
    async with serving(client_authorities=certificates.authority().pem) as (caller, server):
        with pytest.raises((aiohttp.ClientError, ConnectionError)):
            await caller.post(admission_review(widget()))
        await server.check()  # of itself it asks for none
        caller.context.load_cert_chain(tmp_path / "tls.crt", tmp_path / "tls.key")
        assert (await caller.post(admission_review(widget())))[0] == 200


# Certificates


def shown_by(server: WebhookServer) -> Coroutine[Any, Any, int]:
    """The serial number of the certificate that a new connection is shown."""

    async def look() -> int:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        _, writer = await asyncio.open_connection("127.0.0.1", server.port, ssl=context)
        der = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
        writer.close()
        await writer.wait_closed()
        return x509.load_der_x509_certificate(der).serial_number

    return look()


def serial(certificate: Certificate) -> int:
    return x509.load_pem_x509_certificate(certificate.certificate).serial_number


def write(directory: Path, made: Certificate) -> None:
    (directory / "tls.crt").write_bytes(made.certificate)
    (directory / "tls.key").write_bytes(made.key)


async def until(condition: Callable[[], Any]) -> None:
    async with asyncio.timeout(10):
        while not condition():  # noqa: ASYNC110 - files and sockets have no event to wait for
            await asyncio.sleep(0.01)


@running
async def test_a_file_that_changes_is_shown_and_nonsense_is_not(tmp_path: Path) -> None:
    world = World.real()
    first, second = (generate_certificate(world, HOSTS, timedelta(days=1)) for _ in range(2))
    write(tmp_path, first)
    server = WebhookServer(world, CertificateFiles(world, tmp_path, interval=0.01), host="127.0.0.1", port=0)
    task = asyncio.create_task(server.run())
    await until(lambda: server.port)
    statistics = server.dispatcher.statistics
    assert await shown_by(server) == serial(first)

    (tmp_path / "tls.key").write_bytes(b"nonsense")
    await until(lambda: statistics.certificate_errors)
    assert await shown_by(server) == serial(first)
    write(tmp_path, second)
    await until(lambda: server._certificate and server._certificate.certificate == second.certificate)
    assert await shown_by(server) == serial(second)
    (tmp_path / "tls.crt").unlink()
    errors = statistics.certificate_errors
    await until(lambda: statistics.certificate_errors > errors)
    assert await shown_by(server) == serial(second)
    assert statistics.certificate_reads > statistics.certificate_errors
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


@running
async def test_it_does_not_start_without_a_certificate(tmp_path: Path) -> None:
    world = World.real()
    with pytest.raises(CertificateError, match="cannot read"):
        await WebhookServer(world, CertificateFiles(world, tmp_path), port=0).run()

    class Nonsense:
        interval = 1.0

        async def current(self) -> Certificate:
            return Certificate(b"a", b"b")

    server = WebhookServer(world, Nonsense(), port=0)
    with pytest.raises(CertificateError, match="not a pair"):
        await server.start()
    assert server.dispatcher.statistics.certificate_errors == 1


class LogRecords:
    """A place for CA bundles that may fail."""

    complete = True

    def __init__(self) -> None:
        self.bundles: list[bytes] = []
        self.failures: list[Exception] = []

    async def inject(self, authorities: bytes) -> None:
        if self.failures:
            raise self.failures.pop(0)
        self.bundles.append(authorities)


class Changing:
    """Certificates as a test says."""

    interval = 0.01

    def __init__(self, certificate: Certificate) -> None:
        self.certificate = certificate

    async def current(self) -> Certificate:
        return self.certificate


@running
async def test_a_new_authority_is_made_known_before_it_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ostinato.webhook.server._PROPAGATION_SECONDS", 0.2)
    world = World.real()
    first, second = (generate_certificate(world, HOSTS, timedelta(days=1)) for _ in range(2))
    told, source = LogRecords(), Changing(first)
    bundles: Any = told
    server = WebhookServer(world, source, ca_injector=bundles, host="127.0.0.1", port=0)
    task = asyncio.create_task(server.run())
    await until(lambda: told.bundles)
    assert told.bundles[0] == first.authorities

    told.failures = [ServiceUnavailable.of("later"), ConnectionLost("gone")]
    source.certificate = second
    await until(lambda: second.authorities in told.bundles)
    assert not told.failures
    assert await shown_by(server) == serial(first)  # not before servers had time to learn of it
    await until(lambda: server._certificate == second)
    assert await shown_by(server) == serial(second)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


@running
async def test_the_ca_bundle_is_written_before_the_server_listens(caplog: pytest.LogCaptureFixture) -> None:
    world = World.real()
    made = generate_certificate(world, HOSTS, timedelta(days=1))

    class Listening(LogRecords):
        async def inject(self, authorities: bytes) -> None:
            assert server._server is None
            await super().inject(authorities)

    told = Listening()
    bundles: Any = told
    for failures in ([], [Unauthorized.of("no")], [ConnectionLost("gone")], [TimeoutError()]):
        told.bundles, told.failures = [], [*failures]
        server = WebhookServer(world, Changing(made), ca_injector=bundles, host="127.0.0.1", port=0)
        await server.start()
        assert told.bundles == ([] if failures else [made.authorities])
        assert await shown_by(server) == serial(made), "it serves all the same, and tries again"
        await server.stop()
    assert len([text for text in caplog.messages if "CA bundle not injected" in text]) == 3


# As a manager runs it


class Shown:
    def __init__(self) -> None:
        self.families: list[Families] = []

    def add(self, families: Families) -> None:
        self.families.append(families)

    def remove(self, families: Families) -> None:
        self.families.remove(families)


@running
async def test_webhooks_run_with_everything_made_by_themselves() -> None:
    world = World.real()
    async with started_server(world) as api:
        client = Client(InProcessTransport(api), world=world)
        endpoint = UrlEndpoint("https://127.0.0.1:9443")
        webhooks = Webhooks(check, fill_in, endpoint=endpoint, name="hooks", host="127.0.0.1", port=0)
        for document in webhooks.configurations():
            await client.create(document)
        shown = Shown()
        with pytest.raises(NotServing):
            await webhooks.check()
        informers = Informers(client)
        cached = CachedClient(client, informers, unwatched="refuse")  # whatever is cached, certificates need the server
        dependencies = Dependencies(client=cached, informers=informers, world=world, metrics=shown)
        task = asyncio.create_task(webhooks.run(dependencies))

        async def bundle_is_written() -> None:
            async for event in client.watch(Unstructured.of(VALIDATING.api_version, VALIDATING.kind)):
                if "caBundle" in event.object["webhooks"][0]["clientConfig"]:
                    return

        async with asyncio.timeout(10):
            await bundle_is_written()
        await until(lambda: webhooks._server is not None and webhooks._server._server is not None)
        await webhooks.check()
        assert len(shown.families) == 1
        assert (webhooks.name, webhooks.needs_leader_election) == ("hooks", False)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert not shown.families
        await client.close()
    world.executor.close()


@running
async def test_a_service_keeps_its_certificate_in_a_secret_and_files_are_used_as_they_are(tmp_path: Path) -> None:
    world = World.real()
    async with started_server(world) as api:
        client = Client(InProcessTransport(api), world=world)
        objects = LiveObjectAccess(client)
        endpoint = ServiceEndpoint("default", "widgets")
        server = Webhooks(check, endpoint=endpoint, name="hooks", host="127.0.0.1", port=0).server(world, objects)
        await server.start()
        secret = await objects.get(SECRET, "hooks-certificates", "default")
        assert secret is not None
        assert secret["data"].keys() == {"tls.crt", "tls.key", "ca.crt"}
        await server.stop(1)

        made = generate_certificate(world, HOSTS, timedelta(days=1))
        write(tmp_path, made)
        declared = Webhooks(check, endpoint=endpoint, host="127.0.0.1", port=0, certificates=tmp_path)
        by_option = Webhooks(check, endpoint=endpoint, host="127.0.0.1", port=0)
        by_option.read_certificates(str(tmp_path))
        for webhooks in (declared, by_option):
            assert (webhooks.secret, webhooks.certificate_directory) == (None, str(tmp_path))
            server = webhooks.server(world, objects)
            assert server._ca_injector is None
            await server.start()
            assert await shown_by(server) == serial(made)
            await server.stop(1)

        (tmp_path / "ca.crt").write_bytes(made.authorities)
        source = CertificateFiles(world, tmp_path, authorities=True)
        webhooks = Webhooks(check, endpoint=endpoint, host="127.0.0.1", port=0, certificates=source)
        server = webhooks.server(world, objects)
        assert server._ca_injector is not None, "a source knows who vouches for it"
        await server.start()
        assert await shown_by(server) == serial(made)
        await server.stop(1)
        await client.close()
    world.executor.close()


@running
async def test_cve_2025_69223_a_gzip_bomb_is_not_expanded() -> None:
    bomb = gzip.compress(b" " * (64 << 20))
    async with serving() as (caller, _):
        _, answer = await caller.post(bomb, headers={"Content-Encoding": "gzip"})
        assert not answer["response"]["allowed"]
        assert "JSON is malformed" in answer["response"]["status"]["message"]  # it was read as it came
        assert (await caller.post(admission_review(widget())))[0] == 200
