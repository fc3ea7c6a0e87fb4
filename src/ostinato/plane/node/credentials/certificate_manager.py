"""The certificates of a node that joins: asked for by CertificateSigningRequests, kept in its state, renewed in time.

- The client certificate says who the node is: `system:node:NAME` in `system:nodes`. The first one is asked for with the
  credentials that the node was given (a bootstrap token, or a kubeconfig), all others with the one before.
- The serving certificate is what API servers verify. It is asked for by the node itself, for the addresses that its
  Node object has.

Keys are made here and never leave the machine. Files are replaced as a whole: a crash leaves the old pair or the new.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ostinato.api.errors import APIError, NotFound
from ostinato.api.meta import ObjectMeta
from ostinato.client.client import Client
from ostinato.client.config.config import Config, Tls
from ostinato.client.http.transport import HttpTransport
from ostinato.client.transport.protocol import TransportError
from ostinato.controllers import Dependencies
from ostinato.kinds.certificates_v1 import CertificateSigningRequest, CertificateSigningRequestSpec
from ostinato.kinds.core_v1 import Node
from ostinato.server.state import write_private
from ostinato.world import World

if TYPE_CHECKING:
    from cryptography import x509

CLIENT: Final = "kubernetes.io/kube-apiserver-client-kubelet"
SERVING: Final = "kubernetes.io/kubelet-serving"

_POLL_INTERVAL: Final = 1.0  # seconds until it is looked whether a request was signed
_FIRST_RETRY: Final = 1.0
_MAX_RETRY: Final = 60.0
_SIGN_TIMEOUT: Final = 300.0  # seconds for a renewal to be signed
_MINIMUM_LEFT: Final = 0.1  # of its lifetime, for a certificate of the last start to be used


class CertificateError(Exception):
    """The node gets no certificate; the message says why, and what to do."""


class CertificateFile:
    """A certificate and its key, in one file: it is replaced whole."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def write(self, certificate: bytes, key: bytes) -> None:
        write_private(self.path, certificate + key)

    @property
    def validity(self) -> tuple[datetime, datetime] | None:
        """From when until when the certificate is valid; None if there is none."""
        from cryptography import x509  # noqa: PLC0415 - loads only where a node joins

        try:
            certificate = x509.load_pem_x509_certificate(self.path.read_bytes())
        except (OSError, ValueError):
            return None
        return certificate.not_valid_before_utc, certificate.not_valid_after_utc

    def is_usable(self, now: datetime) -> bool:
        validity = self.validity
        if validity is None:
            return False
        begins, ends = validity
        return begins <= now and ends - now > (ends - begins) * _MINIMUM_LEFT


async def bootstrap_config(world: World, node: str, directory: Path, given: Config, within: float) -> Config:
    """The configuration with which a node asks in its own name.

    `directory` keeps the certificate; without one that serves, it is asked for with `given`. CertificateError if it is
    not signed within `within` seconds.
    """
    pair = CertificateFile(directory / "client.pem")
    if not pair.is_usable(world.clock.now()):
        client = Client(HttpTransport(given, world), world=world, namespace="default")
        try:
            await _request_certificate(client, world, node, CLIENT, [], pair, within)
        finally:
            await client.close()
    tls = Tls(
        ca_file=given.tls.ca_file,
        ca_data=given.tls.ca_data,
        server_name=given.tls.server_name,
        certificate_file=pair.path,
        key_file=pair.path,
    )
    return replace(
        given,
        tls=tls,
        token=None,
        token_file=None,
        username="",
        password=None,
        exec_plugin=None,
        impersonate=None,
    )


class CertificateManager:
    """A runnable of a manager: renews a certificate of a node when most of its time is over."""

    needs_leader_election = False

    def __init__(self, node: str, signer: str, pair: CertificateFile, changed: Callable[[], None]) -> None:
        """`changed` is called with each new certificate."""
        self.name = f"certificate-{signer.rpartition('/')[2]}"
        self._node = node
        self._signer = signer
        self._pair = pair
        self._changed = changed

    async def run(self, dependencies: Dependencies) -> None:
        world, client, retry = dependencies.world, dependencies.client.live, _FIRST_RETRY
        while True:
            await world.clock.sleep(max(0.0, self._left(world)))
            try:
                hosts: Sequence[str] = ()
                if self._signer == SERVING:
                    hosts = _addresses(await client.get(Node, self._node))
                await _request_certificate(client, world, self._node, self._signer, hosts, self._pair, _SIGN_TIMEOUT)
            except NotFound:  # a node asks for its serving certificate once it has registered
                await world.clock.sleep(_FIRST_RETRY)
                continue
            except (APIError, TransportError, CertificateError) as error:
                dependencies.logger.warning("certificate not renewed signer=%s error=%s", self._signer, error)
                await world.clock.sleep(retry)
                retry = min(2 * retry, _MAX_RETRY)
                continue
            retry = _FIRST_RETRY
            self._changed()

    def _left(self, world: World) -> float:
        """Seconds until it is time: at a moment between 70 and 90 % of the lifetime, another for each certificate."""
        validity = self._pair.validity
        if validity is None:
            return 0.0
        begins, ends = validity
        part = 0.7 + 0.2 * world.rng.random()
        return (begins + (ends - begins) * part - world.clock.now()).total_seconds()


async def _request_certificate(
    client: Client, world: World, node: str, signer: str, hosts: Sequence[str], pair: CertificateFile, within: float
) -> None:
    """Make a key, have it signed, and keep both."""
    key, request = await world.executor.run(_new_key_and_request, node, hosts)
    usages = ["digital signature", "server auth" if signer == SERVING else "client auth"]
    asked = CertificateSigningRequest(
        metadata=ObjectMeta(generate_name="csr-"),
        spec=CertificateSigningRequestSpec(request=request, signer_name=signer, usages=usages),
    )
    try:
        made = await client.create(asked)
        certificate = await _wait_until_signed(client, world, made.metadata.name, within)
    except APIError as error:
        raise CertificateError(f"node {node}: cannot ask for a certificate of {signer}: {error}") from error
    pair.write(certificate, key)


async def _wait_until_signed(client: Client, world: World, name: str, within: float) -> bytes:
    until = world.clock.monotonic() + within
    while True:
        request = await client.get(CertificateSigningRequest, name)
        for condition in request.status.conditions:
            if condition.type in ("Denied", "Failed"):
                raise CertificateError(f"CertificateSigningRequest {name}: {condition.type}: {condition.message}")
        if request.status.certificate:
            return bytes(request.status.certificate)
        if world.clock.monotonic() >= until:
            raise CertificateError(
                f"CertificateSigningRequest {name}: not signed within {within:g} seconds; approve it with "
                f"`kubectl certificate approve {name}`, and see that the controllers run"
            )
        await world.clock.sleep(_POLL_INTERVAL)


def _new_key_and_request(node: str, hosts: Sequence[str]) -> tuple[bytes, bytes]:
    """A new key, and a request for a certificate of it, both in PEM."""
    from cryptography import x509  # noqa: PLC0415 - loads only where a node joins
    from cryptography.hazmat.primitives import hashes, serialization  # noqa: PLC0415
    from cryptography.hazmat.primitives.asymmetric import ec  # noqa: PLC0415

    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name(
        [
            x509.NameAttribute(x509.NameOID.ORGANIZATION_NAME, "system:nodes"),
            x509.NameAttribute(x509.NameOID.COMMON_NAME, f"system:node:{node}"),
        ]
    )
    builder = x509.CertificateSigningRequestBuilder().subject_name(subject)
    if hosts:
        names = x509.SubjectAlternativeName([_general_name(host) for host in hosts])
        builder = builder.add_extension(names, critical=False)
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return private, builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)


def _general_name(host: str) -> x509.GeneralName:
    from cryptography import x509  # noqa: PLC0415

    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _addresses(node: Node) -> list[str]:
    """The names and addresses that a Node has, and that its serving certificate is for."""
    return list(dict.fromkeys([node.metadata.name, *(each.address for each in node.status.addresses)]))
