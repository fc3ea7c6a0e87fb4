"""Certificates of our own: made on first use, shared by all replicas, and renewed long before they end.

Where they are kept decides who shares them. A `MemoryKeeper` is for one process; a `SecretKeeper` for all replicas of
an operator, which serve the same certificate and find a renewed one within a minute. Two replicas that renew at the
same moment end with the same one: the second finds that the Secret has changed, and takes what is in it.
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
from ostinato.webhook.certificates.maker import facts_of, make_certificate, still_trusted
from ostinato.webhook.certificates.objects import SECRET, Objects
from ostinato.world import World

LIFE: Final = timedelta(days=365)
_MARK: Final = {"app.kubernetes.io/managed-by": "ostinato"}
_ATTEMPTS: Final = 5


class Kept(NamedTuple):
    """What a keeper has, and as which version of it."""

    certificate: Certificate
    version: Any


class Keeper(Protocol):
    async def load(self) -> Kept | None:
        """What is kept; the certificate may be nonsense. None if nothing is."""

    async def save(self, certificate: Certificate, replaces: Kept | None) -> bool:
        """Keep it instead of what was loaded. False if that has changed in the meantime: load again."""


class MadeCertificates:
    """Makes certificates for `hosts`, and a new one when a third of the life of the last is left."""

    def __init__(
        self,
        world: World,
        hosts: Sequence[str],
        keeper: Keeper | None = None,
        *,
        life: timedelta = LIFE,
        interval: float = 60.0,
    ) -> None:
        """`keeper` defaults to memory."""
        if not hosts:
            raise ValueError("a certificate needs at least one name or address of the server")
        self._world = world
        self._hosts = tuple(hosts)
        self._keeper = keeper or MemoryKeeper()
        self._life = life
        self.interval = interval

    async def current(self) -> Certificate:
        for _ in range(_ATTEMPTS):
            kept = await self._keeper.load()
            if kept is not None and self._serves(kept.certificate):
                return kept.certificate
            made = await self._world.executor.run(self._make, kept)
            if await self._keeper.save(made, kept):
                return made
        raise CertificateError(f"somebody else has replaced the certificate {_ATTEMPTS} times at once")

    def _serves(self, certificate: Certificate) -> bool:
        try:
            check_pair(certificate)
            facts = facts_of(certificate.certificate)
        except CertificateError:
            return False
        left = facts.ends - self._world.clock.now()
        return bool(certificate.authorities) and facts.hosts.issuperset(self._hosts) and left > self._life / 3

    def _make(self, before: Kept | None) -> Certificate:
        made = make_certificate(self._world, self._hosts, self._life)
        trusted = [] if before is None else still_trusted(before.certificate.authorities, self._world.clock.now())
        return Certificate(made.certificate, made.key, made.authorities + b"".join(trusted))


class MemoryKeeper:
    """Keeps a certificate as long as the process lives: for one replica, and for tests."""

    def __init__(self) -> None:
        self._kept: Kept | None = None

    async def load(self) -> Kept | None:
        return self._kept

    async def save(self, certificate: Certificate, replaces: Kept | None) -> bool:
        if self._kept is not replaces:
            return False
        self._kept = Kept(certificate, None)
        return True


class SecretKeeper:
    """Keeps a certificate in a Secret of type `kubernetes.io/tls`, which is made if there is none.

    A Secret that somebody else has put a certificate into is not touched: a CertificateError says so.
    """

    def __init__(self, objects: Objects, namespace: str, name: str) -> None:
        self._objects = objects
        self._namespace = namespace
        self._name = name

    async def load(self) -> Kept | None:
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
        return Kept(Certificate(*files), secret)

    async def save(self, certificate: Certificate, replaces: Kept | None) -> bool:
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
