"""Making certificates: an authority that signs one certificate, and whose key is then thrown away.

Nobody can sign anything in its name later, and there is no key to keep safe but the server's own. A new certificate
comes with a new authority; callers are told to trust both until the old one has ended.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple

from ostinato.webhook.certificates.certificate import Certificate, CertificateError
from ostinato.world import World

if TYPE_CHECKING:
    from types import ModuleType

    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey

_CLOCKS_BEHIND = timedelta(minutes=5)  # of callers
_MOST_TRUSTED = 3  # authorities of former certificates


class CertificateInfo(NamedTuple):
    """What a certificate says."""

    hosts: frozenset[str]
    ends: datetime


def generate_certificate(world: World, hosts: Sequence[str], life: timedelta) -> Certificate:
    """A new certificate for a server that answers to these names and addresses, with its authority."""
    x509 = _x509()
    from cryptography.hazmat.primitives.asymmetric import ec  # noqa: PLC0415 - as is all of it here

    authority_key, key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    authority_name = _name(f"ostinato-webhooks-{int(world.clock.wall())}")
    constraints = x509.BasicConstraints(ca=True, path_length=0)
    authority = _builder(world, authority_name, authority_name, authority_key, life)
    authority = authority.add_extension(constraints, critical=True).add_extension(_usage(signs=True), critical=True)

    purpose = x509.ExtendedKeyUsage([x509.ExtendedKeyUsageOID.SERVER_AUTH])
    alternatives = x509.SubjectAlternativeName([_general_name(host) for host in hosts])
    constraints = x509.BasicConstraints(ca=False, path_length=None)
    server = _builder(world, _name("ostinato-webhooks"), authority_name, key, life)
    server = server.add_extension(constraints, critical=True).add_extension(_usage(signs=False), critical=True)
    server = server.add_extension(purpose, critical=False).add_extension(alternatives, critical=False)
    return Certificate(_signed(server, authority_key), _pem(key), _signed(authority, authority_key))


def inspect_certificate(certificate: bytes) -> CertificateInfo:
    """What the first certificate of a PEM says. CertificateError if there is none."""
    x509 = _x509()
    try:
        found = x509.load_pem_x509_certificate(certificate)
        names = found.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        hosts = [*names.get_values_for_type(x509.DNSName), *map(str, names.get_values_for_type(x509.IPAddress))]
        return CertificateInfo(frozenset(hosts), found.not_valid_after_utc)
    except (ValueError, x509.ExtensionNotFound) as error:
        raise CertificateError(f"not a certificate of a server: {error}") from None


def unexpired_authorities(authorities: bytes, now: datetime) -> list[bytes]:
    """The authorities that have not ended, the first few of them, one PEM each. Nonsense counts as none."""
    x509 = _x509()
    from cryptography.hazmat.primitives.serialization import Encoding  # noqa: PLC0415

    try:
        found = x509.load_pem_x509_certificates(authorities)
    except ValueError:
        return []
    return [each.public_bytes(Encoding.PEM) for each in found if each.not_valid_after_utc > now][:_MOST_TRUSTED]


def _x509() -> ModuleType:
    try:
        from cryptography import x509  # noqa: PLC0415 - a tenth of a second, for those who need it alone
    except ImportError:
        raise CertificateError(
            "making certificates needs the package cryptography: pip install 'ostinato[webhook]', "
            "or have certificates in files"
        ) from None
    return x509


def _builder(
    world: World, subject: x509.Name, issuer: x509.Name, key: EllipticCurvePrivateKey, life: timedelta
) -> x509.CertificateBuilder:
    from cryptography import x509  # noqa: PLC0415

    now = world.clock.now()
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(int.from_bytes(world.ids.token(19), "big") | 1)
        .not_valid_before(now - _CLOCKS_BEHIND)
        .not_valid_after(now + life)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )


def _signed(builder: x509.CertificateBuilder, signer: EllipticCurvePrivateKey) -> bytes:
    from cryptography import x509  # noqa: PLC0415
    from cryptography.hazmat.primitives import hashes, serialization  # noqa: PLC0415

    identifier = x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key())
    certificate = builder.add_extension(identifier, critical=False).sign(signer, hashes.SHA256())
    return certificate.public_bytes(serialization.Encoding.PEM)


def _pem(key: EllipticCurvePrivateKey) -> bytes:
    from cryptography.hazmat.primitives import serialization  # noqa: PLC0415

    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def _name(common_name: str) -> x509.Name:
    from cryptography import x509  # noqa: PLC0415

    return x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, common_name)])


def _usage(*, signs: bool) -> x509.KeyUsage:
    from cryptography import x509  # noqa: PLC0415

    return x509.KeyUsage(
        digital_signature=not signs,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs,
        crl_sign=False,
        encipher_only=False,
        decipher_only=False,
    )


def _general_name(host: str) -> x509.GeneralName:
    from cryptography import x509  # noqa: PLC0415

    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)
