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
from ostinato.webhook.certificates.certificate import Certificate, CertificateError, check_pair
from ostinato.webhook.certificates.files import AUTHORITIES, CERTIFICATE, KEY
from ostinato.webhook.certificates.generate import generate_certificate, inspect_certificate, unexpired_authorities
from ostinato.webhook.certificates.object_access import SECRET, ObjectAccess
from ostinato.world import World

LIFE: Final = timedelta(days=365)
_MARK: Final = {"app.kubernetes.io/managed-by": "ostinato"}
_ATTEMPTS: Final = 5


class StoredCertificate(NamedTuple):
    """What a store has, and as which version of it."""

    certificate: Certificate
    version: Any


class CertificateStore(Protocol):
    async def load(self) -> StoredCertificate | None:
        """What is stored; the certificate may be nonsense. None if nothing is."""

    async def save(self, certificate: Certificate, replaces: StoredCertificate | None) -> bool:
        """Keep it instead of what was loaded. False if that has changed in the meantime: load again."""


class SelfSignedCertificates:
    """Makes certificates for `hosts`, and a new one when a third of the life of the last is left."""

    def __init__(
        self,
        world: World,
        hosts: Sequence[str],
        store: CertificateStore | None = None,
        *,
        life: timedelta = LIFE,
        interval: float = 60.0,
    ) -> None:
        """`store` defaults to memory."""
        if not hosts:
            raise ValueError("a certificate needs at least one name or address of the server")
        self._world = world
        self._hosts = tuple(hosts)
        self._store = store or MemoryCertificateStore()
        self._life = life
        self.interval = interval

    async def current(self) -> Certificate:
        for _ in range(_ATTEMPTS):
            stored = await self._store.load()
            if stored is not None and self._serves(stored.certificate):
                return stored.certificate
            made = await self._world.executor.run(self._make, stored)
            if await self._store.save(made, stored):
                return made
        raise CertificateError(f"somebody else has replaced the certificate {_ATTEMPTS} times at once")

    def _serves(self, certificate: Certificate) -> bool:
        try:
            check_pair(certificate)
            facts = inspect_certificate(certificate.certificate)
        except CertificateError:
            return False
        left = facts.ends - self._world.clock.now()
        return bool(certificate.authorities) and facts.hosts.issuperset(self._hosts) and left > self._life / 3

    def _make(self, before: StoredCertificate | None) -> Certificate:
        made = generate_certificate(self._world, self._hosts, self._life)
        trusted = (
            [] if before is None else unexpired_authorities(before.certificate.authorities, self._world.clock.now())
        )
        return Certificate(made.certificate, made.key, made.authorities + b"".join(trusted))


class MemoryCertificateStore:
    """Keeps a certificate as long as the process lives: for one replica, and for tests."""

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
    """Keeps a certificate in a Secret of type `kubernetes.io/tls`, which is made if there is none.

    A Secret that somebody else has put a certificate into is not touched: a CertificateError says so.
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
        if any(files) and not _MARK.items() <= labels.items():
            raise CertificateError(
                f"Secret {self._namespace}/{self._name} holds a certificate that was not made here: "
                "name another one, or have its files mounted and use them"
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
        metadata = {"name": self._name, "namespace": self._namespace, "labels": dict(_MARK)}
        return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "type": "kubernetes.io/tls", "data": data}


def _filled(secret: dict[str, Any], data: dict[str, str]) -> dict[str, Any]:
    metadata = secret.get("metadata") or {}
    labels = {**(metadata.get("labels") or {}), **_MARK}
    return {**secret, "metadata": {**metadata, "labels": labels}, "data": {**(secret.get("data") or {}), **data}}


def _decoded(value: Any) -> bytes:
    try:
        return base64.b64decode(value, validate=True) if isinstance(value, str) else b""
    except (binascii.Error, ValueError):
        return b""
