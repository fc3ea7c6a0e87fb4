"""Kubeconfigs: what a client needs to know to reach the server, in one file."""

from __future__ import annotations

import base64
import json
import re
from pathlib import Path

from ostinato.server.access.authority import Pair
from ostinato.server.state import is_private, write_private

# The values are base64, a URL and names, of which those of users are quoted where they need to be.
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


def kubeconfig(server: str, authority: bytes, user: str, certificate: bytes, key: bytes) -> str:
    """The text of a kubeconfig. `authority` is the certificate that the server's is signed by; all are in PEM."""
    return _TEMPLATE.format(
        name="ostinato",
        server=server,
        user=user if re.fullmatch(r"[a-z]+(-[a-z]+)+", user) else json.dumps(user),
        authority=_base64(authority),
        certificate=_base64(certificate),
        key=_base64(key),
    )


def write_kubeconfig(path: Path, server: str, authority: bytes, user: str, pair: Pair) -> None:
    """Write the file, for its owner's eyes alone."""
    text = kubeconfig(server, authority, user, pair.certificate.read_bytes(), pair.key.read_bytes())
    if not is_private(path) or path.read_bytes() != text.encode():
        write_private(path, text.encode())


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()
