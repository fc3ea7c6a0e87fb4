"""Certificate manager: obtains and rotates the client and serving certificates of a node.

- The client certificate authenticates the node as `system:node:NAME` in the group `system:nodes`. The first one is
  requested with the bootstrap credentials (a token or a kubeconfig), later ones with the current certificate.
- The serving certificate authenticates the node's HTTPS API. The node requests it for the addresses of its Node object.
- A certificate is rotated at a random point between 70 and 90 % of its lifetime, as by kubelet.
- Keys are generated on the node and never leave it. Certificate and key are one file that is replaced atomically.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Final

from ostinato.api.errors import APIError, NotFound
from ostinato.api.meta import ObjectMeta
from ostinato.certificates.generate import general_name
from ostinato.client.client import Client
from ostinato.client.config.config import Config, Tls
from ostinato.client.http.transport import HttpTransport
from ostinato.client.transport.protocol import TransportError
from ostinato.controllers import Dependencies
from ostinato.kinds.certificates_v1 import CertificateSigningRequest, CertificateSigningRequestSpec
from ostinato.kinds.core_v1 import Node
from ostinato.server.state import write_private
from ostinato.world import World

CLIENT: Final = "kubernetes.io/kube-apiserver-client-kubelet"
SERVING: Final = "kubernetes.io/kubelet-serving"

_FIRST_POLL: Final = 0.1  # seconds until a request is checked for the first time
_MAX_POLL: Final = 1.0
_NODE_POLL: Final = 0.2  # seconds between checks whether the Node has registered its addresses
_FIRST_RETRY: Final = 1.0
_MAX_RETRY: Final = 60.0
_SIGN_TIMEOUT: Final = 300.0  # seconds for a rotation to be signed
_MINIMUM_LEFT: Final = 0.1  # fraction of the lifetime that must remain for a stored certificate to be used


class CertificateError(Exception):
    """The node cannot get a certificate; the message names the reason and the remedy."""


class CertificateFile:
    """A certificate and its key in one PEM file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def write(self, certificate: bytes, key: bytes) -> None:
        write_private(self.path, certificate + key)

    @property
    def validity(self) -> tuple[datetime, datetime] | None:
        """Start and end of the certificate's validity; None if there is no certificate."""
        from cryptography import x509  # noqa: PLC0415 - loads only where a node joins

        try:
            certificate = x509.load_pem_x509_certificate(self.path.read_bytes())
        except (OSError, ValueError):
            return None
        return certificate.not_valid_before_utc, certificate.not_valid_after_utc

    def is_usable(self, now: datetime) -> bool:
        """Return whether the certificate is valid and not close to its expiry."""
        validity = self.validity
        if validity is None:
            return False
        begins, ends = validity
        return begins <= now and ends - now > (ends - begins) * _MINIMUM_LEFT


async def bootstrap_config(world: World, node: str, directory: Path, given: Config, within: float) -> Config:
    """Return the configuration that authenticates as the node, with its client certificate.

    `directory`: holds the certificate; without a usable one, it is requested with the credentials of `given`.
    `CertificateError` if it is not signed within `within` seconds.
    """
    file = CertificateFile(directory / "client.pem")
    if not file.is_usable(world.clock.now()):
        client = Client(HttpTransport(given, world), world=world, namespace="default")
        try:
            await _request_certificate(client, world, node, CLIENT, [], file, within)
        finally:
            await client.close()
    tls = Tls(
        ca_file=given.tls.ca_file,
        ca_data=given.tls.ca_data,
        server_name=given.tls.server_name,
        certificate_file=file.path,
        key_file=file.path,
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
    """A runnable that keeps one certificate of a node valid.

    - `on_rotated`: called after each new certificate was written.
    - A failed request is retried with exponential back-off, up to a minute apart.
    """

    needs_leader_election = False

    def __init__(self, node: str, signer: str, file: CertificateFile, on_rotated: Callable[[], None]) -> None:
        self.name = f"certificate-{signer.rpartition('/')[2]}"
        self._node = node
        self._signer = signer
        self._file = file
        self._on_rotated = on_rotated

    async def run(self, dependencies: Dependencies) -> None:
        world = dependencies.world
        while True:
            await world.clock.sleep(max(0.0, self._rotation_delay(world)))
            await self._rotate(dependencies)
            self._on_rotated()

    async def _rotate(self, dependencies: Dependencies) -> None:
        """Request a certificate until one is signed."""
        world, client, retry = dependencies.world, dependencies.client.live, _FIRST_RETRY
        while True:
            try:
                hosts = await self._hosts(client, world)
                await _request_certificate(client, world, self._node, self._signer, hosts, self._file, _SIGN_TIMEOUT)
            except (APIError, TransportError, CertificateError) as error:
                dependencies.logger.warning("certificate not rotated signer=%s error=%s", self._signer, error)
                await world.clock.sleep(retry)
                retry = min(2 * retry, _MAX_RETRY)
            else:
                return

    async def _hosts(self, client: Client, world: World) -> Sequence[str]:
        """Return the names and addresses of a serving certificate, once the Node has registered its addresses."""
        if self._signer != SERVING:
            return ()
        while True:
            try:
                node = await client.get(Node, self._node)
                if node.status.addresses:
                    addresses = (each.address for each in node.status.addresses)
                    return list(dict.fromkeys([node.metadata.name, *addresses]))
            except NotFound:
                pass
            await world.clock.sleep(_NODE_POLL)

    def _rotation_delay(self, world: World) -> float:
        """Return the seconds until the rotation of the current certificate: none without one."""
        validity = self._file.validity
        if validity is None:
            return 0.0
        begins, ends = validity
        part = 0.7 + 0.2 * world.rng.random()
        return (begins + (ends - begins) * part - world.clock.now()).total_seconds()


async def _request_certificate(
    client: Client, world: World, node: str, signer: str, hosts: Sequence[str], file: CertificateFile, within: float
) -> None:
    """Generate a key, have its certificate signed, and write both."""
    key, request = await world.executor.run(_new_key_and_request, node, hosts)
    usages = ["digital signature", "server auth" if signer == SERVING else "client auth"]
    csr = CertificateSigningRequest(
        metadata=ObjectMeta(generate_name="csr-"),
        spec=CertificateSigningRequestSpec(request=request, signer_name=signer, usages=usages),
    )
    try:
        created = await client.create(csr)
        certificate = await _wait_until_signed(client, world, created.metadata.name, within)
    except APIError as error:
        raise CertificateError(f"node {node}: cannot request a certificate from {signer}: {error}") from error
    file.write(certificate, key)


async def _wait_until_signed(client: Client, world: World, name: str, within: float) -> bytes:
    until, poll = world.clock.monotonic() + within, _FIRST_POLL
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
                f"`kubectl certificate approve {name}`, and check that the controllers run"
            )
        await world.clock.sleep(poll)
        poll = min(2 * poll, _MAX_POLL)


def _new_key_and_request(node: str, hosts: Sequence[str]) -> tuple[bytes, bytes]:
    """Return a new key and a certificate signing request for it, both as PEM."""
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
        names = x509.SubjectAlternativeName([general_name(host) for host in hosts])
        builder = builder.add_extension(names, critical=False)
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return private, builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
