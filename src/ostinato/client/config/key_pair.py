"""Key pairs: a certificate with its private key, given to TLS without leaving the key on a disk."""

from __future__ import annotations

import contextlib
import os
import ssl
import tempfile
from collections.abc import Iterator


def load_key_pair(context: ssl.SSLContext, certificate: bytes, key: bytes) -> None:
    """Show this certificate. ssl.SSLError or ValueError if the two are no pair in PEM without a password."""
    with private_file(certificate + b"\n" + key) as name:
        context.load_cert_chain(name, password=_no_password)


@contextlib.contextmanager
def private_file(data: bytes) -> Iterator[str]:
    """A file that nobody else can read, for the moment in which OpenSSL, which takes no bytes, looks at it."""
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
    with tempfile.NamedTemporaryFile() as file:  # only its owner may read it
        file.write(data)
        file.flush()
        yield file.name


def _no_password() -> str:
    """Asked for an encrypted key; without this OpenSSL would ask the terminal."""
    return ""
