"""Kubeconfigs: what a client needs to know to reach the server, in one file."""

from __future__ import annotations

import base64
from pathlib import Path

from ostinato.server.access.authority import Pair
from ostinato.server.state import is_private, write_private

# The values are base64, a URL and names of ours: nothing in them needs quoting.
_TEMPLATE = """apiVersion: v1
kind: Config
clusters:
- name: {name}
  cluster:
    server: {server}
    certificate-authority-data: {authority}
users:
- name: {user}
  user:
    client-certificate-data: {certificate}
    client-key-data: {key}
contexts:
- name: {name}
  context:
    cluster: {name}
    user: {user}
current-context: {name}
"""


def write_kubeconfig(path: Path, server: str, authority: bytes, user: str, pair: Pair) -> None:
    """Write the file, for its owner's eyes alone. `authority` is the certificate that the server's is signed by."""
    text = _TEMPLATE.format(
        name="ostinato",
        server=server,
        user=user,
        authority=_base64(authority),
        certificate=_base64(pair.certificate.read_bytes()),
        key=_base64(pair.key.read_bytes()),
    )
    if not is_private(path) or path.read_bytes() != text.encode():
        write_private(path, text.encode())


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()
