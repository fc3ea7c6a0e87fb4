"""Client certificates over TLS: who they name, when they end, and what is refused how."""

from __future__ import annotations

import asyncio
import hashlib
import json
import ssl
import subprocess
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID
from tests.stage.server import standalone_server

from ostinato.server.http.client_certificates import RequestingContext
from ostinato.server.standalone import Standalone
from ostinato.world.clock import RealClock

REVIEWS = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
UID = x509.ObjectIdentifier("1.3.6.1.4.1.57683.2")
Names = list[tuple[x509.ObjectIdentifier, str]]
JANE: Names = [(NameOID.COMMON_NAME, "jane"), (NameOID.ORGANIZATION_NAME, "dev")]


def play(path: Path, script: Callable[[Standalone], Awaitable[None]]) -> None:
    async def main() -> None:
        async with standalone_server(path) as server:
            await script(server)

    asyncio.run(main())


def sign(
    state: Path,
    *,
    names: Names = JANE,
    usages: list[x509.ObjectIdentifier] | None = None,
    days: tuple[float, float] = (-1, 1),
    authority: bool = True,
) -> tuple[Path, bytes]:
    """A client's certificate with its key, in one PEM file, and as DER. Without `authority` it is its own."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(kind, value) for kind, value in names])
    issuer, signer = subject, key
    if authority:
        issuer = x509.load_pem_x509_certificate((state / "ca.crt").read_bytes()).subject
        signer = serialization.load_pem_private_key((state / "ca.key").read_bytes(), None)  # type: ignore[assignment]
    now = datetime.now(UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now + timedelta(days=days[0]))
        .not_valid_after(now + timedelta(days=days[1]))
    )
    if usages is not None:
        builder = builder.add_extension(x509.ExtendedKeyUsage(usages), critical=False)
    certificate = builder.sign(signer, hashes.SHA256())
    file = state / f"client-{certificate.serial_number}.pem"
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    file.write_bytes(certificate.public_bytes(serialization.Encoding.PEM) + private)
    return file, certificate.public_bytes(serialization.Encoding.DER)


class Connection:
    """One TLS connection of a client, on which any number of requests are sent."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    @classmethod
    async def to(cls, server: Standalone, state: Path, shown: Path | None = None, **more: Any) -> Connection:
        context = more.get("context") or ssl.create_default_context(cafile=state / "ca.crt")
        if shown is not None:
            context.load_cert_chain(shown)
        host, _, port = server.url.removeprefix("https://").rpartition(":")
        return cls(*await asyncio.open_connection(host, int(port), ssl=context))

    async def who(self, token: str = "") -> tuple[int, Any]:
        """What the server says about who asks."""
        body = b'{"apiVersion":"authentication.k8s.io/v1","kind":"SelfSubjectReview"}'
        bearer = f"Authorization: Bearer {token}\r\n" if token else ""
        head = f"POST {REVIEWS} HTTP/1.1\r\nHost: a\r\nContent-Length: {len(body)}\r\n{bearer}"
        self.writer.write(f"{head}Content-Type: application/json\r\n\r\n".encode() + body)
        lines = (await self.reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        size = next(int(line.split()[1]) for line in lines if line.lower().startswith("content-length:"))
        answer = json.loads(await self.reader.readexactly(size))
        return int(lines[0].split()[1]), answer["status"]["userInfo"] if answer["kind"] != "Status" else answer

    async def close(self) -> None:
        self.writer.close()
        await self.writer.wait_closed()


async def told(server: Standalone, state: Path, shown: Path | None, token: str = "") -> tuple[int, Any]:
    connection = await Connection.to(server, state, shown)
    try:
        return await connection.who(token)
    finally:
        await connection.close()


def later(monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    wall = RealClock().wall
    monkeypatch.setattr(RealClock, "wall", staticmethod(lambda: wall() + seconds))


def test_expired_client_certificates_end_on_kept_connections(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def script(server: Standalone) -> None:
        file, _ = sign(tmp_path)
        connection = await Connection.to(server, tmp_path, file)
        status, user = await connection.who()
        assert (status, user["username"]) == (201, "jane")
        later(monkeypatch, 2 * 86_400)
        assert (await connection.who())[0] == 401
        await connection.close()

    play(tmp_path, script)


def test_expired_client_certificates_end_in_resumed_sessions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def script(server: Standalone) -> None:
        from ostinato.client.config.tls import ResumingContext

        file, _ = sign(tmp_path)
        context = ResumingContext(ssl.PROTOCOL_TLS_CLIENT)
        context.load_verify_locations(tmp_path / "ca.crt")
        first = await Connection.to(server, tmp_path, file, context=context)
        assert (await first.who())[0] == 201
        context.remember(first.writer.get_extra_info("ssl_object"))
        await first.close()
        second = await Connection.to(server, tmp_path, context=context)
        assert second.writer.get_extra_info("ssl_object").session_reused
        status, user = await second.who()
        assert (status, user["username"]) == (201, "jane")
        later(monkeypatch, 2 * 86_400)
        assert (await second.who())[0] == 401
        await second.close()
        third = await Connection.to(server, tmp_path, context=context)
        assert (await third.who())[0] == 401
        await third.close()

    play(tmp_path, script)


CLIENT, SERVER = ExtendedKeyUsageOID.CLIENT_AUTH, ExtendedKeyUsageOID.SERVER_AUTH
ANY = ExtendedKeyUsageOID.ANY_EXTENDED_KEY_USAGE


@pytest.mark.parametrize(
    ("certificate", "status"),
    [
        ({"usages": [CLIENT]}, 201),
        ({"usages": [ANY]}, 201),
        ({"usages": [SERVER, ANY]}, 201),
        ({"usages": [SERVER, CLIENT]}, 201),
        ({"usages": None}, 201),
        ({"usages": [SERVER]}, 401),
        ({"usages": [ExtendedKeyUsageOID.CODE_SIGNING]}, 401),
        ({"days": (-2, -1)}, 401),
        ({"days": (1, 2)}, 401),
        ({"authority": False}, 401),
        ({"usages": [ANY], "authority": False}, 401),
        ({"usages": [ANY], "days": (-2, -1)}, 401),
        ({"names": [*JANE, (UID, "u-1")]}, 201),
        ({"names": [*JANE, (UID, "u-1"), (UID, "u-2")]}, 401),
    ],
    ids=str,
)
def test_a_certificate_that_identifies_no_one_gets_a_status_as_from_kube_apiserver(
    tmp_path: Path, certificate: dict[str, Any], status: int
) -> None:
    """Over a handshake that succeeds: the client learns why it is refused."""

    async def script(server: Standalone) -> None:
        file, _ = sign(tmp_path, **certificate)
        assert (await told(server, tmp_path, file))[0] == status

    play(tmp_path, script)


def test_a_users_extra_holds_the_fingerprint_of_the_certificate(tmp_path: Path) -> None:
    async def script(server: Standalone) -> None:
        file, der = sign(tmp_path, names=[*JANE, (UID, "u-1")])
        _, user = await told(server, tmp_path, file)
        assert user == {
            "username": "jane",
            "uid": "u-1",
            "groups": ["dev", "system:authenticated"],
            "extra": {"authentication.kubernetes.io/credential-id": [f"X509SHA256={hashlib.sha256(der).hexdigest()}"]},
        }

    play(tmp_path, script)


def test_the_last_common_name_of_a_certificate_counts(tmp_path: Path) -> None:
    async def script(server: Standalone) -> None:
        file, _ = sign(tmp_path, names=[(NameOID.COMMON_NAME, "first"), *JANE])
        assert (await told(server, tmp_path, file))[1]["username"] == "jane"

    play(tmp_path, script)


def test_a_token_counts_where_a_certificate_does_not(tmp_path: Path) -> None:
    async def script(server: Standalone) -> None:
        from ostinato.server.request import User

        assert server.core is not None
        server.core.authenticator.add("secret", User("joe"))
        file, _ = sign(tmp_path, authority=False)
        status, user = await told(server, tmp_path, file, "secret")
        assert (status, user["username"]) == (201, "joe")
        assert (await told(server, tmp_path, file, "wrong"))[0] == 401

    play(tmp_path, script)


def test_the_handshake_names_the_authority_of_clients(tmp_path: Path) -> None:
    async def script(server: Standalone) -> None:
        address = server.url.removeprefix("https://")
        shown = await asyncio.to_thread(
            subprocess.run,
            ["openssl", "s_client", "-connect", address],
            input=b"",
            capture_output=True,
            check=False,
        )
        assert b"Acceptable client certificate CA names\nCN = ostinato-ca\n" in shown.stdout

    play(tmp_path, script)


def test_where_openssl_cannot_be_reached_the_handshake_refuses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ostinato.server.http.client_certificates._openssl", lambda: None)

    async def script(server: Standalone) -> None:
        file, _ = sign(tmp_path)
        assert (await told(server, tmp_path, file))[0] == 201
        stranger, _ = sign(tmp_path, authority=False)
        with pytest.raises((ssl.SSLError, ConnectionError, asyncio.IncompleteReadError)):
            await told(server, tmp_path, stranger)
        assert (await told(server, tmp_path, None))[0] in (201, 401, 403)

    play(tmp_path, script)
    assert RequestingContext(tmp_path / "ca.crt").strict
