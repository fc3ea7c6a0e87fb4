"""Kubeconfig files for clients of this server."""

from __future__ import annotations

import base64
import json
import re
from pathlib import Path

from ostinato.server.access.authority import Pair
from ostinato.server.state import is_private, write_private

# Values are base64, a URL and names; user names are quoted as needed.
_TEMPLATE = """apiVersion: v1
kind: Config
clusters:
- name: {name}
  cluster:
    server: {server}
    certificate-authority-data: {authority}{server_name}
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


def kubeconfig(
    server: str, authority: bytes, user: str, certificate: bytes, key: bytes, *, server_name: str = ""
) -> str:
    """The text of a kubeconfig; all certificates are PEM.

    - `authority`: the CA of the serving certificate.
    - `server_name`: the name to verify and to send as SNI. Defaults to the host of `server`.
    """
    return _TEMPLATE.format(
        name="ostinato",
        server=server,
        user=user if re.fullmatch(r"[a-z]+(-[a-z]+)+", user) else json.dumps(user),
        authority=_base64(authority),
        server_name=f"\n    tls-server-name: {server_name}" if server_name else "",
        certificate=_base64(certificate),
        key=_base64(key),
    )


def write_kubeconfig(
    path: Path, server: str, authority: bytes, user: str, pair: Pair, *, server_name: str = "", durable: bool = True
) -> None:
    """Write the file with mode 0600. `durable`: it survives a crash of the machine."""
    text = kubeconfig(
        server, authority, user, pair.certificate.read_bytes(), pair.key.read_bytes(), server_name=server_name
    )
    if not is_private(path) or path.read_bytes() != text.encode():
        write_private(path, text.encode(), durable=durable)


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()
