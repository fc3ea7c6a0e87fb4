"""Certificates for tests: an authority, and what it signs."""

from __future__ import annotations

import datetime
import ipaddress
from functools import cache
from typing import NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


class Pair(NamedTuple):
    """A certificate and its key, in PEM and as they are."""

    pem: bytes
    key_pem: bytes
    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey


def authority(name: str = "authority") -> Pair:
    return _authority(name)  # one for each name, however it is asked for


@cache
def _authority(name: str) -> Pair:
    return _made(name, None, [x509.BasicConstraints(ca=True, path_length=None)])


@cache
def server(*names: str, signed_by: str = "authority") -> Pair:
    found: list[x509.GeneralName] = []
    for name in names or ("localhost", "127.0.0.1"):
        try:
            found.append(x509.IPAddress(ipaddress.ip_address(name)))
        except ValueError:
            found.append(x509.DNSName(name))
    return _made("server", authority(signed_by), [x509.SubjectAlternativeName(found)])


@cache
def client(name: str, signed_by: str = "authority") -> Pair:
    return _made(name, authority(signed_by), [])


def _made(name: str, issuer: Pair | None, extensions: list[x509.ExtensionType]) -> Pair:
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.datetime.now(datetime.UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer.certificate.subject if issuer else subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(hours=1))
    )
    for extension in extensions:
        builder = builder.add_extension(extension, critical=isinstance(extension, x509.BasicConstraints))
    made = builder.sign(issuer.key if issuer else key, hashes.SHA256())
    key_pem = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return Pair(made.public_bytes(serialization.Encoding.PEM), key_pem, made, key)
