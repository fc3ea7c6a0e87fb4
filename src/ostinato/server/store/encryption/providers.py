"""Providers: ciphers for stored objects, in kube-apiserver's format: `k8s:enc:<cipher>:v1:<key>:` and the ciphertext.

| cipher | ciphertext | protects against moving it to another object |
|---|---|---|
| `aesgcm` | nonce (12 bytes), AES-GCM | yes |
| `secretbox` | nonce (24 bytes), XSalsa20 and Poly1305 | no |
| `aescbc` | initialization vector (16 bytes), AES-CBC with PKCS #7 padding; not authenticated | no |
| `identity` | the data itself, without prefix | no |
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Final

from ostinato.world import Ids

PREFIX: Final = b"k8s:enc:"
"""Begins every encrypted value. JSON begins with other bytes."""


class DecryptionError(Exception):
    """A stored value cannot be decrypted."""


class Provider(ABC):
    """One key of one cipher. `context`: the object that the data belongs to."""

    prefix: bytes

    @abstractmethod
    def encrypt(self, data: bytes, context: bytes) -> bytes: ...

    @abstractmethod
    def decrypt(self, data: bytes, context: bytes) -> bytes:
        """Raises DecryptionError. `data`: with its prefix."""


class Identity(Provider):
    prefix = b""

    def encrypt(self, data: bytes, context: bytes) -> bytes:
        return data

    def decrypt(self, data: bytes, context: bytes) -> bytes:
        return data


class _Keyed(Provider):
    cipher: str
    key_sizes: tuple[int, ...] = (16, 24, 32)

    def __init__(self, name: str, key: bytes, ids: Ids) -> None:
        self.prefix = PREFIX + f"{self.cipher}:v1:{name}:".encode()
        self._key = key
        self._ids = ids


class AesGcm(_Keyed):
    cipher = "aesgcm"

    def __init__(self, name: str, key: bytes, ids: Ids) -> None:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # noqa: PLC0415 - only where it is configured

        super().__init__(name, key, ids)
        self._cipher = AESGCM(key)

    def encrypt(self, data: bytes, context: bytes) -> bytes:
        nonce = self._ids.token(12)
        return b"".join((self.prefix, nonce, self._cipher.encrypt(nonce, data, context)))

    def decrypt(self, data: bytes, context: bytes) -> bytes:
        from cryptography.exceptions import InvalidTag  # noqa: PLC0415

        start = len(self.prefix)
        try:
            return self._cipher.decrypt(data[start : start + 12], data[start + 12 :], context)
        except (InvalidTag, ValueError):
            raise DecryptionError("the key is wrong, or the value was modified") from None


class AesCbc(_Keyed):
    cipher = "aescbc"

    def encrypt(self, data: bytes, context: bytes) -> bytes:
        from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes  # noqa: PLC0415

        vector = self._ids.token(16)
        padding = 16 - len(data) % 16
        encryptor = Cipher(algorithms.AES(self._key), modes.CBC(vector)).encryptor()
        padded = data + bytes([padding]) * padding
        return b"".join((self.prefix, vector, encryptor.update(padded), encryptor.finalize()))

    def decrypt(self, data: bytes, context: bytes) -> bytes:
        from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes  # noqa: PLC0415

        vector, encrypted = data[len(self.prefix) :][:16], data[len(self.prefix) + 16 :]
        if len(vector) != 16 or not encrypted or len(encrypted) % 16:
            raise DecryptionError("the value is incomplete")
        decryptor = Cipher(algorithms.AES(self._key), modes.CBC(vector)).decryptor()
        padded = decryptor.update(encrypted) + decryptor.finalize()
        padding = padded[-1]
        if not 1 <= padding <= 16 or padded[-padding:] != bytes([padding]) * padding:
            raise DecryptionError("the key is wrong, or the value was modified")
        return padded[:-padding]


class SecretBox(_Keyed):
    cipher = "secretbox"
    key_sizes = (32,)

    def __init__(self, name: str, key: bytes, ids: Ids) -> None:
        """Raises ImportError without PyNaCl."""
        from nacl.secret import SecretBox as Box  # noqa: PLC0415 - only where it is configured

        super().__init__(name, key, ids)
        self._box = Box(key)

    def encrypt(self, data: bytes, context: bytes) -> bytes:
        return self.prefix + bytes(self._box.encrypt(data, self._ids.token(24)))

    def decrypt(self, data: bytes, context: bytes) -> bytes:
        from nacl.exceptions import CryptoError  # noqa: PLC0415

        try:
            return bytes(self._box.decrypt(data[len(self.prefix) :]))
        except (CryptoError, ValueError):
            raise DecryptionError("the key is wrong, or the value was modified") from None
