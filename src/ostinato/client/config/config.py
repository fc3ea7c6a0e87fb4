"""Config: the API server to connect to, and the credentials.

`Config.load()` finds it as kubectl and controller-runtime do; `Config(server=…, token=Secret(…))` sets it in code. The
first of these that exists is used:

1. `path`, without merging.
2. The files of `$KUBECONFIG`, merged.
3. The in-cluster configuration, unless a `context` is requested.
4. `~/.kube/config`.

A Config is an immutable value: it is validated on construction, opens no connection, and its repr shows no secrets.
Credentials are sent over HTTPS only.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, Literal
from urllib.parse import SplitResult, urlsplit

from ostinato.client.config.error import ConfigError, NoConfig
from ostinato.client.config.exec_policy import ExecPolicy
from ostinato.client.config.secret import Secret

EXEC_API_VERSIONS: Final = ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1")
INTERACTIVE_MODES: Final = ("Never", "IfAvailable", "Always")

InteractiveMode = Literal["Never", "IfAvailable", "Always"]

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tls:
    """Verification of the server, and the client certificate. Data is PEM, and takes precedence over the file.

    Files are read again every five minutes; when one has changed, connections are reopened.
    """

    ca_file: Path | None = None  # defaults to the system's root certificates
    ca_data: bytes = field(default=b"", repr=False)
    server_name: str = ""  # expected in the server's certificate; defaults to the host of the URL
    insecure: bool = False  # do not verify the server's certificate; logs a warning
    certificate_file: Path | None = None
    certificate_data: bytes = field(default=b"", repr=False)
    key_file: Path | None = None
    key_data: Secret | None = None

    @property
    def has_ca(self) -> bool:
        return bool(self.ca_file or self.ca_data)

    @property
    def has_certificate(self) -> bool:
        return bool(self.certificate_file or self.certificate_data)


@dataclass(frozen=True, slots=True, kw_only=True)
class Impersonation:
    """User to impersonate. The server checks that the authenticated user may do so."""

    user: str
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecPlugin:
    """Credential plugin: `aws eks get-token`, `gke-gcloud-auth-plugin`, `kubelogin`."""

    command: str  # a bare name is looked up in PATH
    api_version: str = EXEC_API_VERSIONS[0]
    args: tuple[str, ...] = field(default=(), repr=False)  # may contain secrets
    env: tuple[tuple[str, Secret], ...] = ()
    interactive_mode: InteractiveMode = "IfAvailable"
    provide_cluster_info: bool = False
    cluster_config: Any = field(default=None, repr=False)  # the cluster's extension for exec plugins
    install_hint: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    server: str = ""  # URL, whose path prefixes that of requests, or host:port; defaults to localhost
    namespace: str = "default"  # of objects without one
    tls: Tls = field(default_factory=Tls)
    token: Secret | None = None
    token_file: Path | None = None  # read again every 50 s; takes precedence over `token`
    username: str = ""
    password: Secret | None = None
    exec_plugin: ExecPlugin | None = None  # not used with a token, a password or a certificate
    exec_policy: ExecPolicy = field(default_factory=ExecPolicy.allow_all)
    impersonate: Impersonation | None = None
    proxy: Secret | None = None  # http:// or https:// URL; a Secret, as it may contain a password
    environment_proxies: bool = True  # without `proxy`: use HTTPS_PROXY, HTTP_PROXY and NO_PROXY
    compression: bool = True  # request gzip
    user_agent: str = ""  # defaults to `headers.default_user_agent()`
    timeout: float | None = None  # default of requests, in seconds; None is no limit
    qps: float | None = None  # requests per second; None is no limit
    burst: int = 0  # above qps; required with it
    source: str = "code"  # for messages

    def __post_init__(self) -> None:
        problems = list(_problems(self))
        if problems:
            raise ConfigError(*[f"{self.source}: {problem}" for problem in problems])

    @staticmethod
    def load(
        context: str | None = None,
        path: str | Path | None = None,
        *,
        namespace: str | None = None,
        exec_policy: ExecPolicy | None = None,
        environ: Mapping[str, str] | None = None,
    ) -> Config:
        """Load the configuration of this machine or Pod; the module's docstring has the order.

        - `context`: a context of the kubeconfig. Defaults to its current context.
        - `namespace`: Defaults to the context's.
        - `environ`: Defaults to the environment of the process.
        - Raises ConfigError for an invalid configuration, its subclass NoConfig if there is none.
        """
        config = _load(context, path, os.environ if environ is None else environ)
        if namespace:
            config = replace(config, namespace=namespace)
        if exec_policy is not None:
            config = replace(config, exec_policy=exec_policy)
        return config

    @property
    def url(self) -> str:
        """Base URL: scheme, host and path prefix, without a trailing slash."""
        parts = self._parts()
        return f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/')}"

    @property
    def secure(self) -> bool:
        return self._parts().scheme == "https"

    def _parts(self) -> SplitResult:
        tls = self.tls
        return _server_parts(self.server, secure=tls.has_ca or tls.has_certificate or tls.insecure)

    def with_agent(self, name: str) -> Config:
        """Return this configuration with a name appended to the user agent."""
        from ostinato.client.transport.headers import default_user_agent  # noqa: PLC0415 - circular

        return replace(self, user_agent=f"{self.user_agent or default_user_agent()}/{name}")


def _load(context: str | None, path: str | Path | None, environ: Mapping[str, str]) -> Config:
    from ostinato.client.config import contexts, in_cluster, kubeconfig  # noqa: PLC0415 - circular

    if path is not None:
        return contexts.config_of(kubeconfig.read([Path(path)], must_exist=True), context)
    listed = environ.get("KUBECONFIG", "")
    if listed:
        merged = kubeconfig.read(kubeconfig.split_list(listed))
        if not merged.files and not merged.errors:
            log.warning("none of the files in $KUBECONFIG exists KUBECONFIG=%s", listed)
    if listed and (context is not None or not merged.is_empty() or merged.errors):
        return contexts.config_of(merged, context)
    if context is None and in_cluster.is_possible(environ):
        return in_cluster.config(environ)
    home = kubeconfig.home_file(environ)
    if not listed and home is not None:
        merged = kubeconfig.read([home])
        if context is not None or not merged.is_empty() or merged.errors:
            return contexts.config_of(merged, context)
    raise NoConfig(
        "no cluster configured: "
        + (f"the files of $KUBECONFIG ({listed}) are empty" if listed else f"{home or '~/.kube/config'} has none")
        + " and this process does not run in a Pod; set KUBECONFIG to a kubeconfig, or run the embedded server"
    )


def _problems(config: Config) -> list[str]:
    tls = config.tls
    found = server_problems(config.server)
    if tls.has_ca and tls.insecure:
        found.append(
            "specifying a root certificates file with the insecure flag is not allowed: "
            "remove insecure-skip-tls-verify, or the certificate authority"
        )
    if tls.has_certificate != bool(tls.key_file or tls.key_data):
        missing = "client-key or client-key-data" if tls.has_certificate else "client-certificate"
        found.append(f"{missing}: is missing; a client certificate requires both the certificate and its key")
    if (config.token or config.token_file) and (config.username or config.password):
        found.append("token and username/password: mutually exclusive; remove one")
    if config.impersonate is not None and not config.impersonate.user:
        found.append("as: is empty; impersonating uid, groups or extra requires a user")
    if config.exec_plugin is not None:
        found += exec_problems(config.exec_plugin)
    if config.proxy:
        found += proxy_problems(config.proxy)
    if config.qps is not None and (not 0 < config.qps < float("inf") or config.burst < 1):
        found.append(f"qps and burst: {config.qps} and {config.burst} are invalid; both must be above zero")
    if config.timeout is not None and not config.timeout > 0:
        found.append(f"timeout: {config.timeout} must be above zero; None is no limit")
    return found


def exec_problems(plugin: ExecPlugin) -> list[str]:
    found = []
    if not plugin.command:
        found.append("exec.command: is missing; set it to the credential plugin")
    if plugin.api_version not in EXEC_API_VERSIONS:
        found.append(f"exec.apiVersion: {plugin.api_version!r} is not supported; use {' or '.join(EXEC_API_VERSIONS)}")
    if plugin.interactive_mode not in INTERACTIVE_MODES:
        found.append(
            f"exec.interactiveMode: {plugin.interactive_mode!r} is not supported; use {', '.join(INTERACTIVE_MODES)}"
        )
    return found


def proxy_problems(proxy: Secret) -> list[str]:
    try:
        parts = urlsplit(proxy.reveal())
        host = parts.hostname and parts.port is not False
    except ValueError:
        return ["proxy-url: is not a valid URL; use e.g. http://10.0.0.1:3128"]
    if parts.scheme == "socks5":
        return ["proxy-url: socks5 proxies are not supported; use an http or https proxy"]
    if parts.scheme not in ("http", "https"):
        return [f"proxy-url: unsupported scheme {parts.scheme!r}, must be http or https"]
    return [] if host else ["proxy-url: has no host; use e.g. http://10.0.0.1:3128"]


def server_problems(server: str) -> list[str]:
    try:
        parts = _server_parts(server, secure=True)
    except ValueError:
        parts = _NO_PARTS
    found = []
    if parts.username is not None or parts.password is not None:
        found.append("server: contains a user or password; use token, or username and password")
    elif parts.scheme not in ("http", "https") or not parts.hostname or any(map(str.isspace, server)):
        shown = "the address" if "@" in server else repr(server)  # may contain a password before the @
        found.append(f"server: {shown} is neither a URL nor host:port; use e.g. https://10.0.0.1:6443")
    return found


def _server_parts(server: str, *, secure: bool) -> SplitResult:
    """Parse the server's URL. Without a scheme it is HTTPS if `secure`."""
    parts = urlsplit(server or "localhost")
    if not parts.scheme or not parts.netloc:
        parts = urlsplit(f"{'https' if secure else 'http'}://{server or 'localhost'}")
        if parts.path not in ("", "/"):
            return _NO_PARTS  # a/b/c is not host:port
    _ = parts.port  # raises for an invalid port
    return parts._replace(query="", fragment="")


_NO_PARTS: Final = SplitResult("", "", "", "", "")
