"""Keys and certificates. They are made anew each time: render once and keep them, or look them up."""

from __future__ import annotations

import base64
import binascii
import ipaddress
from datetime import timedelta
from functools import partial
from typing import Any, Final

from ostinato.gotemplate.errors import TemplateError
from ostinato.gotemplate.fmt import sprint
from ostinato.gotemplate.library.registry import PanicError, Registry
from ostinato.gotemplate.strings import encode
from ostinato.gotemplate.values import Object
from ostinato.world import World

_CERTIFICATE: Final = "sprig.certificate"
_NAMES: Final = "string, []interface {}, []interface {}, int"


class Certificate(Object):
    """A certificate and its key, in PEM."""

    go_type = _CERTIFICATE

    def __init__(self, cert: str, key: str) -> None:
        super().__init__({"Cert": cert, "Key": key})


def certificate_functions(world: World) -> Registry:
    """Return the functions of keys and certificates; validity begins at the world's time."""
    register = Registry()
    make = partial(_Maker, world)
    register.add("genPrivateKey", "string", generate_private_key)
    register.add("buildCustomCert", "string, string", build_custom_cert)
    register.add("genCA", "string, int", lambda cn, days: make(cn, [], [], days, authority=True).signed())
    register.add(
        "genCAWithKey",
        "string, int, string",
        lambda cn, days, key: make(cn, [], [], days, authority=True).signed(_key(key)),
    )
    register.add("genSelfSignedCert", _NAMES, lambda *names: make(*names).signed())
    register.add(
        "genSelfSignedCertWithKey", f"{_NAMES}, string", lambda *names: make(*names[:4]).signed(_key(names[4]))
    )
    register.add("genSignedCert", f"{_NAMES}, {_CERTIFICATE}", lambda *names: make(*names[:4]).signed(None, names[4]))
    register.add(
        "genSignedCertWithKey",
        f"{_NAMES}, {_CERTIFICATE}, string",
        lambda *names: make(*names[:4]).signed(_key(names[5]), names[4]),
    )
    return register


def _library() -> Any:
    try:
        from cryptography import x509  # noqa: PLC0415 - optional
        from cryptography.hazmat.primitives import hashes, serialization  # noqa: PLC0415
        from cryptography.hazmat.primitives.asymmetric import dsa, ec, ed25519, rsa  # noqa: PLC0415
    except ImportError:
        raise TemplateError("keys and certificates need a package: pip install 'ostinato[charts]'") from None
    return _Namespace(x509=x509, hashes=hashes, serialization=serialization, dsa=dsa, ec=ec, ed25519=ed25519, rsa=rsa)


class _Namespace:
    def __init__(self, **modules: Any) -> None:
        self.__dict__ |= modules

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(name)


def _pem(key: Any) -> str:
    crypto = _library()
    formats = crypto.serialization.PrivateFormat
    plain = crypto.serialization.NoEncryption()
    modern = isinstance(key, crypto.ed25519.Ed25519PrivateKey)
    form = formats.PKCS8 if modern else formats.TraditionalOpenSSL
    made: bytes = key.private_bytes(crypto.serialization.Encoding.PEM, form, plain)
    return made.decode()


def _key(text: str) -> Any:
    crypto = _library()
    if "-----BEGIN " not in text:
        raise PanicError("parsing private key: no PEM data in input")
    kind = text.partition("-----BEGIN ")[2].partition("-----")[0]
    if not kind.endswith("PRIVATE KEY"):
        raise PanicError(f"parsing private key: no private key data in PEM block of type {kind}")
    try:
        return crypto.serialization.load_pem_private_key(encode(text), None)
    except (ValueError, TypeError) as error:
        raise PanicError(f"parsing private key: {error}") from None


def generate_private_key(kind: str) -> str:
    """Generate a key: rsa (also ""), dsa, ecdsa or ed25519."""
    crypto = _library()
    match kind:
        case "" | "rsa":
            return _pem(crypto.rsa.generate_private_key(65537, 4096))
        case "dsa":
            return _pem(crypto.dsa.generate_private_key(2048))
        case "ecdsa":
            return _pem(crypto.ec.generate_private_key(crypto.ec.SECP256R1()))
        case "ed25519":
            return _pem(crypto.ed25519.Ed25519PrivateKey.generate())
        case _:
            return f"Unknown type {kind}"


def build_custom_cert(certificate: str, key: str) -> Certificate:
    """Check and wrap a certificate and a key that are given in base64."""
    crypto = _library()
    try:
        cert = base64.b64decode(encode(certificate), validate=True)
    except (binascii.Error, ValueError):
        raise PanicError("unable to decode base64 certificate") from None
    try:
        private = base64.b64decode(encode(key), validate=True)
    except (binascii.Error, ValueError):
        raise PanicError("unable to decode base64 private key") from None
    if b"-----BEGIN " not in cert:
        raise PanicError("unable to decode certificate")
    try:
        crypto.x509.load_pem_x509_certificate(cert)
    except ValueError as error:
        raise PanicError(f"error parsing certificate: decodedCert.Bytes: {error}") from None
    try:
        _key(private.decode("utf-8", "surrogateescape"))
    except PanicError as error:
        raise PanicError(f"error parsing private key: {str(error).removeprefix('parsing private key: ')}") from None
    return Certificate(cert.decode(), private.decode())


class _Maker:
    """What a certificate is for: names, validity, and whether it is of an authority."""

    def __init__(
        self, world: World, name: str, addresses: list[Any], hosts: list[Any], days: int, *, authority: bool = False
    ) -> None:
        self._world = world
        self._name = name
        self._addresses = [_address(each) for each in addresses or []]
        self._hosts = [_host(each) for each in hosts or []]
        self._days = days
        self._authority = authority

    def signed(self, key: Any = None, by: Certificate | None = None) -> Certificate:
        """Make the certificate: signed by an authority, or by itself."""
        crypto = _library()
        key = key or crypto.rsa.generate_private_key(65537, 2048)
        subject = crypto.x509.Name(
            [crypto.x509.NameAttribute(crypto.x509.NameOID.COMMON_NAME, self._name)] if self._name else []
        )
        issuer, signer = subject, key
        if by is not None:
            parent = _parent(by)
            issuer, signer = parent.subject, _key(by.fields["Key"])
        now = self._world.clock.now().replace(microsecond=0)
        builder = (
            crypto.x509.CertificateBuilder(issuer, subject, key.public_key())
            .serial_number(int.from_bytes(self._world.ids.token(16), "big") or 1)
            .not_valid_before(now)
            .not_valid_after(now + timedelta(days=self._days))
        )
        for extension, critical in self._extensions(crypto):
            builder = builder.add_extension(extension, critical=critical)
        hashed = None if isinstance(signer, crypto.ed25519.Ed25519PrivateKey) else crypto.hashes.SHA256()
        made = builder.sign(signer, hashed)
        return Certificate(made.public_bytes(crypto.serialization.Encoding.PEM).decode(), _pem(key))

    def _extensions(self, crypto: Any) -> list[tuple[Any, bool]]:
        x509 = crypto.x509
        purposes = [x509.ExtendedKeyUsageOID.SERVER_AUTH, x509.ExtendedKeyUsageOID.CLIENT_AUTH]
        usage = dict.fromkeys(
            ("content_commitment", "data_encipherment", "key_agreement", "crl_sign", "encipher_only", "decipher_only"),
            False,
        )
        usage |= {"digital_signature": True, "key_encipherment": True, "key_cert_sign": self._authority}
        made = [
            (x509.KeyUsage(**usage), True),
            (x509.ExtendedKeyUsage(purposes), False),
            (x509.BasicConstraints(ca=self._authority, path_length=None), True),
        ]
        names = [*map(x509.DNSName, self._hosts), *map(x509.IPAddress, self._addresses)]
        if names:
            made.append((x509.SubjectAlternativeName(names), False))
        return made


def _parent(authority: Certificate) -> Any:
    crypto = _library()
    text = authority.fields["Cert"]
    if "-----BEGIN " not in text:
        raise PanicError("unable to decode certificate")
    try:
        return crypto.x509.load_pem_x509_certificate(encode(text))
    except ValueError as error:
        raise PanicError(f"error parsing certificate: decodedSignerCert.Bytes: {error}") from None


def _address(value: Any) -> Any:
    if not isinstance(value, str):
        raise PanicError(f"error parsing ip: {sprint(value)} is not a string")
    try:
        return ipaddress.ip_address(value)
    except ValueError:
        raise PanicError(f"error parsing ip: {value}") from None


def _host(value: Any) -> str:
    if not isinstance(value, str):
        raise PanicError(f"error processing alternate dns name: {sprint(value)} is not a string")
    return value
