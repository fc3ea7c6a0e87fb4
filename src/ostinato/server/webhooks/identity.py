"""Client identity for webhook calls: credentials from kubeconfig files.

- `Identities` selects a kubeconfig user by host name, as for admission webhooks: `host:port`, `*.domain:port`, both
  without port 443, then `*`, then the current context's user.
- `backend_of` reads a kubeconfig whose current context is the backend, for image policy and audit.
"""

from __future__ import annotations

import base64
from pathlib import Path
from urllib.parse import urlsplit

from ostinato.client.config.config import Config
from ostinato.client.config.entry_fields import EntryFields
from ostinato.client.config.error import ConfigError
from ostinato.client.config.kubeconfig import Entry, Kubeconfig, read
from ostinato.client.config.secret import Secret
from ostinato.server.webhooks.target import Identity, Target


class Identities:
    """ConfigError if the file is not a kubeconfig."""

    def __init__(self, path: Path) -> None:
        self._kubeconfig: Kubeconfig = read([path], must_exist=True)
        if self._kubeconfig.errors:
            raise ConfigError(*self._kubeconfig.errors)
        self._users = {name: _identity_of(entry) for name, entry in self._kubeconfig.users.items()}

    def of(self, host: str, port: int) -> Identity | None:
        """The client identity for a host; None for an anonymous call."""
        names = _names(f"{host}:{port}")
        if port == 443:
            names += _names(host)
        found = next((name for name in (*names, "*") if name in self._users), "")
        if not found:
            context = self._kubeconfig.contexts.get(self._kubeconfig.current_context)
            found = str(context.fields.get("user") or "") if context is not None else ""
        return self._users.get(found)


def _names(target: str) -> list[str]:
    """The user names that match a target, the most specific first."""
    steps = target.split(".")
    return [target, *(f"*.{'.'.join(steps[i:])}" for i in range(1, len(steps)))]


def _identity_of(entry: Entry) -> Identity:
    problems: list[str] = []
    user = EntryFields(entry, problems)
    certificate = user.data("client-certificate-data") or _content(user.existing_path("client-certificate"))
    key = user.data("client-key-data") or _content(user.existing_path("client-key"))
    identity = Identity(
        certificate=certificate,
        key=Secret(key.decode("latin-1")) if key else None,
        token=Secret(user.text("token")) if user.text("token") else None,
        token_file=user.path("tokenFile"),
        basic=_basic(user.text("username"), user.text("password")),
    )
    if problems:
        raise ConfigError(*problems)
    return identity


def _content(path: Path | None) -> bytes:
    return b"" if path is None else path.read_bytes()


def _basic(username: str, password: str) -> Secret | None:
    if not username and not password:
        return None
    return Secret(base64.b64encode(f"{username}:{password}".encode()).decode())


def backend_of(path: Path) -> Target:
    """The backend of a kubeconfig's current context; ConfigError if the file is invalid."""
    config = Config.load(path=path)
    url, tls = urlsplit(config.url), config.tls
    if url.scheme != "https":
        raise ConfigError(f"{path}: cluster: server: {config.url} is not https; use an https:// URL")
    try:
        bundle = tls.ca_data or _content(tls.ca_file)
        certificate = tls.certificate_data or _content(tls.certificate_file)
        key = tls.key_data or (Secret(_content(tls.key_file).decode("latin-1")) if tls.key_file else None)
    except OSError as error:
        raise ConfigError(f"{path}: {error.filename} cannot be read: {error.strerror}") from None
    password = config.password.reveal() if config.password else ""
    identity = Identity(
        certificate=certificate,
        key=key,
        token=config.token,
        token_file=config.token_file,
        basic=_basic(config.username, password),
    )
    target = Target(url.hostname or "", url.port or 443, url.netloc, url.path or "/", None, bundle)
    return target._replace(identity=identity, server_name=tls.server_name, insecure=tls.insecure)
