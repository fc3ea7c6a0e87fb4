"""The options of the API server, for `ostinato apiserver` and `ostinato up`: one group for each thing they are about.

`add_to` declares them and loads nothing of the server; `settings` checks what was given and makes `Settings` of it.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ostinato.cli.error import Failure
from ostinato.cli.options.server import audit as audit_options
from ostinato.cli.options.server import authentication as authentication_options
from ostinato.cli.options.server import authorization as authorization_options

if TYPE_CHECKING:
    from ostinato.server.admission.settings import AdmissionSettings
    from ostinato.server.flow.control import FlowSettings
    from ostinato.server.standalone import Settings


def add_to(parser: argparse.ArgumentParser) -> None:
    _add_serving(parser.add_argument_group("serving"))
    _add_storage(parser.add_argument_group("storage"))
    authentication_options.add_to(parser.add_argument_group("authentication"))
    authorization_options.add_to(parser.add_argument_group("authorization"))
    _add_admission(parser.add_argument_group("admission"))
    audit_options.add_to(parser.add_argument_group("audit"))
    _add_flow(parser.add_argument_group("priority and fairness"))


def settings(options: argparse.Namespace) -> Settings:
    """The options, checked; a Failure names the option that is wrong."""
    from ostinato.server.standalone import Settings  # noqa: PLC0415 - `ostinato --help` loads no server

    host, port = address(options.listen)
    return Settings(
        state=Path(options.state) if options.state else default_state(),
        host=host,
        port=port,
        store=_store(options),
        verifies_nodes=options.kubelet_certificate_authority != "none",
        kubelet_authority=_kubelet_authority(options),
        accept_data_loss=options.accept_data_loss,
        authentication=authentication_options.settings(options),
        authorization=authorization_options.settings(options),
        admission=_admission(options),
        audit=audit_options.settings(options),
        flow=_flow(options),
    )


# Serving


def _add_serving(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--listen",
        metavar="HOST:PORT",
        default="127.0.0.1:6443",
        help="address to listen on; port 0 chooses a free one (default: %(default)s)",
    )
    group.add_argument(
        "--kubelet-certificate-authority",
        metavar="FILE|none",
        help="certificate authority of the nodes' serving certificates; none accepts any certificate "
        "(default: the cluster's authority)",
    )


def address(listen: str) -> tuple[str, int]:
    """Host and port of a `--listen`; a Failure if it is malformed."""
    host, colon, port = listen.rpartition(":")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    elif ":" in host:
        raise Failure(f"--listen {listen}: an IPv6 address goes in brackets: [::1]:6443")
    if not colon or not (port.isascii() and port.isdigit()) or int(port) > 65535:
        raise Failure(f"--listen {listen}: want HOST:PORT, with a port from 0 to 65535")
    return host, int(port)


def _kubelet_authority(options: argparse.Namespace) -> Path | None:
    given = options.kubelet_certificate_authority
    if given in (None, "none"):
        return None
    if not Path(given).is_file():
        raise Failure(f"--kubelet-certificate-authority {given}: there is no such file")
    return Path(given)


# Storage


def _add_storage(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--state",
        metavar="DIR",
        help="directory for certificates, the store and admin.kubeconfig, created if missing "
        "(default: ostinato in $XDG_STATE_HOME or ~/.local/state)",
    )
    group.add_argument(
        "--store",
        metavar="sqlite:PATH|memory",
        default="",
        help="where objects are stored (default: sqlite:store.db in the state directory)",
    )
    group.add_argument(
        "--accept-data-loss",
        action="store_true",
        help="if the store is damaged, keep its files aside and start with what can be read of it",
    )


def default_state() -> Path:
    """The state directory if none is given."""
    home = os.environ.get("XDG_STATE_HOME")
    return (Path(home) if home else Path.home() / ".local" / "state") / "ostinato"


def _store(options: argparse.Namespace) -> str:
    store: str = options.store
    if store not in ("", "memory") and not store.startswith("sqlite:"):
        raise Failure(f"--store {store}: want sqlite:PATH or memory")
    if store == "sqlite:":
        raise Failure("--store sqlite: names no file: want sqlite:PATH")
    return store


# Priority and fairness


def _add_flow(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--enable-priority-and-fairness",
        metavar="true|false",
        default="true",
        help="queue requests by FlowSchemas and priority levels; false: limit their number only (default: %(default)s)",
    )
    group.add_argument(
        "--max-requests-inflight",
        metavar="N",
        type=int,
        default=400,
        help="seats for requests under way; together with the next one they are divided among the priority levels "
        "(default: %(default)s)",
    )
    group.add_argument(
        "--max-mutating-requests-inflight",
        metavar="N",
        type=int,
        default=200,
        help="further seats; without priority and fairness, those of requests that write (default: %(default)s)",
    )


def _flow(options: argparse.Namespace) -> FlowSettings:
    from ostinato.server.flow.control import FlowSettings  # noqa: PLC0415 - `ostinato --help` loads no server

    most, mutating = options.max_requests_inflight, options.max_mutating_requests_inflight
    if options.enable_priority_and_fairness not in ("true", "false"):
        raise Failure(f"--enable-priority-and-fairness {options.enable_priority_and_fairness}: want true or false")
    enabled = options.enable_priority_and_fairness == "true"
    if min(most, mutating) < 0:
        raise Failure("--max-requests-inflight and --max-mutating-requests-inflight: want 0 or more")
    if enabled and most + mutating == 0:
        raise Failure("--max-requests-inflight and --max-mutating-requests-inflight: their sum has to be positive")
    return FlowSettings(enabled=enabled, most=most, most_mutating=mutating)


# Admission


def _add_admission(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--enable-admission-plugins",
        metavar="NAME,...",
        action="append",
        default=[],
        help="admission plugins to enable besides those that are on by default, by kube-apiserver's names",
    )
    group.add_argument(
        "--disable-admission-plugins",
        metavar="NAME,...",
        action="append",
        default=[],
        help="admission plugins to disable that are on by default",
    )
    group.add_argument(
        "--admission-control-config-file",
        metavar="FILE",
        help="AdmissionConfiguration: the plugins' configuration",
    )
    for what, taint in (("not-ready", "notReady:NoExecute"), ("unreachable", "unreachable:NoExecute")):
        group.add_argument(
            f"--default-{what}-toleration-seconds",
            metavar="SECONDS",
            type=int,
            default=300,
            help=f"tolerationSeconds for {taint} of Pods that do not tolerate it (default: %(default)s)",
        )


def _admission(options: argparse.Namespace) -> AdmissionSettings:
    from ostinato.server.admission.catalogue import PluginNameError, enabled  # noqa: PLC0415
    from ostinato.server.admission.settings import AdmissionSettings  # noqa: PLC0415

    enable, disable = _listed(options.enable_admission_plugins), _listed(options.disable_admission_plugins)
    try:
        plugins = enabled(enable, disable)
    except PluginNameError as error:
        raise Failure(f"--{error}") from None
    return AdmissionSettings(
        enabled=enable,
        disabled=disable,
        configuration=_admission_configuration(options.admission_control_config_file, plugins),
        not_ready_toleration_seconds=options.default_not_ready_toleration_seconds,
        unreachable_toleration_seconds=options.default_unreachable_toleration_seconds,
    )


def _listed(values: list[str]) -> tuple[str, ...]:
    return tuple(name for names in values for name in names.split(",") if name)


def _admission_configuration(file: str | None, plugins: list[str]) -> dict[str, Any]:
    if file is None and not {"EventRateLimit", "ImagePolicyWebhook"}.intersection(plugins):
        return {}
    from ostinato.server.admission.configuration import ConfigurationError, read  # noqa: PLC0415 - where it is used

    try:
        return read(Path(file) if file else None, plugins)
    except ConfigurationError as error:
        raise Failure(str(error)) from None
