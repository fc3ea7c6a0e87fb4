"""Identity of a cluster with several servers: the keys that all of them must have.

The first server records the fingerprints of its certificate authority and of its service account key in the ConfigMap
kube-system/ostinato-apiservers. A server with other keys does not start: certificates and tokens of the others would be
invalid on it. Keys are rotated as for kube-apiserver: first every server accepts the new one beside the old one, then
they use it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

import msgspec

from ostinato.server.access.authentication.settings import AuthenticationSettings
from ostinato.server.access.authentication.tokens.keys import ServiceAccountKeys
from ostinato.server.access.authority import Authority
from ostinato.server.access.system_config_maps import Data, Handle, ensure_data, read_data
from ostinato.server.state import StateError

NAME = "ostinato-apiservers"
_AUTHORITY = "certificate-authority"
_ACCOUNT_KEY = "service-account-key"


class ClusterIdentity(msgspec.Struct, frozen=True):
    """Fingerprints of one server's keys: those that it uses, and those that it accepts."""

    state: Path
    authority: str
    authorities: Sequence[str]
    account_key: str
    account_keys: Sequence[str]

    @classmethod
    def of(cls, authority: Authority, settings: AuthenticationSettings, keys: ServiceAccountKeys) -> ClusterIdentity:
        own = _fingerprints(authority.certificate)
        others = () if settings.client_authority is None else _fingerprints(settings.client_authority.read_bytes())
        return cls(
            authority.files.certificate.parent,
            own[0],
            [*own, *others],
            keys.signing.public.key_id,
            [key.key_id for key in keys.all],
        )

    async def check(self, handle: Handle) -> None:
        """StateError if this server does not accept the keys of the others."""
        self._changed(await read_data(handle, NAME))

    async def record(self, handle: Handle) -> None:
        """Record the keys of this server, after a check."""
        await ensure_data(handle, NAME, self._changed)

    def _changed(self, recorded: Data | None) -> Data | None:
        mine = {_AUTHORITY: self.authority, _ACCOUNT_KEY: self.account_key}
        if recorded is None:
            return mine
        authority, key = recorded.get(_AUTHORITY, ""), recorded.get(_ACCOUNT_KEY, "")
        if authority and authority not in self.authorities:
            raise self._refused(
                "certificate authority",
                self.authority,
                authority,
                "copy ca.crt and ca.key",
                "--client-ca-file",
            )
        if key and key not in self.account_keys:
            raise self._refused(
                "service account key", self.account_key, key, "copy sa.key", "--service-account-key-file"
            )
        return None if recorded.items() >= mine.items() else {**recorded, **mine}

    def _refused(self, what: str, mine: str, theirs: str, copy: str, option: str) -> StateError:
        return StateError(
            f"the {what} in {self.state} ({mine}) is not that of the cluster in this etcd ({theirs}); {copy} from the "
            f"state directory of another server, accept the other one with {option}, or, if it was replaced on "
            f"purpose, delete the ConfigMap kube-system/{NAME} through a server that still runs"
        )


def _fingerprints(pem: bytes) -> list[str]:
    """Fingerprints of the public keys of certificates: a renewed certificate keeps its own."""
    from cryptography import x509  # noqa: PLC0415 - only needed with several servers
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat  # noqa: PLC0415

    keys = (certificate.public_key() for certificate in x509.load_pem_x509_certificates(pem))
    der = (key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo) for key in keys)
    return [f"sha256:{hashlib.sha256(each).hexdigest()}" for each in der]
