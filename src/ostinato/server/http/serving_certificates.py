"""Serving certificates: the default key pair and key pairs selected by SNI, reloaded when their files change.

- `--tls-cert-file` replaces the server's own certificate; `--tls-sni-cert-key` adds certificates for some names.
- Clients with the server's own kubeconfigs send the name `LOOPBACK_NAME` and always get the own certificate, as
  kube-apiserver's loopback client does.
- Names are matched exactly, then with wildcards; explicit patterns before the names in certificates; earlier options
  before later ones.
- Changed files are loaded by `reload`; new connections use them. Files that do not fit together, as between two writes
  of a rotation, are logged and leave the loaded pair in use.
"""

from __future__ import annotations

import logging
import ssl
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec

from ostinato.server.state import StateError
from ostinato.world import Clock

LOOPBACK_NAME = "apiserver-loopback-client"
RELOAD_SECONDS = 10.0  # between two checks of the files
_logger = logging.getLogger(__name__)


class ServingCertificateError(StateError):
    """A serving certificate or its key cannot be used; the message names the file."""


class KeyPairFiles(NamedTuple):
    """PEM files of a certificate chain and its key. `names`: SNI patterns. Defaults to the certificate's names."""

    certificate: Path
    key: Path
    names: tuple[str, ...] = ()


class TlsSettings(msgspec.Struct, frozen=True, kw_only=True):
    """
    - `key_pair`: replaces the server's own serving certificate. Defaults to none.
    - `sni`: further key pairs, selected by server name.
    """

    key_pair: KeyPairFiles | None = None
    sni: tuple[KeyPairFiles, ...] = ()

    @property
    def enabled(self) -> bool:
        return self.key_pair is not None or bool(self.sni)


class ServingCertificates:
    """Selects the TLS context of each connection by its server name."""

    def __init__(self, settings: TlsSettings, make_context: Callable[[], ssl.SSLContext], clock: Clock) -> None:
        """ServingCertificateError if a file cannot be used.

        `make_context`: creates a context with the server's client verification, without a certificate.
        """
        self._clock = clock
        self._default = _Loaded(settings.key_pair, make_context, clock) if settings.key_pair is not None else None
        self._sni = [_Loaded(files, make_context, clock) for files in settings.sni]
        self._by_name = self._names()

    def install(self, own: ssl.SSLContext) -> None:
        """Let `own`, the context of the listener, select the certificate of each connection."""
        own.sni_callback = self._select

    def reload(self) -> None:
        """Load the key pairs whose files changed."""
        loaded = [each.reload() for each in self._all()]  # a list: all are loaded
        if any(loaded):
            self._by_name = self._names()

    def replace_contexts(self) -> None:
        """Recreate the contexts, after the client verification changed."""
        for each in self._all():
            try:
                each.load()
            except ServingCertificateError as error:
                _logger.error("serving certificate not reloaded error=%s", error)

    def _all(self) -> Iterator[_Loaded]:
        if self._default is not None:
            yield self._default
        yield from self._sni

    def _names(self) -> dict[str, _Loaded]:
        found: dict[str, _Loaded] = {}
        for each in reversed(self._sni):
            if not each.files.names:
                found.update(dict.fromkeys(each.names, each))
        for each in reversed(self._sni):
            found.update(dict.fromkeys((name.lower() for name in each.files.names), each))
        return found

    def _select(self, connection: ssl.SSLObject, name: str | None, own: ssl.SSLContext) -> int | None:
        if name == LOOPBACK_NAME:
            return None
        chosen = (self._match(name.lower().rstrip(".")) if name else None) or self._default
        if chosen is not None:
            connection.context = chosen.context
        return None

    def _match(self, name: str) -> _Loaded | None:
        if name in self._by_name:
            return self._by_name[name]
        labels = name.split(".")
        for i in range(len(labels)):  # as Go: *.b.c, then *.*.c
            labels[i] = "*"
            found = self._by_name.get(".".join(labels))
            if found is not None:
                return found
        return None


class _Loaded:
    """A key pair in use: its files, the names in its certificate and a context."""

    def __init__(self, files: KeyPairFiles, make_context: Callable[[], ssl.SSLContext], clock: Clock) -> None:
        self.files = files
        self._make_context = make_context
        self._clock = clock
        self._content = _read(files)
        self.names: list[str] = []
        self.context = make_context()
        self.load()

    def reload(self) -> bool:
        """Load the files if they changed; return whether they were loaded. Invalid files are logged."""
        try:
            content = _read(self.files)
            if content == self._content:
                return False
            self._content = content  # logged once, and tried again when a file changes
            self.load()
        except ServingCertificateError as error:
            _logger.error("serving certificate not reloaded error=%s", error)
            return False
        _logger.info("serving certificate reloaded file=%s", self.files.certificate)
        return True

    def load(self) -> None:
        context = self._make_context()
        try:
            context.load_cert_chain(self.files.certificate, self.files.key, _no_password)
        except (OSError, ValueError) as error:  # ssl.SSLError is an OSError
            raise ServingCertificateError(_fault(self.files, error)) from None
        self.names = self._inspect()
        self.context = context

    def _inspect(self) -> list[str]:
        """The DNS names of the certificate; warns if it is not valid now."""
        from cryptography import x509  # noqa: PLC0415 - only where an operator has a certificate

        certificate = x509.load_pem_x509_certificates(self._content[0])[0]
        begins, ends, now = certificate.not_valid_before_utc, certificate.not_valid_after_utc, self._clock.now()
        if not begins <= now <= ends:
            _logger.warning(
                "serving certificate is not valid now file=%s not_before=%s not_after=%s",
                self.files.certificate,
                begins.isoformat(),
                ends.isoformat(),
            )
        try:
            names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        except x509.ExtensionNotFound:
            return []
        return [name.lower() for name in names.get_values_for_type(x509.DNSName)]


def _read(files: KeyPairFiles) -> tuple[bytes, bytes]:
    contents = []
    for path in (files.certificate, files.key):
        try:
            contents.append(path.read_bytes())
        except OSError as error:
            raise ServingCertificateError(f"{path}: cannot be read: {error.strerror}") from None
    return contents[0], contents[1]


def _no_password() -> str:
    raise ValueError("the key is encrypted; give a key without a password")


def _fault(files: KeyPairFiles, error: Exception) -> str:
    reason = getattr(error, "reason", None) or ""
    if reason == "KEY_VALUES_MISMATCH":
        return f"{files.key}: the private key does not match the certificate {files.certificate}"
    if isinstance(error, ValueError):
        return f"{files.key}: {error}"
    for path, kind in ((files.certificate, "certificate"), (files.key, "private key")):
        if b"-----BEGIN " not in path.read_bytes():
            return f"{path}: not a {kind} in PEM"
    return f"{files.certificate}, {files.key}: cannot load the key pair: {reason or error}"
