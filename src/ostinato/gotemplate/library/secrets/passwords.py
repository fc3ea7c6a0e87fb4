"""Passwords: derived, hashed with bcrypt, and texts encrypted with them."""

from __future__ import annotations

import base64
import hashlib
import hmac
import struct
from typing import Any, Final

from ostinato.gotemplate.errors import TemplateError
from ostinato.gotemplate.library.formats.encodings import CorruptInputError, base64_decoded
from ostinato.gotemplate.library.registry import PanicError, Registry
from ostinato.gotemplate.strings import decode, encode
from ostinato.world import World

_SEED: Final = b"com.lyndir.masterpassword"
_COST: Final = 10  # of bcrypt
_BLOCK: Final = 16

# Of the Master Password algorithm: templates of each type of password, and the characters that their letters stand for.
_TEMPLATES: Final = {
    "maximum": "anoxxxxxxxxxxxxxxxxx axxxxxxxxxxxxxxxxxno",
    "long": (
        "CvcvnoCvcvCvcv CvcvCvcvnoCvcv CvcvCvcvCvcvno CvccnoCvcvCvcv CvccCvcvnoCvcv CvccCvcvCvcvno CvcvnoCvccCvcv "
        "CvcvCvccnoCvcv CvcvCvccCvcvno CvcvnoCvcvCvcc CvcvCvcvnoCvcc CvcvCvcvCvccno CvccnoCvccCvcv CvccCvccnoCvcv "
        "CvccCvccCvcvno CvcvnoCvccCvcc CvcvCvccnoCvcc CvcvCvccCvccno CvccnoCvcvCvcc CvccCvcvnoCvcc CvccCvcvCvccno"
    ),
    "medium": "CvcnoCvc CvcCvcno",
    "short": "Cvcn",
    "basic": "aaanaaan aannaaan aaannaaa",
    "pin": "nnnn",
}
_CHARACTERS: Final = {
    "C": "BCDFGHJKLMNPQRSTVWXYZ",
    "v": "aeiou",
    "c": "bcdfghjklmnpqrstvwxyz",
    "a": "AEIOUaeiouBCDFGHJKLMNPQRSTVWXYZbcdfghjklmnpqrstvwxyz",
    "n": "0123456789",
    "o": "@&%?,=[]_:-+*$#!'^~;()/.",
    "x": "AEIOUaeiouBCDFGHJKLMNPQRSTVWXYZbcdfghjklmnpqrstvwxyz0123456789!@#$%^&*()",
}


def password_functions(world: World) -> Registry:
    """Return the functions of passwords; salts and initialization vectors are of the world."""
    register = Registry()
    register.add("derivePassword", "uint32, string, string, string, string", derive_password)
    register.add("bcrypt", "string", lambda text: bcrypt(text, world))
    register.add("htpasswd", "string, string", lambda user, password: htpasswd(user, password, world))
    register.add("encryptAES", "string, string", lambda password, text: encrypt_aes(password, text, world))
    register.add("decryptAES", "string, string", decrypt_aes)
    return register


def derive_password(counter: int, kind: str, password: str, user: str, site: str) -> str:
    """Derive a password for a site."""
    templates = _TEMPLATES.get(kind, "").split()
    if not templates:
        return f"cannot find password template {kind}"
    name, place = encode(user), encode(site)
    salt = _SEED + struct.pack(">I", len(name)) + name
    key = hashlib.scrypt(encode(password), salt=salt, n=32768, r=8, p=2, dklen=64, maxmem=1 << 27)
    message = _SEED + struct.pack(">I", len(place)) + place + struct.pack(">I", counter)
    seed = hmac.new(key, message, hashlib.sha256).digest()
    template = templates[seed[0] % len(templates)]
    chosen = [_CHARACTERS[letter] for letter in template]
    return "".join(characters[seed[at] % len(characters)] for at, characters in enumerate(chosen, 1))


def bcrypt(text: str, world: World) -> str:
    """Hash a password."""
    try:
        import bcrypt as library  # noqa: PLC0415 - optional
    except ImportError:
        raise TemplateError("bcrypt and htpasswd need a package: pip install 'ostinato[charts]'") from None
    data = encode(text)
    if len(data) > 72:
        return "failed to encrypt string with bcrypt: bcrypt: password length exceeds 72 bytes"
    # The salt in bcrypt's own alphabet of base64, 22 characters of which the last one has two bits.
    alphabet = "./ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
    drawn = world.ids.token(22)
    salt = "".join(alphabet[byte & 63] for byte in drawn[:21]) + ".Oeu"[drawn[21] & 3]
    made: bytes = library.hashpw(data, f"$2a${_COST}${salt}".encode())
    return made.decode()


def htpasswd(user: str, password: str, world: World) -> str:
    return f"invalid username: {user}" if ":" in user else f"{user}:{bcrypt(password, world)}"


def _cipher(password: str, vector: bytes) -> Any:
    try:
        from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes  # noqa: PLC0415 - optional
    except ImportError:
        raise TemplateError("encryptAES and decryptAES need a package: pip install 'ostinato[charts]'") from None
    return Cipher(algorithms.AES(encode(password)[:32].ljust(32, b"\0")), modes.CBC(vector))


def encrypt_aes(password: str, text: str, world: World) -> str:
    """Encrypt with AES-256 in CBC mode."""
    if not text:
        return ""
    data = encode(text)
    padding = _BLOCK - len(data) % _BLOCK
    vector = world.ids.token(_BLOCK)
    encryptor = _cipher(password, vector).encryptor()
    return base64.b64encode(
        vector + encryptor.update(data + bytes([padding] * padding)) + encryptor.finalize()
    ).decode()


def decrypt_aes(password: str, text: str) -> str:
    """Decrypt what `encryptAES` made."""
    if not text:
        return ""
    try:
        data = base64_decoded(text)
    except CorruptInputError as error:
        raise PanicError(str(error)) from None
    if len(data) < _BLOCK:
        raise PanicError(f"runtime error: slice bounds out of range [:{_BLOCK}] with capacity {len(text) // 4 * 3}")
    if len(data) % _BLOCK:
        raise PanicError("crypto/cipher: input not full blocks")
    if len(data) == _BLOCK:
        raise PanicError("runtime error: index out of range [-1]")
    decryptor = _cipher(password, data[:_BLOCK]).decryptor()
    plain: bytes = decryptor.update(data[_BLOCK:]) + decryptor.finalize()
    end = len(plain) - plain[-1]
    if end < 0:
        raise PanicError(f"runtime error: slice bounds out of range [:{end}]")
    return decode(plain[:end])
