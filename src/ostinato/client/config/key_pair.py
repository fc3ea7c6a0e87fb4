"""Loads a certificate and its private key into an SSL context without writing the key to disk."""

from __future__ import annotations

import contextlib
import os
import ssl
import tempfile
from collections.abc import Iterator


def load_key_pair(context: ssl.SSLContext, certificate: bytes, key: bytes) -> None:
    """Load a key pair in PEM. Raises ssl.SSLError or ValueError if it is invalid or encrypted."""
    with private_file(certificate + b"\n" + key) as name:
        context.load_cert_chain(name, password=_no_password)


@contextlib.contextmanager
def private_file(data: bytes) -> Iterator[str]:
    """Provide a private file with the data for OpenSSL, which cannot load a key pair from memory."""
    if hasattr(os, "memfd_create"):
        handle = os.memfd_create("certificate", os.MFD_CLOEXEC)
        try:
            os.write(handle, data)
            name = f"/proc/self/fd/{handle}"
            if os.path.exists(name):
                yield name
                return
        finally:
            os.close(handle)
    with tempfile.NamedTemporaryFile() as file:  # readable by its owner only
        file.write(data)
        file.flush()
        yield file.name


def _no_password() -> str:
    """Password callback; without it OpenSSL would prompt on the terminal for an encrypted key."""
    return ""
