"""Config: which API server to speak to, and as whom.

`Config.load()` finds out as kubectl and Go operators do; `Config(server=…, token=Secret(…))` says it in code. Where it
is looked for, the first that there is:

1. `path`, used alone.
2. The files of `$KUBECONFIG`, merged.
3. The Pod that this process runs in, unless a `context` is asked for.
4. `~/.kube/config`.

A Config is a value: it is checked when it is made and never changes, it opens no connection, and printing it shows no
secret. Credentials are sent over HTTPS only.
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
    """How to know the server, and the certificate to show it. Data is PEM, and beats the file where both are given.

    Files are read again every five minutes; when one has changed, connections are made anew.
    """

    ca_file: Path | None = None  # without file and data: the roots of this machine
    ca_data: bytes = field(default=b"", repr=False)
    server_name: str = ""  # what the server's certificate is made out to, if not to the host of its address
    insecure: bool = False  # believe anybody who answers; said loudly each time
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
    """Whom to act as. The server asks whether the real user may."""

    user: str
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecPlugin:
    """A program that prints credentials: `aws eks get-token`, `gke-gcloud-auth-plugin`, `kubelogin`."""

    command: str  # a bare name is looked up in PATH
    api_version: str = EXEC_API_VERSIONS[0]
    args: tuple[str, ...] = field(default=(), repr=False)  # some carry secrets
    env: tuple[tuple[str, Secret], ...] = ()
    interactive_mode: InteractiveMode = "IfAvailable"
    provide_cluster_info: bool = False
    cluster_config: Any = field(default=None, repr=False)  # JSON that the cluster's entry holds for the plugin
    install_hint: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    server: str = ""  # a URL, whose path is put before every request's, or host:port; defaults to localhost
    namespace: str = "default"  # for what names none
    tls: Tls = field(default_factory=Tls)
    token: Secret | None = None
    token_file: Path | None = None  # read again about every 50 s; beats `token` once it can be read
    username: str = ""
    password: Secret | None = None
    exec_plugin: ExecPlugin | None = None  # not used if a token, a password or a certificate is given
    exec_policy: ExecPolicy = field(default_factory=ExecPolicy.allow_all)
    impersonate: Impersonation | None = None
    proxy: Secret | None = None  # http:// or https:// URL; a Secret because it may hold a password
    environment_proxies: bool = True  # without `proxy`: obey HTTPS_PROXY, HTTP_PROXY and NO_PROXY
    compression: bool = True  # ask for gzip
    user_agent: str = ""  # defaults to what `headers.default_user_agent` makes of the program's name
    timeout: float | None = None  # seconds for a request that gives none itself; no limit by default
    qps: float | None = None  # requests a second; unlimited by default, for servers defend themselves
    burst: int = 0  # requests at once, where qps is given
    source: str = "code"  # where this comes from, for messages

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
        """The configuration of this machine or Pod; see above for where it is looked for.

        `context` is one of the kubeconfig's, its current one by default; `namespace` beats the context's. `environ`
        stands in for the environment. ConfigError says what is wrong, NoConfig that there is nothing.
        """
        config = _load(context, path, os.environ if environ is None else environ)
        if namespace:
            config = replace(config, namespace=namespace)
        if exec_policy is not None:
            config = replace(config, exec_policy=exec_policy)
        return config

    @property
    def url(self) -> str:
        """The address that paths are appended to: scheme, host and the path before all others, without a slash."""
        parts = self._parts()
        return f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/')}"

    @property
    def secure(self) -> bool:
        return self._parts().scheme == "https"

    def _parts(self) -> SplitResult:
        tls = self.tls
        return _server_parts(self.server, secure=tls.has_ca or tls.has_certificate or tls.insecure)

    def with_agent(self, name: str) -> Config:
        """This configuration, with a name for what it is used for behind the user agent."""
        from ostinato.client.transport.headers import default_user_agent  # noqa: PLC0415 - it reads this module

        return replace(self, user_agent=f"{self.user_agent or default_user_agent()}/{name}")


def _load(context: str | None, path: str | Path | None, environ: Mapping[str, str]) -> Config:
    from ostinato.client.config import contexts, in_cluster, kubeconfig  # noqa: PLC0415 - they import this module

    if path is not None:
        return contexts.config_of(kubeconfig.read([Path(path)], must_exist=True), context)
    listed = environ.get("KUBECONFIG", "")
    if listed:
        merged = kubeconfig.read(kubeconfig.split_list(listed))
        if not merged.files and not merged.errors:
            log.warning("none of the files of $KUBECONFIG exists: %s", listed)
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
        "there is no cluster to speak to: "
        + (f"the files of $KUBECONFIG ({listed}) hold nothing" if listed else f"{home or '~/.kube/config'} holds none")
        + " and this process does not run in a Pod; point KUBECONFIG at a kubeconfig, or run the embedded server"
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
        found.append(f"{missing}: is missing: a client certificate needs both the certificate and its key")
    if (config.token or config.token_file) and (config.username or config.password):
        found.append("token and username/password: only one of them is allowed")
    if config.impersonate is not None and not config.impersonate.user:
        found.append("as: is empty: uid, groups and extra can be impersonated only along with a user")
    if config.exec_plugin is not None:
        found += exec_problems(config.exec_plugin)
    if config.proxy:
        found += proxy_problems(config.proxy)
    if config.qps is not None and (not 0 < config.qps < float("inf") or config.burst < 1):
        found.append(f"qps and burst: {config.qps} and {config.burst} would let nothing pass: give both above zero")
    if config.timeout is not None and not config.timeout > 0:
        found.append(f"timeout: {config.timeout} leaves no time at all; None is no limit")
    return found


def exec_problems(plugin: ExecPlugin) -> list[str]:
    found = []
    if not plugin.command:
        found.append("exec.command: is missing: name the program that prints the credentials")
    if plugin.api_version not in EXEC_API_VERSIONS:
        found.append(f"exec.apiVersion: {plugin.api_version!r} is not known: use {' or '.join(EXEC_API_VERSIONS)}")
    if plugin.interactive_mode not in INTERACTIVE_MODES:
        found.append(
            f"exec.interactiveMode: {plugin.interactive_mode!r} is not known: use {', '.join(INTERACTIVE_MODES)}"
        )
    return found


def proxy_problems(proxy: Secret) -> list[str]:
    try:
        parts = urlsplit(proxy.reveal())
        host = parts.hostname and parts.port is not False
    except ValueError:
        return ["proxy-url: is not a URL like http://10.0.0.1:3128"]
    if parts.scheme == "socks5":
        return ["proxy-url: socks5 proxies are not supported: use an http or https proxy"]
    if parts.scheme not in ("http", "https"):
        return [f"proxy-url: unsupported scheme {parts.scheme!r}, must be http or https"]
    return [] if host else ["proxy-url: has no host: it should be like http://10.0.0.1:3128"]


def server_problems(server: str) -> list[str]:
    try:
        parts = _server_parts(server, secure=True)
    except ValueError:
        parts = _NO_PARTS
    found = []
    if parts.username is not None or parts.password is not None:
        found.append("server: the address holds a user or password: give token, username and password on their own")
    elif parts.scheme not in ("http", "https") or not parts.hostname or any(map(str.isspace, server)):
        shown = "the address" if "@" in server else repr(server)  # before an @ there may be a password
        found.append(f"server: {shown} is not a URL like https://10.0.0.1:6443, nor host:port")
    return found


def _server_parts(server: str, *, secure: bool) -> SplitResult:
    """The server's address; without a scheme it is HTTPS if anything about TLS is configured."""
    parts = urlsplit(server or "localhost")
    if not parts.scheme or not parts.netloc:
        parts = urlsplit(f"{'https' if secure else 'http'}://{server or 'localhost'}")
        if parts.path not in ("", "/"):
            return _NO_PARTS  # a/b/c is no host:port
    _ = parts.port  # raises for a port that is none
    return parts._replace(query="", fragment="")


_NO_PARTS: Final = SplitResult("", "", "", "", "")
