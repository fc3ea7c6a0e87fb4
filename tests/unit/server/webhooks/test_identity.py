"""As whom the server calls webhooks: kubeconfig files, certificates and tokens that arrive on the other side."""

from __future__ import annotations

import asyncio
import json
import ssl
from pathlib import Path
from typing import Any

import pytest

from ostinato.client.config.error import ConfigError
from ostinato.server.access.authority import Authority
from ostinato.server.webhooks.client import WebhookClient
from ostinato.server.webhooks.identity import Identities, backend_of
from ostinato.server.webhooks.target import CallError, UnusableTarget
from ostinato.world import World


def _users(place: Path, users: dict[str, Any], **more: Any) -> Identities:
    file = place / "users.kubeconfig"
    entries = [{"name": name, "user": user} for name, user in users.items()]
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "Config", "users": entries, **more}))
    return Identities(file)


@pytest.mark.parametrize(
    ("host", "port", "token"),
    [
        ("a.ns.svc", 443, "exact"),
        ("a.ns.svc", 8443, "port"),
        ("b.ns.svc", 443, "namespace"),
        ("c.other.svc", 443, "service"),
        ("c.other.svc", 8443, "all"),
        ("example.com", 443, "all"),
    ],
)
def test_the_most_exact_user_is_chosen_for_a_host(tmp_path: Path, host: str, port: int, token: str) -> None:
    names = {"a.ns.svc": "exact", "a.ns.svc:8443": "port", "*.ns.svc": "namespace", "*.svc": "service", "*": "all"}
    identity = _users(tmp_path, {name: {"token": value} for name, value in names.items()}).of(host, port)
    assert identity is not None
    assert identity.authorization() == f"Bearer {token}"


def test_without_a_fitting_user_the_current_contexts_is_used_or_none(tmp_path: Path) -> None:
    user = {"u": {"username": "jane", "password": "secret"}}
    assert _users(tmp_path, user).of("example.com", 443) is None
    context = {"contexts": [{"name": "c", "context": {"user": "u", "cluster": ""}}], "current-context": "c"}
    identity = _users(tmp_path, user, **context).of("example.com", 443)
    assert identity is not None
    assert identity.authorization() == "Basic amFuZTpzZWNyZXQ="


def test_no_credential_is_shown_when_an_identity_is_printed(tmp_path: Path) -> None:
    identity = _users(tmp_path, {"*": {"token": "hunter2", "username": "jane", "password": "hunter2"}}).of("a", 443)
    assert "hunter2" not in repr(identity)


def test_a_token_file_is_read_for_every_call(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("first\n")
    identity = _users(tmp_path, {"*": {"tokenFile": str(file)}}).of("a", 443)
    assert identity is not None
    assert identity.authorization() == "Bearer first"
    file.write_text("second")
    assert identity.authorization() == "Bearer second"
    file.unlink()
    with pytest.raises(UnusableTarget, match="cannot be read"):
        identity.authorization()


def test_a_backend_without_https_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "backend"
    cluster = {"name": "c", "cluster": {"server": "http://127.0.0.1:1"}}
    context = {"name": "x", "context": {"cluster": "c"}}
    told = {"apiVersion": "v1", "kind": "Config", "clusters": [cluster], "contexts": [context], "current-context": "x"}
    file.write_text(json.dumps(told))
    with pytest.raises(ConfigError, match="is not https"):
        backend_of(file)


@pytest.mark.parametrize("shows", [True, False])
def test_a_backend_sees_the_certificate_and_the_token(tmp_path: Path, shows: bool) -> None:
    heads: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            certificate = writer.get_extra_info("peercert")
            heads.append(head + str(certificate.get("subject")).encode())
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}")
            await writer.drain()
        finally:
            writer.close()

    async def main() -> None:
        world = World.real()
        authority = Authority(world, tmp_path)
        pair, client = authority.server("hook", ["127.0.0.1"]), authority.client("c", "the-server", ["system:x"])
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(pair.certificate, pair.key)
        context.load_verify_locations(authority.files.certificate)
        context.verify_mode = ssl.CERT_REQUIRED
        server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context)
        port = server.sockets[0].getsockname()[1]
        user = {"client-certificate": str(client.certificate), "client-key": str(client.key), "token": "hunter2"}
        cluster = {"server": f"https://127.0.0.1:{port}/x", "certificate-authority": str(authority.files.certificate)}
        file = tmp_path / "backend"
        file.write_text(
            json.dumps(
                {
                    "apiVersion": "v1",
                    "kind": "Config",
                    "clusters": [{"name": "c", "cluster": cluster}],
                    "users": [{"name": "u", "user": user if shows else {"token": "hunter2"}}],
                    "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
                    "current-context": "x",
                }
            )
        )
        caller = WebhookClient(world.clock, lambda service: ("127.0.0.1", port))
        async with asyncio.timeout(20), server:
            if shows:
                assert await caller.call(backend_of(file), b"{}", 5) == b"{}"
                assert b"POST /x?timeout=5s HTTP/1.1" in heads[0]
                assert b"Authorization: Bearer hunter2" in heads[0]
                assert b"the-server" in heads[0]
            else:
                with pytest.raises(CallError) as failed:
                    await caller.call(backend_of(file), b"{}", 5)
                assert "hunter2" not in str(failed.value)
            caller.close()
        world.executor.close()

    asyncio.run(main())
