"""Config from a context of a kubeconfig: its cluster and user, validated, with all problems reported together."""

from __future__ import annotations

import logging
import os
import unicodedata
from dataclasses import replace
from typing import Any, Final, cast

from ostinato.api.validation.names import is_dns1123_label
from ostinato.client.config.config import (
    EXEC_API_VERSIONS,
    Config,
    ExecPlugin,
    Impersonation,
    InteractiveMode,
    Tls,
    exec_problems,
    proxy_problems,
    server_problems,
)
from ostinato.client.config.entry_fields import EntryFields
from ostinato.client.config.error import ConfigError, NoConfig
from ostinato.client.config.kubeconfig import Entry, Kubeconfig
from ostinato.client.config.secret import Secret

log = logging.getLogger(__name__)

_EXEC_EXTENSION: Final = "client.authentication.k8s.io/exec"  # the cluster's extension for exec plugins
_SPACE_CONTROLS: Final = "\t\n\v\f\r"


def config_of(kubeconfig: Kubeconfig, context: str | None = None) -> Config:
    """Return the Config of a context, by default the current one. Raises ConfigError with all its problems."""
    if kubeconfig.errors:
        raise ConfigError(*kubeconfig.errors)
    name = context or kubeconfig.current_context
    files = ", ".join(map(str, kubeconfig.files)) or "kubeconfig"
    if kubeconfig.is_empty():
        raise NoConfig(f"{files}: has no cluster")
    if not name:
        raise ConfigError(f"{files}: current-context: is not set; choose {_choice(kubeconfig.contexts)}")
    chosen = kubeconfig.contexts.get(name)
    if chosen is None:
        raise ConfigError(f'{files}: context "{name}" does not exist; choose {_choice(kubeconfig.contexts)}')
    problems: list[str] = []
    fields = EntryFields(chosen, problems)
    cluster = _named(fields, "cluster", kubeconfig.clusters)
    user: Entry | None = Entry("user", "", {}, chosen.file)  # anonymous
    if fields.text("user"):
        user = _named(fields, "user", kubeconfig.users)
    namespace = fields.text("namespace")
    if namespace and is_dns1123_label(namespace):
        fields.refuse(
            "namespace", f'"{namespace}" is not a valid namespace name; use lower case letters, digits and "-"'
        )
    if cluster is None or user is None:
        raise ConfigError(*problems)
    config = _config(chosen, EntryFields(cluster, problems), EntryFields(user, problems), problems)
    if problems or config is None:
        raise ConfigError(*problems)
    return replace(config, namespace=namespace or "default")


def _config(chosen: Entry, cluster: EntryFields, user: EntryFields, problems: list[str]) -> Config | None:
    server, proxy = cluster.text("server"), Secret(cluster.text("proxy-url"))
    if not server:
        cluster.refuse("server", "is missing; set it to the URL of the API server, e.g. https://10.0.0.1:6443")
    elif "://" not in server:
        server = f"http://{server}"  # the default of kubeconfigs
    exec_plugin = _exec_plugin(user, cluster)
    impersonation = _impersonation(user)
    tls = _tls(cluster, user)
    token_file = user.path("tokenFile")
    token, username, password = user.text("token"), user.text("username"), user.text("password")
    if user.has("auth-provider"):
        user.refuse("auth-provider", "is no longer supported by Kubernetes; replace it with an exec plugin")
    if token and (username or password):
        user.refuse("token", "is set together with username or password; remove one of them")
    compression = not cluster.flag("disable-compression")
    at_cluster = [*server_problems(server), *(proxy_problems(proxy) if proxy else [])]
    problems += [f"{cluster.entry}: {found}" for found in at_cluster]
    if exec_plugin is not None:
        problems += [f"{user.entry}: {found}" for found in exec_problems(exec_plugin)]
    if problems:
        return None
    config = Config(
        server=server,
        tls=tls,
        token=Secret(token) if token else None,
        token_file=token_file,
        username=username,
        password=Secret(password) if password else None,
        exec_plugin=exec_plugin,
        impersonate=impersonation,
        proxy=proxy or None,
        compression=compression,
        source=str(chosen),
    )
    if not config.secure and (token or username or password or token_file or exec_plugin or tls.has_certificate):
        log.warning("credentials not used, server is not https user=%s server=%s", user.entry, config.url)
    if token_file is not None and not token and config.secure:
        user.existing_path("tokenFile")
    return None if problems else config


def _tls(cluster: EntryFields, user: EntryFields) -> Tls:
    key = user.data("client-key-data")
    tls = Tls(
        ca_data=cluster.data("certificate-authority-data"),
        ca_file=None if _both(cluster, "certificate-authority") else cluster.existing_path("certificate-authority"),
        server_name=cluster.text("tls-server-name"),
        insecure=cluster.flag("insecure-skip-tls-verify"),
        certificate_data=user.data("client-certificate-data"),
        certificate_file=None if _both(user, "client-certificate") else user.existing_path("client-certificate"),
        key_data=Secret(key.decode("latin-1")) if key else None,
        key_file=None if _both(user, "client-key") else user.existing_path("client-key"),
    )
    if (user.has("client-certificate") or user.has("client-certificate-data")) and not (
        user.has("client-key") or user.has("client-key-data")
    ):
        user.refuse("client-key", "is missing; a client certificate requires its key, here or in client-key-data")
    if not tls.has_certificate:  # a key without a certificate is ignored, as in client-go
        tls = replace(tls, key_data=None, key_file=None)
    if tls.insecure and tls.has_ca:
        cluster.refuse(
            "insecure-skip-tls-verify",
            "specifying a root certificates file with the insecure flag is not allowed: "
            "remove this, or certificate-authority",
        )
    return tls


def _both(fields: EntryFields, name: str) -> bool:
    """Whether a field is set both as a file and as data; the data takes precedence."""
    if not (fields.text(name) and fields.text(f"{name}-data")):
        return False
    log.warning("file and data are both set, using data entry=%s field=%s", fields.entry, name)
    return True


def _exec_plugin(user: EntryFields, cluster: EntryFields) -> ExecPlugin | None:
    if not user.has("exec"):
        return None
    fields = user.inside("exec")
    command = fields.text("command")
    mode = fields.text("interactiveMode")
    if not mode and fields.text("apiVersion") == EXEC_API_VERSIONS[1]:
        mode = "IfAvailable"  # the default of v1beta1
    if os.sep in command:
        command = str(fields.path("command"))
    env = []
    for variable in fields.listed("env"):
        if not variable.text("name"):
            variable.refuse("name", "is missing; an environment variable requires a name")
        env.append((variable.text("name"), Secret(variable.text("value"))))
    return ExecPlugin(
        command=command,
        api_version=fields.text("apiVersion"),
        args=fields.texts("args"),
        env=tuple(env),
        interactive_mode=cast("InteractiveMode", mode),  # validated below
        provide_cluster_info=fields.flag("provideClusterInfo"),
        cluster_config=_extension(cluster),
        install_hint=_printable(fields.text("installHint")),
    )


def _extension(cluster: EntryFields) -> Any:
    for extension in cluster.listed("extensions"):
        if extension.raw("name") == _EXEC_EXTENSION:
            return extension.raw("extension")
    return None


def _impersonation(user: EntryFields) -> Impersonation | None:
    name, uid, groups = user.text("as"), user.text("as-uid"), user.texts("as-groups")
    extra = user.lists("as-user-extra")
    if name:
        return Impersonation(user=name, uid=uid, groups=groups, extra=extra)
    if uid or groups or extra:
        user.refuse("as", "is missing; as-uid, as-groups and as-user-extra require a user to impersonate")
    return None


def _named(context: EntryFields, kind: str, entries: dict[str, Entry]) -> Entry | None:
    name = context.text(kind)
    found = entries.get(name) if name else None
    if found is None:
        choice = _choice(entries)
        if name:
            context.refuse(kind, f'{kind} "{name}" does not exist; add it, or choose {choice}')
        else:
            context.refuse(kind, f"is missing; choose {choice}")
    return found


def _choice(entries: dict[str, Entry]) -> str:
    shown = [f'"{name}"' for name in list(entries)[:10]]
    if len(entries) > 10:
        shown.append("…")
    return f"one of {', '.join(shown)}" if shown else "one after adding it"


def _printable(text: str) -> str:
    """Escape characters that could change the state of a terminal, as U+001B: the hint is printed."""
    return "".join([char if _is_plain(char) else f"U+{ord(char):04X}" for char in text])


def _is_plain(char: str) -> bool:
    return char in _SPACE_CONTROLS or unicodedata.category(char)[0] in "LMNPSZ"
