"""Keys of JSON web tokens: sign, verify, publish as JSON web keys.

`cryptography` is imported with the first key: most server starts need none.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ostinato.server.access.authentication.settings import AuthenticationSettingsError
from ostinato.server.access.authentication.tokens import jwt
from ostinato.server.state import write_private
from ostinato.world import World

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey, EllipticCurvePublicKey
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey, RSAPublicKey

ALGORITHMS = ("ES256", "ES384", "ES512", "PS256", "PS384", "PS512", "RS256", "RS384", "RS512")
_RSA = frozenset(name for name in ALGORITHMS if name[0] != "E")
_CURVES = {
    "secp256r1": ("P-256", "ES256", 32),
    "secp384r1": ("P-384", "ES384", 48),
    "secp521r1": ("P-521", "ES512", 66),
}
_SMALLEST_RSA = 1024  # bits, as Go verifies


class UnusableKey(Exception):  # noqa: N818 - a property of the key
    """The key type or size cannot sign tokens."""


class PublicKey:
    """Verifies signatures. `algorithms`: those that the key supports."""

    def __init__(self, key: RSAPublicKey | EllipticCurvePublicKey, key_id: str = "") -> None:
        from cryptography.hazmat.primitives.asymmetric import ec, rsa  # noqa: PLC0415
        from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat  # noqa: PLC0415

        self._key = key
        if isinstance(key, rsa.RSAPublicKey):
            if key.key_size < _SMALLEST_RSA:
                raise UnusableKey(f"RSA key of {key.key_size} bits")
            self.algorithm, self.algorithms = "RS256", _RSA
        elif isinstance(key, ec.EllipticCurvePublicKey) and key.curve.name in _CURVES:
            self.algorithm = _CURVES[key.curve.name][1]
            self.algorithms = frozenset({self.algorithm})
        else:
            raise UnusableKey("unknown key type, must be RSA or ECDSA with the curve P-256, P-384 or P-521")
        der = key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
        self.key_id = key_id or jwt.encode(hashlib.sha256(der).digest()).decode()

    def verifies(self, token: jwt.Token) -> bool:
        """Whether this key signed the token, with an algorithm that the key supports."""
        from cryptography.exceptions import InvalidSignature  # noqa: PLC0415
        from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa, utils  # noqa: PLC0415

        algorithm, signature = token.algorithm, token.signature
        if algorithm not in self.algorithms or token.has_extensions:
            return False
        hashed = _hash(algorithm)
        try:
            if isinstance(self._key, rsa.RSAPublicKey):
                pad = padding.PSS(padding.MGF1(hashed), padding.PSS.AUTO) if algorithm[0] == "P" else padding.PKCS1v15()
                self._key.verify(signature, token.signed, pad, hashed)
            else:
                size = _CURVES[self._key.curve.name][2]
                if len(signature) != 2 * size:
                    return False
                numbers = int.from_bytes(signature[:size], "big"), int.from_bytes(signature[size:], "big")
                self._key.verify(utils.encode_dss_signature(*numbers), token.signed, ec.ECDSA(hashed))
        except InvalidSignature:
            return False
        return True

    def to_json(self) -> dict[str, str]:
        """The JSON web key, with fields in kube-apiserver's order."""
        from cryptography.hazmat.primitives.asymmetric import rsa  # noqa: PLC0415

        described = {"use": "sig", "kty": "EC", "kid": self.key_id}
        if isinstance(self._key, rsa.RSAPublicKey):
            modulus = self._key.public_numbers()
            return {
                **described,
                "kty": "RSA",
                "alg": self.algorithm,
                "n": _number(modulus.n),
                "e": _number(modulus.e),
            }
        curve, _, size = _CURVES[self._key.curve.name]
        point = self._key.public_numbers()
        return {
            **described,
            "crv": curve,
            "alg": self.algorithm,
            "x": _number(point.x, size),
            "y": _number(point.y, size),
        }


class SigningKey:
    """Signs tokens with RS256, or ES256, ES384 or ES512 by the curve."""

    def __init__(self, key: RSAPrivateKey | EllipticCurvePrivateKey) -> None:
        self._key = key
        self.public = PublicKey(key.public_key())

    def sign(self, claims: bytes) -> str:
        """Sign a token with these claims."""
        from cryptography.exceptions import UnsupportedAlgorithm  # noqa: PLC0415
        from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa, utils  # noqa: PLC0415

        algorithm = self.public.algorithm
        header = f'{{"alg":"{algorithm}","kid":"{self.public.key_id}"}}'.encode()
        signed = jwt.encode(header) + b"." + jwt.encode(claims)
        if isinstance(self._key, rsa.RSAPrivateKey):
            signature = self._key.sign(signed, padding.PKCS1v15(), _hash(algorithm))
        else:
            size = _CURVES[self._key.curve.name][2]
            try:  # RFC 6979: deterministic signatures, which simulations rely on
                made = self._key.sign(signed, ec.ECDSA(_hash(algorithm), deterministic_signing=True))
            except UnsupportedAlgorithm:  # OpenSSL before 3.2
                made = self._key.sign(signed, ec.ECDSA(_hash(algorithm)))
            numbers = utils.decode_dss_signature(made)
            signature = b"".join(number.to_bytes(size, "big") for number in numbers)
        return (signed + b"." + jwt.encode(signature)).decode()


class ServiceAccountKeys:
    """The keys of service account tokens: one signs, all verify. They are loaded with the first token.

    - `signing`: file of the operator's private key. Defaults to none.
    - `kept`: file of a key that the server generates if `signing` is None. With neither, an ES256 key is generated in
      memory, and tokens become invalid with the process.
    - `verifying`: files of further public or private keys that verify tokens.
    """

    def __init__(self, world: World, *, signing: Path | None, kept: Path | None, verifying: Sequence[Path]) -> None:
        self._world = world
        self._signing = signing
        self._kept = kept
        self._verifying = tuple(verifying)
        self._loaded: tuple[SigningKey, list[PublicKey]] | None = None

    @property
    def signing(self) -> SigningKey:
        return self.load()[0]

    @property
    def all(self) -> list[PublicKey]:
        return self.load()[1]

    def by_id(self, key_id: str) -> list[PublicKey]:
        """The keys with this id; all keys if the id is empty."""
        return [key for key in self.all if key.key_id == key_id] if key_id else self.all

    def load(self) -> tuple[SigningKey, list[PublicKey]]:
        """Load the key files once; AuthenticationSettingsError names the invalid file."""
        if self._loaded is None:
            signing = self._signing_key()
            public = {signing.public.key_id: signing.public}
            for path in self._verifying:
                public |= {key.key_id: key for key in read_public_keys(path)}
            self._loaded = signing, list(public.values())
        return self._loaded

    def check(self) -> None:
        """AuthenticationSettingsError if a file cannot be used.

        Operator files are loaded. Of the generated key only PEM and DER lengths are checked: loading it would take a
        third of the start-up time.
        """
        named = self._signing is not None or self._verifying
        if named or (self._kept is not None and self._kept.exists() and not _is_whole_private_key(self._kept)):
            self.load()

    def _signing_key(self) -> SigningKey:
        if self._signing is not None:
            return read_private_key(self._signing)
        if self._kept is not None:
            if not self._kept.exists():
                make_private_key(self._kept)
            return read_private_key(self._kept)
        from cryptography.hazmat.primitives.asymmetric import ec  # noqa: PLC0415

        secret = int.from_bytes(self._world.ids.token(31), "big") + 1
        return SigningKey(ec.derive_private_key(secret, ec.SECP256R1()))


def _is_whole_private_key(path: Path) -> bool:
    """Whether the file holds one complete private key in PEM; the key itself is not validated."""
    try:
        lines = path.read_text("ascii").strip().splitlines()
        der = base64.b64decode("".join(lines[1:-1]), validate=True)
    except (OSError, ValueError):
        return False
    framed = (
        len(lines) > 2 and lines[0] == lines[-1].replace("END", "BEGIN", 1) and lines[0].endswith("PRIVATE KEY-----")
    )
    if not framed or len(der) < 4 or der[0] != 0x30 or not 0x80 < der[1] < 0x84:
        return False
    size = der[1] - 0x80  # bytes that hold the length
    return len(der) == 2 + size + int.from_bytes(der[2 : 2 + size], "big")


def make_private_key(path: Path) -> None:
    """Generate an RSA key of 2048 bits and write it."""
    from cryptography.hazmat.primitives.asymmetric import rsa  # noqa: PLC0415
    from cryptography.hazmat.primitives.serialization import (  # noqa: PLC0415
        Encoding,
        NoEncryption,
        PrivateFormat,
    )

    key = rsa.generate_private_key(65537, 2048)
    write_private(path, key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))


def read_private_key(path: Path) -> SigningKey:
    from cryptography.hazmat.primitives.serialization import load_pem_private_key  # noqa: PLC0415

    try:
        key: Any = load_pem_private_key(path.read_bytes(), None)  # Any: SigningKey rejects other key types
        return SigningKey(key)
    except OSError as error:
        raise AuthenticationSettingsError(f"cannot read {path}: {error.strerror}") from error
    except (ValueError, TypeError, UnusableKey) as error:
        raise AuthenticationSettingsError(f"{path}: not a private RSA or ECDSA key in PEM: {error}") from error


def read_public_keys(path: Path) -> list[PublicKey]:
    """The public keys in a PEM file, also those of private keys and certificates."""
    from cryptography import x509  # noqa: PLC0415
    from cryptography.hazmat.primitives.serialization import (  # noqa: PLC0415
        load_pem_private_key,
        load_pem_public_key,
    )

    try:
        text = path.read_bytes()
    except OSError as error:
        raise AuthenticationSettingsError(f"cannot read {path}: {error.strerror}") from error
    found = []
    for start in text.split(b"-----BEGIN ")[1:]:
        block = b"-----BEGIN " + start
        label = start.partition(b"-----")[0]
        key: Any  # Any: PublicKey rejects other key types
        try:
            if label == b"CERTIFICATE":
                key = x509.load_pem_x509_certificate(block).public_key()
            elif label.endswith(b"PRIVATE KEY"):
                key = load_pem_private_key(block, None).public_key()
            elif label.endswith(b"PUBLIC KEY"):
                key = load_pem_public_key(block)
            else:
                continue
            found.append(PublicKey(key))
        except (ValueError, TypeError, UnusableKey) as error:
            raise AuthenticationSettingsError(f"{path}: cannot parse key: {error}") from error
    if not found:
        raise AuthenticationSettingsError(f"{path}: data does not contain any valid RSA or ECDSA public keys")
    return found


def _hash(algorithm: str) -> Any:
    from cryptography.hazmat.primitives import hashes  # noqa: PLC0415

    known: dict[str, Any] = {"256": hashes.SHA256, "384": hashes.SHA384, "512": hashes.SHA512}
    return known[algorithm[2:]]()


def _number(value: int, size: int = 0) -> str:
    return jwt.encode(value.to_bytes(size or (value.bit_length() + 7) // 8, "big")).decode()
