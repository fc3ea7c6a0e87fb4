"""In-cluster configuration: the environment and the service account files of a Pod.

The token is read again regularly, as the kubelet renews it. The namespace is that of the Pod. Proxies of the
environment are not used.
"""

from __future__ import annotations

import logging
import ssl
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from ostinato.client.config.config import Config, Tls
from ostinato.client.config.error import ConfigError, NotInCluster
from ostinato.http.hosts import join_host_port

log = logging.getLogger(__name__)

SERVICE_ACCOUNT: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")


def is_possible(environ: Mapping[str, str], directory: Path = SERVICE_ACCOUNT) -> bool:
    """Whether this process runs in a Pod with a service account token."""
    return bool(
        environ.get("KUBERNETES_SERVICE_HOST")
        and environ.get("KUBERNETES_SERVICE_PORT")
        and (directory / "token").is_file()
    )


def config(environ: Mapping[str, str], directory: Path = SERVICE_ACCOUNT) -> Config:
    """Return the Config of the Pod. Raises NotInCluster outside of one, ConfigError if it has no token."""
    host, port = environ.get("KUBERNETES_SERVICE_HOST"), environ.get("KUBERNETES_SERVICE_PORT")
    if not host or not port:
        raise NotInCluster(
            "unable to load in-cluster configuration, KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT must be "
            "defined; this process does not run in a Pod"
        )
    token = directory / "token"
    try:
        token.read_bytes()
    except OSError as error:
        raise ConfigError(
            f"{token}: cannot be read: {error.strerror}; mount the token of a service account "
            "(automountServiceAccountToken)"
        ) from None
    return Config(
        server=f"https://{join_host_port(host, port)}",
        namespace=_namespace(environ, directory),
        tls=Tls(ca_file=_ca(directory / "ca.crt")),
        token_file=token,
        environment_proxies=False,
        source="in-cluster configuration",
    )


def _ca(path: Path) -> Path | None:
    """Return the cluster's CA file; without a valid one the system's root certificates are used, as in client-go."""
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
