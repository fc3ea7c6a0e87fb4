"""HttpTransport and TLS: whom it believes, whom it is, and what happens when certificates change."""

from __future__ import annotations

import asyncio
import json
import os
import ssl
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import uvloop
from aiohttp import web
from tests.unit.client.clocks import ShiftedClock, world_with
from tests.unit.client.http import certificates
from tests.unit.client.http.servers import get, peer_name, run, serving, transport, written

from ostinato.client.config.config import Config, ExecPlugin, Tls
from ostinato.client.config.credentials import ClientCertificate, CredentialsError
from ostinato.client.config.error import ConfigError
from ostinato.client.config.key_pair import private_file
from ostinato.client.config.secret import Secret
from ostinato.client.config.tls import Material, make_context
from ostinato.client.http.errors import failure, is_reset
from ostinato.client.transport.protocol import ConnectionLost, Request

CA = certificates.authority().pem


async def who(request: web.Request) -> web.Response:
    return web.Response(text=peer_name(request) or "nobody")


def test_a_server_of_another_authority_is_not_believed() -> None:
    async def main() -> None:
        async with serving() as served:
            config = served.config(tls={"ca_data": certificates.authority("other").pem})
            async with transport(config) as sender:
                with pytest.raises(ConnectionLost, match=r"cannot verify the server's certificate: .*; check certif"):
                    await get(sender)
            assert served.requests == []

    run(main())


def test_the_name_in_the_certificate_counts_and_can_be_configured() -> None:
    async def main() -> None:
        async with serving(pair=certificates.server("api.example.com")) as served:
            async with transport(served.config()) as sender:
                with pytest.raises(ConnectionLost, match=r"cannot verify .*127\.0\.0\.1.*tls-server-name"):
                    await get(sender)
            async with transport(served.config(tls={"server_name": "api.example.com"})) as sender:
                assert await get(sender) == b"hello"
            async with transport(served.config(tls={"server_name": "other.example.com"})) as sender:
                with pytest.raises(ConnectionLost, match="cannot verify the server's certificate"):
                    await get(sender)

    run(main())


def test_a_server_without_tls_is_reported() -> None:
    async def main() -> None:
        async with serving(plain=True) as served:
            config = served.config(server=f"https://127.0.0.1:{served.port}")
            async with transport(config) as sender:
                with pytest.raises(ConnectionLost, match="TLS handshake failed"):
                    await get(sender)

    run(main())


def test_a_tls_alert_is_not_retried() -> None:
    alert = ssl.SSLError(1, "[SSL: TLSV13_ALERT_CERTIFICATE_REQUIRED] tlsv13 alert certificate required (_ssl.c:1)")
    alert.reason = "TLSV13_ALERT_CERTIFICATE_REQUIRED"
    message = str(failure(alert, "GET /"))
    assert message.startswith(
        "GET /: the server ended the TLS connection: certificate required; check client-certificate"
    )
    assert not is_reset(alert)
    cut = ssl.SSLEOFError(8, "EOF occurred in violation of protocol")
    cut.reason = "UNEXPECTED_EOF_WHILE_READING"
    assert is_reset(cut)


@pytest.mark.parametrize("way", ["data", "files", "data and file"])
def test_a_client_certificate_is_shown(way: str, tmp_path: Path) -> None:
    pair = certificates.client("me")
    settings: dict[str, Any] = {
        "data": {"certificate_data": pair.pem, "key_data": Secret(pair.key_pem.decode())},
        "files": {
            "certificate_file": written(tmp_path, "crt", pair.pem),
            "key_file": written(tmp_path, "key", pair.key_pem),
        },
        "data and file": {"certificate_data": pair.pem, "key_file": written(tmp_path, "key", pair.key_pem)},
    }[way]

    async def main() -> None:
        async with serving(who, client_authority=CA) as served:
            async with transport(served.config(tls=settings)) as sender:
                assert await get(sender) == b"me"
            async with transport(served.config()) as sender:
                assert await get(sender) == b"nobody"

    run(main())


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"ca_data": b"nonsense"}, "certificate-authority: unable to load root certificates: no certificate"),
        ({"ca_data": "ü".encode()}, "certificate-authority: unable to load root certificates"),
        ({"ca_data": b"", "ca_file": Path("/gone/ca")}, "certificate-authority: /gone/ca cannot be read: No such file"),
        ({"certificate_data": b"x", "key_data": Secret("s3cret")}, "client-certificate: certificate and key"),
        (
            {
                "certificate_data": certificates.client("a").pem,
                "key_data": Secret(certificates.client("b").key_pem.decode()),
            },
            "client-certificate: certificate and key are not a matching",
        ),
    ],
)
def test_invalid_certificates_are_reported_with_their_field(settings: dict[str, Any], problem: str) -> None:
    async def main() -> None:
        async with serving() as served, transport(served.config(tls=settings, source="the test")) as sender:
            with pytest.raises(ConfigError, match=f"the test: {problem}") as caught:
                await get(sender)
            assert "s3cret" not in str(caught.value)

    run(main())


def test_an_empty_file_is_an_error(tmp_path: Path) -> None:
    async def main() -> None:
        settings = {"ca_data": b"", "ca_file": written(tmp_path, "ca", b"")}
        async with serving() as served, transport(served.config(tls=settings)) as sender:
            with pytest.raises(ConfigError, match="ca is empty; it must contain PEM"):
                await get(sender)

    run(main())


def test_an_encrypted_key_is_rejected_without_a_prompt(monkeypatch: pytest.MonkeyPatch) -> None:
    from cryptography.hazmat.primitives import serialization

    pair = certificates.client("me")
    encrypted = pair.key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.BestAvailableEncryption(b"password"),
    )
    with pytest.raises(ConfigError, match="not a matching, unencrypted pair in PEM"):
        make_context(Config(), Material(b"", ClientCertificate(pair.pem, Secret(encrypted.decode()))))


def test_contexts_are_strict() -> None:
    context = make_context(Config(), Material(CA, None))
    assert context.minimum_version == ssl.TLSVersion.TLSv1_2
    assert context.verify_mode == ssl.CERT_REQUIRED
    assert context.check_hostname
    assert not context.hostname_checks_common_name
    roots = make_context(Config(), Material(b"", None))
    assert roots.verify_mode == ssl.CERT_REQUIRED
    insecure = make_context(Config(tls=Tls(insecure=True)), Material(b"", None))
    assert insecure.verify_mode == ssl.CERT_NONE


def test_without_memfd_a_key_is_loaded_through_a_private_file(monkeypatch: pytest.MonkeyPatch) -> None:
    pair = certificates.client("me")
    material = Material(CA, ClientCertificate(pair.pem, Secret(pair.key_pem.decode())))
    monkeypatch.delattr(os, "memfd_create", raising=False)
    make_context(Config(), material)
    with private_file(b"data") as name:
        assert Path(name).stat().st_mode & 0o077 == 0
        assert Path(name).read_bytes() == b"data"
    assert not Path(name).exists()


def test_an_intermediate_authority_may_stand_alone() -> None:
    async def main() -> None:
        async with serving() as served, transport(served.config(tls={"ca_data": CA + CA})) as sender:
            assert await get(sender) == b"hello"

    run(main())


class Slow:
    """Answers who asked, but only when it is told to."""

    def __init__(self) -> None:
        self.go_on = asyncio.Event()
        self.begun = asyncio.Event()

    async def __call__(self, request: web.Request) -> web.StreamResponse:
        if request.path == "/who":
            return await who(request)
        stream = web.StreamResponse()
        await stream.prepare(request)
        await stream.write(b"begun ")
        self.begun.set()
        await self.go_on.wait()
        await stream.write(peer_name(request).encode())
        return stream


def test_renewed_files_lead_to_new_connections_streams_are_cut_and_short_requests_finish(tmp_path: Path) -> None:
    def renew(name: str) -> dict[str, Path]:
        pair = certificates.client(name)
        return {
            "certificate_file": written(tmp_path, "crt", pair.pem),
            "key_file": written(tmp_path, "key", pair.key_pem),
        }

    async def main() -> None:
        slow, clock = Slow(), ShiftedClock()
        async with (
            serving(slow, client_authority=CA) as served,
            transport(served.config(tls=renew("old")), world_with(clock)) as sender,
        ):
            assert await get(sender, "/who") == b"old"
            watch = (await sender.request(Request("GET", "/watch", stream=True))).chunks()
            assert await anext(watch) == b"begun "
            waiting = asyncio.ensure_future(anext(watch))
            slow.begun.clear()
            short = asyncio.ensure_future(get(sender, "/short"))
            await slow.begun.wait()

            renew("new")
            clock.shift += 299
            assert await get(sender, "/who") == b"old"
            clock.shift += 2
            assert await get(sender, "/who") == b"new"
            with pytest.raises(ConnectionLost):
                await waiting
            assert not short.done()
            slow.go_on.set()
            assert await short == b"begun old"
            assert await get(sender, "/who") == b"new"

            renew("newer")
            clock.shift += 301
            assert await get(sender, "/who") == b"newer"
            assert len(sender._pools._retired) <= 2

    run(main())


@pytest.mark.parametrize("run_on", [run, uvloop.run])
def test_a_second_connection_resumes_the_session_of_the_first(run_on: Callable[..., None]) -> None:
    async def main() -> None:
        slow, resumed = Slow(), []

        async def answer(request: web.Request) -> web.StreamResponse:
            assert request.transport is not None
            resumed.append(request.transport.get_extra_info("ssl_object").session_reused)
            return await slow(request)

        pair = certificates.client("me")
        tls = {"certificate_data": pair.pem, "key_data": Secret(pair.key_pem.decode())}
        async with (
            serving(answer, client_authority=CA) as served,
            transport(served.config(tls=tls)) as sender,
        ):
            async with await sender.request(Request("GET", "/watch", stream=True)):
                assert await get(sender, "/who") == b"me"
            assert resumed == [False, True]
            async with transport(served.config()) as other:
                assert await get(other, "/who") == b"nobody"
            assert resumed == [False, True, False]

    run_on(main())


def test_files_that_become_invalid_leave_the_last_certificates_in_use(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    authority = written(tmp_path, "ca", CA)

    async def main() -> None:
        clock = ShiftedClock()
        async with (
            serving() as served,
            transport(served.config(tls={"ca_data": b"", "ca_file": authority}), world_with(clock)) as sender,
        ):
            await get(sender)
            before = sender._pools._pool
            for content in (b"nonsense", b""):
                written(tmp_path, "ca", content)
                clock.shift += 301
                await get(sender)
            assert sender._pools._pool is before

    run(main())
    assert caplog.text.count("cannot reload certificates, using the last ones error=") == 2


def test_a_renewed_authority_is_believed_from_then_on(tmp_path: Path) -> None:
    authority = written(tmp_path, "ca", certificates.authority("old").pem)

    async def main() -> None:
        clock = ShiftedClock()
        async with serving(pair=certificates.server(signed_by="new")) as served:
            config = served.config(tls={"ca_data": b"", "ca_file": authority, "server_name": "localhost"})
            async with transport(config, world_with(clock)) as sender:
                with pytest.raises(ConnectionLost, match="cannot verify the server's certificate"):
                    await get(sender)
                written(tmp_path, "ca", certificates.authority("new").pem)
                clock.shift += 301
                assert await get(sender) == b"hello"

    run(main())


def plugin_printing(directory: Path, **status: str) -> Path:
    answer = {"kind": "ExecCredential", "apiVersion": "client.authentication.k8s.io/v1", "status": status}
    written(directory, "answer", json.dumps(answer).encode())
    path = written(
        directory, "plugin", f"#!{sys.executable}\nprint(open({str(directory / 'answer')!r}).read())\n".encode()
    )
    path.chmod(0o755)
    return path


def test_the_certificate_of_a_plugin_is_used_and_replaced_when_rejected(tmp_path: Path) -> None:
    def prints(name: str) -> Path:
        pair = certificates.client(name)
        return plugin_printing(tmp_path, clientCertificateData=pair.pem.decode(), clientKeyData=pair.key_pem.decode())

    async def answer(request: web.Request) -> web.StreamResponse:
        return web.Response(status=401) if peer_name(request) == refused else await who(request)

    refused = "nobody at all"

    async def main() -> None:
        nonlocal refused
        plugin = ExecPlugin(command=str(prints("first")), interactive_mode="Never")
        async with (
            serving(answer, client_authority=CA) as served,
            transport(served.config(exec_plugin=plugin)) as sender,
        ):
            assert await get(sender) == b"first"
            prints("second")
            assert await get(sender) == b"first"
            refused = "first"
            assert await get(sender) == b"second"
            assert len(served.connections) == 2

    run(main())


def test_a_plugins_token_that_is_replaced_keeps_the_connection(tmp_path: Path) -> None:
    async def answer(request: web.Request) -> web.Response:
        return web.Response(status=200 if request.headers["Authorization"] == "Bearer second" else 401)

    async def main() -> None:
        plugin = ExecPlugin(command=str(plugin_printing(tmp_path, token="first")), interactive_mode="Never")
        async with serving(answer) as served, transport(served.config(exec_plugin=plugin)) as sender:
            response = await sender.request(Request("GET", "/"))
            assert response.status == 401
            await response.read()
            plugin_printing(tmp_path, token="second")
            await get(sender)
            assert len(served.connections) == 1

    run(main())


def test_an_invalid_certificate_of_a_plugin_is_a_credentials_error(tmp_path: Path) -> None:
    async def main() -> None:
        command = str(plugin_printing(tmp_path, clientCertificateData="x", clientKeyData="s3cret"))
        plugin = ExecPlugin(command=command, interactive_mode="Never")
        async with serving() as served, transport(served.config(exec_plugin=plugin)) as sender:
            with pytest.raises(CredentialsError, match="certificate and key are not a matching") as caught:
                await get(sender)
            assert "s3cret" not in str(caught.value)

    run(main())
