"""Self-signed certificates: generated on first use, shared by all replicas, renewed long before they expire.

- A `MemoryCertificateStore` serves one process.
- A `SecretCertificateStore` serves all replicas of an operator, which find a renewed certificate within a minute. If
  two replicas renew at the same time, the second has a conflict and uses the certificate of the first.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence
from datetime import timedelta
from typing import Any, Final, NamedTuple, Protocol

from ostinato.api.errors import AlreadyExists, Conflict
from ostinato.certificates.certificate import Certificate, CertificateError, check_pair
from ostinato.certificates.files import AUTHORITIES, CERTIFICATE, KEY
from ostinato.certificates.generate import generate_certificate, inspect_certificate, unexpired_authorities
from ostinato.certificates.object_access import SECRET, ObjectAccess
from ostinato.world import World

LIFETIME: Final = timedelta(days=365)
_LABELS: Final = {"app.kubernetes.io/managed-by": "ostinato"}
_ATTEMPTS: Final = 5


class StoredCertificate(NamedTuple):
    """A stored certificate, with the object that it was loaded from, if any."""

    certificate: Certificate
    version: Any


class CertificateStore(Protocol):
    async def load(self) -> StoredCertificate | None:
        """Return the stored certificate, which may be invalid; None if there is none."""

    async def save(self, certificate: Certificate, replaces: StoredCertificate | None) -> bool:
        """Replace what was loaded. Returns False if it has changed meanwhile: load again."""


class SelfSignedCertificates:
    """Generates certificates for `hosts`, and renews them when a third of the lifetime is left."""

    def __init__(
        self,
        world: World,
        hosts: Sequence[str],
        store: CertificateStore | None = None,
        *,
        lifetime: timedelta = LIFETIME,
        interval: float = 60.0,
    ) -> None:
        """
        - `hosts`: DNS names and IP addresses of the server.
        - `store`: where to keep the certificate. Defaults to memory.
        - `lifetime`: of a certificate. Defaults to a year.
        - `interval`: seconds between two reads of the store. Defaults to 60.
        """
        if not hosts:
            raise ValueError("SelfSignedCertificates() needs at least one host")
        self._world = world
        self._hosts = tuple(hosts)
        self._store = store or MemoryCertificateStore()
        self._lifetime = lifetime
        self.interval = interval

    async def current(self) -> Certificate:
        for _ in range(_ATTEMPTS):
            stored = await self._store.load()
            if stored is not None and self._is_usable(stored.certificate):
                return stored.certificate
            made = await self._world.executor.run(self._generate, stored)
            if await self._store.save(made, stored):
                return made
        raise CertificateError(f"the certificate was replaced {_ATTEMPTS} times concurrently; check for other writers")

    def _is_usable(self, certificate: Certificate) -> bool:
        try:
            check_pair(certificate)
            info = inspect_certificate(certificate.certificate)
        except CertificateError:
            return False
        left = info.expires - self._world.clock.now()
        return bool(certificate.authorities) and info.hosts.issuperset(self._hosts) and left > self._lifetime / 3

    def _generate(self, before: StoredCertificate | None) -> Certificate:
        made = generate_certificate(self._world, self._hosts, self._lifetime)
        trusted = (
            [] if before is None else unexpired_authorities(before.certificate.authorities, self._world.clock.now())
        )
        return Certificate(made.certificate, made.key, made.authorities + b"".join(trusted))


class MemoryCertificateStore:
    """Stores a certificate in memory: for one replica, and for tests."""

    def __init__(self) -> None:
        self._stored: StoredCertificate | None = None

    async def load(self) -> StoredCertificate | None:
        return self._stored

    async def save(self, certificate: Certificate, replaces: StoredCertificate | None) -> bool:
        if self._stored is not replaces:
            return False
        self._stored = StoredCertificate(certificate, None)
        return True


class SecretCertificateStore:
    """Stores a certificate in a Secret of type `kubernetes.io/tls`, created if absent.

    Raises CertificateError for a Secret with a certificate of another manager.
    """

    def __init__(self, objects: ObjectAccess, namespace: str, name: str) -> None:
        self._objects = objects
        self._namespace = namespace
        self._name = name

    async def load(self) -> StoredCertificate | None:
        secret = await self._objects.get(SECRET, self._name, self._namespace)
        if secret is None:
            return None
        data = secret.get("data") or {}
        files = [_decoded(data.get(name)) for name in (CERTIFICATE, KEY, AUTHORITIES)]
        labels = (secret.get("metadata") or {}).get("labels") or {}
        if any(files) and not _LABELS.items() <= labels.items():
            raise CertificateError(
                f"Secret {self._namespace}/{self._name} has a certificate that ostinato did not generate; "
                "use another name, or mount it and pass the directory as certificates"
            )
        return StoredCertificate(Certificate(*files), secret)

    async def save(self, certificate: Certificate, replaces: StoredCertificate | None) -> bool:
        files = (certificate.certificate, certificate.key, certificate.authorities)
        names = (CERTIFICATE, KEY, AUTHORITIES)
        data = {name: base64.b64encode(file).decode("ascii") for name, file in zip(names, files, strict=True)}
        try:
            if replaces is None:
                await self._objects.create(self._secret(data))
            else:
                await self._objects.update(_filled(replaces.version, data))
        except (AlreadyExists, Conflict):
            return False
        return True

    def _secret(self, data: dict[str, str]) -> dict[str, Any]:
        metadata = {"name": self._name, "namespace": self._namespace, "labels": dict(_LABELS)}
        return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "type": "kubernetes.io/tls", "data": data}


def _filled(secret: dict[str, Any], data: dict[str, str]) -> dict[str, Any]:
    metadata = secret.get("metadata") or {}
    labels = {**(metadata.get("labels") or {}), **_LABELS}
    return {**secret, "metadata": {**metadata, "labels": labels}, "data": {**(secret.get("data") or {}), **data}}


def _decoded(value: Any) -> bytes:
    try:
        return base64.b64decode(value, validate=True) if isinstance(value, str) else b""
    except (binascii.Error, ValueError):
        return b""
