"""Generation of certificates: an authority signs one certificate, and its key is discarded.

Nothing can be signed with the authority later, and the server's own key is the only one to protect. A new certificate
has a new authority; the CA bundle has both until the previous one expires.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple

from ostinato.certificates.certificate import Certificate, CertificateError
from ostinato.world import World

if TYPE_CHECKING:
    from types import ModuleType

    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey

_CLOCK_SKEW = timedelta(minutes=5)
_MOST_PREVIOUS = 3  # authorities of previous certificates in a bundle


class CertificateInfo(NamedTuple):
    """Hosts and expiry of a certificate."""

    hosts: frozenset[str]
    expires: datetime


def generate_certificate(world: World, hosts: Sequence[str], lifetime: timedelta) -> Certificate:
    """Return a new serving certificate for DNS names and IP addresses, with its authority."""
    x509 = _x509()
    from cryptography.hazmat.primitives.asymmetric import ec  # noqa: PLC0415 - slow import

    authority_key, key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    authority_name = _name(f"ostinato-authority-{int(world.clock.wall())}")
    constraints = x509.BasicConstraints(ca=True, path_length=0)
    authority = _builder(world, authority_name, authority_name, authority_key, lifetime)
    authority = authority.add_extension(constraints, critical=True).add_extension(_usage(signs=True), critical=True)

    purpose = x509.ExtendedKeyUsage([x509.ExtendedKeyUsageOID.SERVER_AUTH])
    alternatives = x509.SubjectAlternativeName([general_name(host) for host in hosts])
    constraints = x509.BasicConstraints(ca=False, path_length=None)
    server = _builder(world, _name("ostinato"), authority_name, key, lifetime)
    server = server.add_extension(constraints, critical=True).add_extension(_usage(signs=False), critical=True)
    server = server.add_extension(purpose, critical=False).add_extension(alternatives, critical=False)
    return Certificate(_signed(server, authority_key), _pem(key), _signed(authority, authority_key))


def inspect_certificate(certificate: bytes) -> CertificateInfo:
    """Return hosts and expiry of the first certificate in PEM. Raises CertificateError."""
    x509 = _x509()
    try:
        found = x509.load_pem_x509_certificate(certificate)
        names = found.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        hosts = [*names.get_values_for_type(x509.DNSName), *map(str, names.get_values_for_type(x509.IPAddress))]
        return CertificateInfo(frozenset(hosts), found.not_valid_after_utc)
    except (ValueError, x509.ExtensionNotFound) as error:
        raise CertificateError(f"not a serving certificate: {error}") from None


def unexpired_authorities(authorities: bytes, now: datetime) -> list[bytes]:
    """Return the first few authorities that have not expired, one PEM each; none if invalid."""
    x509 = _x509()
    from cryptography.hazmat.primitives.serialization import Encoding  # noqa: PLC0415

    try:
        found = x509.load_pem_x509_certificates(authorities)
    except ValueError:
        return []
    return [each.public_bytes(Encoding.PEM) for each in found if each.not_valid_after_utc > now][:_MOST_PREVIOUS]


def _x509() -> ModuleType:
    try:
        from cryptography import x509  # noqa: PLC0415 - takes 0.1 s
    except ImportError:
        raise CertificateError(
            "self-signed certificates need the package cryptography; pip install 'ostinato[webhook]', "
            "or use certificate files"
        ) from None
    return x509


def _builder(
    world: World, subject: x509.Name, issuer: x509.Name, key: EllipticCurvePrivateKey, lifetime: timedelta
) -> x509.CertificateBuilder:
    from cryptography import x509  # noqa: PLC0415

    now = world.clock.now()
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(int.from_bytes(world.ids.token(19), "big") | 1)
        .not_valid_before(now - _CLOCK_SKEW)
        .not_valid_after(now + lifetime)
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


def general_name(host: str) -> x509.GeneralName:
    """The subject alternative name of a host name or an IP address."""
    from cryptography import x509  # noqa: PLC0415

    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)
