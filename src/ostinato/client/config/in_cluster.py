"""The configuration of a Pod: what Kubernetes puts into its environment and its file system.

The token is read again and again, for the kubelet renews it; the namespace is that of the Pod. Proxies of the
environment are not used: the API server is next door.
"""

from __future__ import annotations

import logging
import ssl
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from ostinato.client.config.config import Config, Tls
from ostinato.client.config.error import ConfigError, NotInCluster

log = logging.getLogger(__name__)

SERVICE_ACCOUNT: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")


def is_possible(environ: Mapping[str, str], directory: Path = SERVICE_ACCOUNT) -> bool:
    """Whether this process runs in a Pod that may speak to its API server."""
    return bool(
        environ.get("KUBERNETES_SERVICE_HOST")
        and environ.get("KUBERNETES_SERVICE_PORT")
        and (directory / "token").is_file()
    )


def config(environ: Mapping[str, str], directory: Path = SERVICE_ACCOUNT) -> Config:
    """The Pod's Config. NotInCluster outside of one; ConfigError if the Pod has no token."""
    host, port = environ.get("KUBERNETES_SERVICE_HOST"), environ.get("KUBERNETES_SERVICE_PORT")
    if not host or not port:
        raise NotInCluster(
            "unable to load in-cluster configuration, KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT must be "
            "defined: this process does not run in a Pod"
        )
    token = directory / "token"
    try:
        token.read_bytes()
    except OSError as error:
        raise ConfigError(
            f"{token}: cannot be read: {error.strerror}: give the Pod a service account whose token is mounted "
            "(automountServiceAccountToken)"
        ) from None
    return Config(
        server=f"https://{f'[{host}]' if ':' in host else host}:{port}",
        namespace=_namespace(environ, directory),
        tls=Tls(ca_file=_ca(directory / "ca.crt")),
        token_file=token,
        environment_proxies=False,
        source="in-cluster configuration",
    )


def _ca(path: Path) -> Path | None:
    """The cluster's authority; without a good one, the roots of this machine decide, as client-go has it."""
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(cafile=path)
    except (OSError, ssl.SSLError) as error:
        log.error("expected to load root CA config from %s, but got err: %s", path, error)
        return None
    return path


def _namespace(environ: Mapping[str, str], directory: Path) -> str:
    if environ.get("POD_NAMESPACE"):
        return environ["POD_NAMESPACE"]
    try:
        name = (directory / "namespace").read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError):
        name = ""
    return name or "default"
