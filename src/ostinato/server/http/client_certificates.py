"""Client certificates: requested in the handshake, verified by OpenSSL, checked for validity with each request.

kube-apiserver completes the handshake with any client certificate, and responds with 401 and a Status if it cannot be
verified. Python's `ssl` can only fail the handshake. Therefore a callback replaces the verification of the context: it
calls OpenSSL's, records the result by the certificate's fingerprint, and lets the handshake continue.

- Only certificates that OpenSSL has verified are recorded; any other identifies no one.
- The validity period of the client's own certificate is checked with each request, so that it also ends on open
  connections and in resumed sessions.
- `anyExtendedKeyUsage` is accepted for `clientAuth`, as in Go; OpenSSL alone rejects it.
- The handshake lists the accepted authorities, from which clients select a certificate.
- If front proxies have an authority of their own, the root of each verified chain is recorded, too: a certificate of
  that authority identifies a proxy, and no user.
- If OpenSSL's functions are not accessible (it is linked into the interpreter, or this is not CPython), the handshake
  fails for certificates that cannot be verified, as usual in Python.
"""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
import re
import ssl
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import msgspec

from ostinato.server.request import Peer

MAX_VERIFIED = 16_384  # recorded certificates
UNVERIFIED = "certificate signed by unknown authority"

_SSL_VERIFY_PEER = 1
_NOT_YET_VALID, _EXPIRED, _INVALID_PURPOSE = 9, 10, 26  # X509_V_ERR_*
_ANY_USAGE = 0x100  # XKU_ANYEKU
_NO_USAGE = 0xFFFFFFFF  # the certificate has no extended key usage
_UID = "1.3.6.1.4.1.57683.2"  # subject attribute with the uid of a user

_Pointer = ctypes.c_void_p
_FUNCTIONS: Mapping[str, tuple[list[Any], Any]] = {
    "SSL_CTX_get_options": ([_Pointer], ctypes.c_uint64),
    "SSL_CTX_set_cert_verify_callback": ([_Pointer, _Pointer, _Pointer], None),
    "SSL_CTX_set_client_CA_list": ([_Pointer, _Pointer], None),
    "SSL_add_file_cert_subjects_to_stack": ([_Pointer, ctypes.c_char_p], ctypes.c_int),
    "SSL_load_client_CA_file": ([ctypes.c_char_p], _Pointer),
    "OPENSSL_sk_num": ([_Pointer], ctypes.c_int),
    "OPENSSL_sk_value": ([_Pointer, ctypes.c_int], _Pointer),
    "X509_STORE_CTX_get0_chain": ([_Pointer], _Pointer),
    "X509_STORE_CTX_get0_cert": ([_Pointer], _Pointer),
    "X509_STORE_CTX_get_error": ([_Pointer], ctypes.c_int),
    "X509_STORE_CTX_get_error_depth": ([_Pointer], ctypes.c_int),
    "X509_STORE_CTX_set_error": ([_Pointer, ctypes.c_int], None),
    "X509_STORE_CTX_set_verify_cb": ([_Pointer, _Pointer], None),
    "X509_get_extended_key_usage": ([_Pointer], ctypes.c_uint32),
    "X509_verify_cert": ([_Pointer], ctypes.c_int),
    "i2d_X509": ([_Pointer, _Pointer], ctypes.c_int),
}
_OnChain = ctypes.CFUNCTYPE(ctypes.c_int, _Pointer, _Pointer)
_OnError = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int, _Pointer)


class RequestingContext(ssl.SSLContext):
    """TLS context of a server that requests client certificates."""

    def __new__(cls, *_: Path, **__: object) -> Self:
        return super().__new__(cls, ssl.PROTOCOL_TLS_SERVER)

    def __init__(
        self, *authorities: Path, front_proxy: Path | None = None, shared: RequestingContext | None = None
    ) -> None:
        """PEM files; OSError or ssl.SSLError if one cannot be read.

        - `authorities`: one must have signed a client's certificate.
        - `front_proxy`: signs the certificates of front proxies.
        - `shared`: the listener's context, which looks up peers: verified certificates are recorded there.
        """
        super().__init__()
        files = [*authorities, *([front_proxy] if front_proxy is not None else [])]
        for file in files:
            self.load_verify_locations(file)
        self.verify_mode = ssl.CERT_OPTIONAL
        self._proxy_roots = certificates_of(front_proxy) if front_proxy is not None else frozenset()
        self._client_roots = (
            frozenset[bytes]().union(*map(certificates_of, authorities)) if front_proxy else frozenset()
        )
        # Fingerprint -> that of the root, if there are proxies; in the order of verification.
        self._verified: dict[bytes, bytes] = {} if shared is None else shared._verified
        self._on_chain, self._on_error = (
            _OnChain(self._verify),
            _OnError(self._override_error),
        )  # as long as the context
        self._openssl = _openssl()
        self.strict = self._openssl is None or not self._install(files)  # unverified certificates fail the handshake
        if self.strict and front_proxy is not None:
            raise ssl.SSLError("front proxies cannot be distinguished with this interpreter's OpenSSL")

    def peer(self, connection: ssl.SSLObject | None) -> Peer | None:
        """Return the identity in the certificate of a connection; None without a certificate."""
        shown = None if connection is None else connection.getpeercert(binary_form=True)
        if connection is None or not shown:
            return None
        fingerprint = hashlib.sha256(shown)
        if not self.strict and fingerprint.digest() not in self._verified:
            return Peer("", fault=UNVERIFIED)
        peer = peer_of(connection.getpeercert(), fingerprint.hexdigest())
        return peer if peer is None or not self._proxy_roots else self._by_root(peer, fingerprint.digest())

    def _by_root(self, peer: Peer, fingerprint: bytes) -> Peer:
        """Return the identity as that of a proxy if the chain ends with an authority of proxies."""
        root = self._verified[fingerprint]
        if root not in self._proxy_roots:
            return peer
        is_client = root in self._client_roots
        return msgspec.structs.replace(peer, proxy=peer.name or "?", name=peer.name if is_client else "")

    def _install(self, files: Sequence[Path]) -> bool:
        openssl = self._openssl
        assert openssl is not None
        # In CPython an SSLContext begins with the pointer to OpenSSL's.
        pointer = _Pointer.from_address(id(self) + object.__basicsize__)
        if openssl.SSL_CTX_get_options(pointer) != int(self.options) & 0xFFFFFFFFFFFFFFFF:
            return False
        names = openssl.SSL_load_client_CA_file(bytes(files[0]))
        for file in files[1:]:
            openssl.SSL_add_file_cert_subjects_to_stack(names, bytes(file))
        openssl.SSL_CTX_set_client_CA_list(pointer, names)
        openssl.SSL_CTX_set_cert_verify_callback(pointer, ctypes.cast(self._on_chain, _Pointer), None)
        return True

    def _verify(self, store: int, _: int) -> int:
        """Callback for the chain of a client. An exception fails the handshake."""
        openssl = self._openssl
        assert openssl is not None
        openssl.X509_STORE_CTX_set_verify_cb(store, ctypes.cast(self._on_error, _Pointer))
        if openssl.X509_verify_cert(store) == 1 and openssl.X509_STORE_CTX_get_error(store) == 0:
            if len(self._verified) >= MAX_VERIFIED:
                del self._verified[next(iter(self._verified))]
            fingerprint = hashlib.sha256(_der(openssl, openssl.X509_STORE_CTX_get0_cert(store))).digest()
            self._verified[fingerprint] = self._root(store) if self._proxy_roots else b""
        return 1

    def _root(self, store: int) -> bytes:
        """Return the fingerprint of the root of a verified chain."""
        openssl = self._openssl
        assert openssl is not None
        chain = openssl.X509_STORE_CTX_get0_chain(store)
        last = openssl.OPENSSL_sk_value(chain, openssl.OPENSSL_sk_num(chain) - 1)
        return hashlib.sha256(_der(openssl, last)).digest()

    def _override_error(self, verified: int, store: int) -> int:
        """Callback for each error of a chain: return 1 to ignore it."""
        openssl = self._openssl
        assert openssl is not None
        if verified:
            return 1
        if openssl.X509_STORE_CTX_get_error_depth(store) != 0:
            return 0
        fault = openssl.X509_STORE_CTX_get_error(store)
        if fault == _INVALID_PURPOSE:
            usage = openssl.X509_get_extended_key_usage(openssl.X509_STORE_CTX_get0_cert(store))
            tolerated = usage != _NO_USAGE and bool(usage & _ANY_USAGE)
        else:
            tolerated = fault in (_NOT_YET_VALID, _EXPIRED)
        if tolerated:
            openssl.X509_STORE_CTX_set_error(store, 0)
        return int(tolerated)


def certificates_of(path: Path) -> frozenset[bytes]:
    """Return the fingerprints of the certificates in a PEM file."""
    blocks = re.findall(r"-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----", path.read_text(), re.DOTALL)
    return frozenset(hashlib.sha256(ssl.PEM_cert_to_DER_cert(block)).digest() for block in blocks)


def peer_of(certificate: Mapping[str, Any] | None, fingerprint: str = "") -> Peer | None:
    """Return the identity in a verified certificate, as parsed by `ssl`; None without one."""
    if not certificate:
        return None
    pairs = [pair for rdn in certificate.get("subject", ()) for pair in rdn]
    uids = [value for key, value in pairs if key == _UID]
    return Peer(
        next((value for key, value in reversed(pairs) if key == "commonName"), ""),
        tuple(value for key, value in pairs if key == "organizationName"),
        uid=uids[0] if uids else "",
        not_before=_seconds(certificate, "notBefore", float("-inf")),
        not_after=_seconds(certificate, "notAfter", float("inf")),
        fingerprint=fingerprint,
        fault="a certificate has one uid, which is not empty" if uids and (len(uids) > 1 or not uids[0]) else "",
    )


def _seconds(certificate: Mapping[str, Any], field: str, otherwise: float) -> float:
    return ssl.cert_time_to_seconds(certificate[field]) if field in certificate else otherwise


def _der(openssl: ctypes.PyDLL, certificate: int) -> bytes:
    written = ctypes.create_string_buffer(max(openssl.i2d_X509(certificate, None), 1))
    end = _Pointer(ctypes.addressof(written))
    size = openssl.i2d_X509(certificate, ctypes.byref(end))
    return written.raw[:size]


def _openssl() -> ctypes.PyDLL | None:
    """Return the OpenSSL library of Python's `ssl`; None if it is not accessible."""
    import _ssl  # noqa: PLC0415 - only its place is needed

    place = getattr(_ssl, "__file__", None)
    if sys.implementation.name != "cpython" or place is None:
        return None
    with contextlib.suppress(OSError, AttributeError):
        library = ctypes.PyDLL(place)
        for name, (arguments, result) in _FUNCTIONS.items():
            function = getattr(library, name)
            function.argtypes, function.restype = arguments, result
        return library
    return None
