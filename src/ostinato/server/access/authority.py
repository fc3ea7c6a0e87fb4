"""Certificate authority: generated on first start and kept in the state directory.

It signs the serving certificate and the client certificates of the server's own components. Certificates are reissued
when they expire soon or the host names change; otherwise those on disk are used and `cryptography` is not imported.

Clock changes:

- A certificate has the notBefore of its authority, as kubeadm's: one signed while the clock was ahead stays valid when
  the clock is corrected.
- An authority that is not yet valid or expires soon gets a new certificate for the same key. Certificates that it
  signed stay valid, and so does the old `ca.crt` until it expires.
"""

from __future__ import annotations

import hashlib
import logging
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from ostinato.certificates.generate import general_name
from ostinato.server.state import StateError, is_private, read_private, write_private
from ostinato.world import World

if TYPE_CHECKING:
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey

AUTHORITY_DAYS = 3650
CERTIFICATE_DAYS = 365
RENEW_DAYS = 90  # remaining validity below which a certificate is reissued
RENEW_AUTHORITY_DAYS = CERTIFICATE_DAYS + RENEW_DAYS  # it must outlive the certificates that it signs
_KEY_HEAD = b"-----BEGIN EC PRIVATE KEY-----"  # SEC 1: fabric8's client takes any key in PKCS #8 for an RSA key
_BACKDATED = timedelta(minutes=5)  # clock skew of clients

_logger = logging.getLogger(__name__)


class Pair(NamedTuple):
    """Paths of a certificate and its key."""

    certificate: Path
    key: Path


class KeyPair(NamedTuple):
    """A certificate and its key in PEM, and the expiry time."""

    certificate: bytes
    key: bytes
    not_after: datetime


class _CertificateInfo(msgspec.Struct, rename={"not_before": "begins", "not_after": "ends"}):
    """Cached properties of a certificate file: `cryptography` is not needed to decide whether to reissue it."""

    certificate: str  # hashes of the files that the information is about
    authority: str
    names: list[str]
    not_before: float
    not_after: float

    def is_valid(self, now: float, days_left: int) -> bool:
        return self.not_before <= now and self.not_after - now > days_left * 86_400


class Authority:
    """Signs certificates.

    - `directory`: the server's state directory.
    - `name`: of its files there. Defaults to the cluster's authority, "ca".
    - `durable`: its files survive a crash of the machine.
    """

    def __init__(self, world: World, directory: Path, name: str = "ca", *, durable: bool = True) -> None:
        self._world = world
        self._write_private = partial(write_private, durable=durable)
        self._directory = directory
        self._name = name
        self.files = Pair(directory / f"{name}.crt", directory / f"{name}.key")
        self._info_file = directory / f"{name}.json"
        if not self.files.certificate.exists() or not self.files.key.exists():
            self._make()
        self.certificate = self.files.certificate.read_bytes()
        self.renew()

    def renew(self) -> bool:
        """Renew the authority's certificate if it is not valid or expires soon; return whether it was renewed."""
        info = self._read_info()
        now = self._world.clock.wall()
        if info.is_valid(now, RENEW_AUTHORITY_DAYS):
            return False
        if not info.names:  # not self-signed: an operator's intermediate
            if info.is_valid(now, 0):
                return False
            raise StateError(
                f"{self.files.certificate}: not valid at {_date(now)}, only from {_date(info.not_before)} to "
                f"{_date(info.not_after)}; correct the clock, or replace the certificate"
            )
        _logger.warning(
            "certificate authority is not valid or expires soon, renewing with the same key "
            "file=%s not_before=%s not_after=%s",
            self.files.certificate,
            _date(info.not_before),
            _date(info.not_after),
        )
        self._renew_certificate()
        self.certificate = self.files.certificate.read_bytes()
        self._read_info()
        return True

    def _read_info(self) -> _CertificateInfo:
        """Validity of the authority's certificate; `names` is empty unless it is self-signed."""
        digest = _hash(self.certificate)
        try:
            known = msgspec.json.decode(self._info_file.read_bytes(), type=_CertificateInfo)
            if known.certificate == digest:
                return known
        except (OSError, msgspec.DecodeError):
            pass
        from cryptography import x509  # noqa: PLC0415 - 0.1 s that most starts do not need

        made = x509.load_pem_x509_certificate(self.certificate)
        names = [made.subject.rfc4514_string()] if made.subject == made.issuer else []
        not_before, not_after = made.not_valid_before_utc.timestamp(), made.not_valid_after_utc.timestamp()
        info = _CertificateInfo(digest, digest, names, not_before, not_after)
        self._write_private(self._info_file, msgspec.json.encode(info))
        return info

    def server(self, name: str, hosts: list[str]) -> Pair:
        """A serving certificate for these host names and addresses."""
        return self._pair(name, hosts, common_name="kube-apiserver")

    def node(self, name: str, hosts: list[str]) -> Pair:
        """A serving certificate of a node's agent."""
        return self._pair(f"kubelet-{name}", hosts, common_name=f"system:node:{name}", organizations=["system:nodes"])

    def client(self, name: str, user: str, groups: list[str]) -> Pair:
        """A client certificate for a user and groups."""
        return self._pair(name, [], common_name=user, organizations=groups)

    def user(self, name: str, groups: list[str], lives: timedelta) -> KeyPair:
        """A client certificate and key that are not stored; it expires with the authority at the latest."""
        from cryptography import x509  # noqa: PLC0415
        from cryptography.hazmat.primitives import hashes, serialization  # noqa: PLC0415
        from cryptography.x509.oid import ExtendedKeyUsageOID  # noqa: PLC0415

        issuer = x509.load_pem_x509_certificate(self.certificate)
        now, key, signer = self._world.clock.now(), _new_key(), self._key()
        not_after = min(now + lives, issuer.not_valid_after_utc)
        attributes = [x509.NameAttribute(x509.NameOID.ORGANIZATION_NAME, value) for value in groups]
        attributes.append(x509.NameAttribute(x509.NameOID.COMMON_NAME, name))
        builder = self._builder(x509.Name(attributes), issuer.subject, key, now - _BACKDATED, not_after)
        identifier = x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key())
        builder = (
            builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_usage(signs_certificates=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH]), critical=False)
            .add_extension(identifier, critical=False)
        )
        private = _pem(key)
        certificate = builder.sign(signer, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
        return KeyPair(certificate, private, not_after)

    def _pair(self, name: str, hosts: list[str], *, common_name: str, organizations: list[str] | None = None) -> Pair:
        pair = Pair(self._directory / f"{name}.crt", self._directory / f"{name}.key")
        info_file = self._directory / f"{name}.json"
        names = [*hosts, common_name, *(organizations or ())]
        if self._is_current(pair, info_file, names):
            return pair
        not_before, not_after = self._sign(pair, hosts, common_name, organizations)
        hashes = _hash(pair.certificate.read_bytes()), _hash(self.certificate)
        self._write_private(
            info_file,
            msgspec.json.encode(_CertificateInfo(*hashes, names, not_before.timestamp(), not_after.timestamp())),
        )
        return pair

    def _is_current(self, pair: Pair, info_file: Path, names: list[str]) -> bool:
        try:
            known = msgspec.json.decode(info_file.read_bytes(), type=_CertificateInfo)
            certificate = pair.certificate.read_bytes()
        except (OSError, msgspec.DecodeError):
            return False
        return (
            is_private(pair.key)
            and pair.key.read_bytes().startswith(_KEY_HEAD)  # PKCS #8 in earlier versions
            and known.certificate == _hash(certificate)
            and known.authority == _hash(self.certificate)
            and known.names == names
            and known.is_valid(self._world.clock.wall(), RENEW_DAYS)
        )

    # Signing

    def _make(self) -> None:
        from cryptography import x509  # noqa: PLC0415

        name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, f"ostinato-{self._name}")])
        now = self._world.clock.now()
        self._self_sign(name, _new_key(), now - _BACKDATED, now + timedelta(days=AUTHORITY_DAYS))

    def _renew_certificate(self) -> None:
        """Renew with the same key, extending the validity in both directions."""
        from cryptography import x509  # noqa: PLC0415

        made = x509.load_pem_x509_certificate(self.certificate)
        now = self._world.clock.now()
        not_before = min(made.not_valid_before_utc, now - _BACKDATED)
        not_after = max(made.not_valid_after_utc, now + timedelta(days=AUTHORITY_DAYS))
        self._self_sign(made.subject, self._key(), not_before, not_after)

    def _key(self) -> EllipticCurvePrivateKey:
        from cryptography.hazmat.primitives.serialization import load_pem_private_key  # noqa: PLC0415

        return load_pem_private_key(read_private(self.files.key), None)  # type: ignore[return-value]  # the authority's keys are ECDSA

    def _self_sign(
        self, name: x509.Name, key: EllipticCurvePrivateKey, not_before: datetime, not_after: datetime
    ) -> None:
        from cryptography import x509  # noqa: PLC0415

        builder = self._builder(name, name, key, not_before, not_after)
        builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        builder = builder.add_extension(_usage(signs_certificates=True), critical=True)
        self._write(self.files, builder, key, key)

    def _sign(
        self, pair: Pair, hosts: list[str], common_name: str, organizations: list[str] | None
    ) -> tuple[datetime, datetime]:
        from cryptography import x509  # noqa: PLC0415
        from cryptography.x509.oid import ExtendedKeyUsageOID  # noqa: PLC0415

        issuer = x509.load_pem_x509_certificate(self.certificate)
        not_before = issuer.not_valid_before_utc
        not_after = self._world.clock.now() + timedelta(days=CERTIFICATE_DAYS)
        key = _new_key()
        attributes = [x509.NameAttribute(x509.NameOID.ORGANIZATION_NAME, value) for value in organizations or ()]
        attributes.append(x509.NameAttribute(x509.NameOID.COMMON_NAME, common_name))
        purpose = ExtendedKeyUsageOID.SERVER_AUTH if hosts else ExtendedKeyUsageOID.CLIENT_AUTH
        builder = self._builder(x509.Name(attributes), issuer.subject, key, not_before, not_after)
        builder = builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        builder = builder.add_extension(_usage(signs_certificates=False), critical=True)
        builder = builder.add_extension(x509.ExtendedKeyUsage([purpose]), critical=False)
        if hosts:
            names = x509.SubjectAlternativeName([general_name(host) for host in hosts])
            builder = builder.add_extension(names, critical=False)
        self._write(pair, builder, key, self._key())
        return not_before, not_after

    def _builder(
        self,
        subject: x509.Name,
        issuer: x509.Name,
        key: EllipticCurvePrivateKey,
        not_before: datetime,
        not_after: datetime,
    ) -> x509.CertificateBuilder:
        from cryptography import x509  # noqa: PLC0415

        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(issuer)
            .public_key(key.public_key())
            .serial_number(int.from_bytes(self._world.ids.token(19), "big") | 1)
            .not_valid_before(not_before)
            .not_valid_after(not_after)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        )

    def _write(
        self,
        pair: Pair,
        builder: x509.CertificateBuilder,
        key: EllipticCurvePrivateKey,
        signer: EllipticCurvePrivateKey,
    ) -> None:
        from cryptography import x509  # noqa: PLC0415
        from cryptography.hazmat.primitives import hashes, serialization  # noqa: PLC0415

        identifier = x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key())
        certificate = builder.add_extension(identifier, critical=False).sign(signer, hashes.SHA256())
        self._write_private(pair.key, _pem(key))
        self._write_private(pair.certificate, certificate.public_bytes(serialization.Encoding.PEM))


def _new_key() -> EllipticCurvePrivateKey:
    from cryptography.hazmat.primitives.asymmetric import ec  # noqa: PLC0415

    return ec.generate_private_key(ec.SECP256R1())


def _pem(key: EllipticCurvePrivateKey) -> bytes:
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat  # noqa: PLC0415

    return key.private_bytes(Encoding.PEM, PrivateFormat.TraditionalOpenSSL, NoEncryption())


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    from cryptography import x509  # noqa: PLC0415

    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        encipher_only=False,
        decipher_only=False,
    )


def _date(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d")


def _hash(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
