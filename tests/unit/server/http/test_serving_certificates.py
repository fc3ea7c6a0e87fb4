"""Serving certificates of the operator, over TLS connections to a whole server."""

from __future__ import annotations

import asyncio
import logging
import os
import ssl
from collections.abc import Awaitable, Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding, PrivateFormat

from ostinato.client.client import Client
from ostinato.client.config.config import Config
from ostinato.kinds.core_v1 import Namespace
from ostinato.server.access.authority import Authority
from ostinato.server.http.serving_certificates import KeyPairFiles, ServingCertificateError, TlsSettings
from ostinato.server.standalone import Settings, Standalone
from ostinato.world import World


class Operator:
    """An operator's own authority and the key pairs that it signs."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir()
        self._authority = Authority(World.real(workers=1), directory)
        self.bundle = self._authority.files.certificate

    def pair(self, name: str, *hosts: str, patterns: tuple[str, ...] = ()) -> KeyPairFiles:
        made = self._authority.server(name, list(hosts))
        return KeyPairFiles(made.certificate, made.key, patterns)


@pytest.fixture
def operator(tmp_path: Path) -> Operator:
    return Operator(tmp_path / "operator")


def play(path: Path, script: Callable[[Standalone], Awaitable[None]], **tls: Any) -> None:
    async def main() -> None:
        world = World.real(workers=1)
        server = Standalone(world, Settings(state=path / "state", port=0, store="memory", tls=TlsSettings(**tls)))
        await server.start()
        try:
            await script(server)
        finally:
            await server.stop()
            world.executor.close()

    asyncio.run(main())


async def certificate(server: Standalone, name: str | None) -> x509.Certificate:
    """The certificate that a client gets which asks for a name."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    port = int(server.url.rpartition(":")[2])
    _, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context, server_hostname=name or "127.0.0.1")
    try:
        shown = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
        return x509.load_der_x509_certificate(shown)
    finally:
        writer.close()
        await writer.wait_closed()


def names(found: x509.Certificate) -> list[str]:
    extension = found.extensions.get_extension_for_class(x509.SubjectAlternativeName)
    return list(extension.value.get_values_for_type(x509.DNSName))


def replace(target: KeyPairFiles, source: KeyPairFiles, *fields: str) -> None:
    for field in fields:
        replacement = getattr(target, field).with_suffix(".new")
        replacement.write_bytes(getattr(source, field).read_bytes())
        os.replace(replacement, getattr(target, field))


async def eventually(condition: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(20):
        while not await condition():  # noqa: ASYNC110 - the files are polled
            await asyncio.sleep(0.05)


def test_a_client_of_the_operators_authority_verifies_the_serving_certificate(
    tmp_path: Path, operator: Operator
) -> None:
    async def script(server: Standalone) -> None:
        context = ssl.create_default_context(cafile=operator.bundle)
        port = int(server.url.rpartition(":")[2])
        for host in ("api.example.com", "127.0.0.1"):
            reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context, server_hostname=host)
            writer.write(b"GET /readyz HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
            assert b"200" in await reader.readline()
            writer.close()
            await writer.wait_closed()

    play(tmp_path, script, key_pair=operator.pair("api", "api.example.com", "127.0.0.1"))


def test_the_servers_own_kubeconfig_works_beside_an_operators_certificate(tmp_path: Path, operator: Operator) -> None:
    """Its client certificate is verified, too, in the context that the server name selects."""

    async def script(server: Standalone) -> None:
        async with Client.connect(Config.load(path=server.kubeconfig)) as client:
            assert (await client.get(Namespace, "default")).metadata.name == "default"

    play(tmp_path, script, key_pair=operator.pair("api", "api.example.com"))


def test_a_client_certificate_is_verified_with_an_operators_certificate(tmp_path: Path, operator: Operator) -> None:
    async def script(server: Standalone) -> None:
        state = tmp_path / "state"
        for _ in range(2):  # the second handshake may resume the first one's session
            context = ssl.create_default_context(cafile=operator.bundle)
            context.load_cert_chain(state / "admin.crt", state / "admin.key")
            port = int(server.url.rpartition(":")[2])
            reader, writer = await asyncio.open_connection(
                "127.0.0.1", port, ssl=context, server_hostname="api.example.com"
            )
            writer.write(b"GET /api/v1/namespaces/default HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
            assert b"200" in await reader.readline()
            writer.close()
            await writer.wait_closed()

    play(tmp_path, script, key_pair=operator.pair("api", "api.example.com"))


def test_sni_selects_the_certificate_and_other_names_get_the_servers_own(tmp_path: Path, operator: Operator) -> None:
    async def script(server: Standalone) -> None:
        async def shown(name: str | None) -> str:
            return names(await certificate(server, name))[0]

        assert await shown("one.example.com") == "one.example.com"
        assert await shown("a.wild.example.com") == "*.wild.example.com"
        assert await shown("ONE.example.com") == "one.example.com"
        assert await shown("given.example.org") == "two.example.com"
        assert await shown("two.example.com") == "localhost"  # explicit patterns replace the certificate's names
        assert await shown("other.example.com") == "localhost"
        assert await shown(None) == "localhost"
        async with Client.connect(Config.load(path=server.kubeconfig)) as client:
            await client.get(Namespace, "default")

    sni = (
        operator.pair("one", "one.example.com"),
        operator.pair("wild", "*.wild.example.com"),
        operator.pair("two", "two.example.com", patterns=("given.example.org",)),
    )
    play(tmp_path, script, sni=sni)


def test_changed_files_are_served_to_new_connections(
    tmp_path: Path, operator: Operator, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("ostinato.server.standalone.RELOAD_SECONDS", 0.05)
    caplog.set_level(logging.INFO)
    pair, renewed = operator.pair("api", "old.example.com"), operator.pair("next", "new.example.com")

    async def script(server: Standalone) -> None:
        async def is_rejected() -> bool:
            return "the private key does not match the certificate" in caplog.text

        async def is_reloaded() -> bool:
            return "serving certificate reloaded" in caplog.text

        assert names(await certificate(server, None)) == ["old.example.com"]
        replace(pair, renewed, "certificate")  # the key follows: until then the old pair is served
        await eventually(is_rejected)
        assert names(await certificate(server, None)) == ["old.example.com"]
        replace(pair, renewed, "key")
        await eventually(is_reloaded)
        assert names(await certificate(server, None)) == ["new.example.com"]

    play(tmp_path, script, key_pair=pair)


def test_an_expired_certificate_is_served_with_a_warning(
    tmp_path: Path, operator: Operator, caplog: pytest.LogCaptureFixture
) -> None:
    pair = operator.pair("api", "api.example.com")
    expire(pair)

    async def script(server: Standalone) -> None:
        assert names(await certificate(server, None)) == ["api.example.com"]

    play(tmp_path, script, key_pair=pair)
    assert "serving certificate is not valid now" in caplog.text
    assert f"file={pair.certificate}" in caplog.text


def expire(pair: KeyPairFiles) -> None:
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    old = x509.load_pem_x509_certificate(pair.certificate.read_bytes())
    key: Any = load_pem_private_key(pair.key.read_bytes(), None)
    builder = x509.CertificateBuilder(old.issuer, old.subject, key.public_key(), old.serial_number)
    builder = builder.not_valid_before(old.not_valid_before_utc - timedelta(days=2))
    builder = builder.not_valid_after(old.not_valid_before_utc - timedelta(days=1))
    alternative = old.extensions.get_extension_for_class(x509.SubjectAlternativeName)
    made = builder.add_extension(alternative.value, critical=False).sign(key, hashes.SHA256())
    pair.certificate.write_bytes(made.public_bytes(Encoding.PEM))


def _missing(pair: KeyPairFiles, other: KeyPairFiles) -> None:
    pair.key.unlink()


def _mismatched(pair: KeyPairFiles, other: KeyPairFiles) -> None:
    pair.key.write_bytes(other.key.read_bytes())


def _not_pem(pair: KeyPairFiles, other: KeyPairFiles) -> None:
    pair.certificate.write_text("nothing")


def _encrypted(pair: KeyPairFiles, other: KeyPairFiles) -> None:
    from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, load_pem_private_key

    key = load_pem_private_key(pair.key.read_bytes(), None)
    encryption = BestAvailableEncryption(b"secret")
    pair.key.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, encryption))


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (_missing, r"api\.key: cannot be read: No such file"),
        (_mismatched, r"api\.key: the private key does not match the certificate .*api\.crt"),
        (_not_pem, r"api\.crt: not a certificate in PEM"),
        (_encrypted, r"api\.key: the key is encrypted; give a key without a password"),
    ],
)
def test_a_key_pair_that_cannot_be_used_stops_the_start(
    tmp_path: Path, operator: Operator, damage: Callable[[KeyPairFiles, KeyPairFiles], None], message: str
) -> None:
    pair = operator.pair("api", "api.example.com")
    damage(pair, operator.pair("other", "other.example.com"))

    async def script(server: Standalone) -> None:
        raise AssertionError("started")

    with pytest.raises(ServingCertificateError, match=message):
        play(tmp_path, script, key_pair=pair)
