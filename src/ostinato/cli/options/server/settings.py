"""Options of the API server, for `ostinato apiserver` and `ostinato up`, in groups.

- `add_to` declares the options and does not import the server; `add_kube_apiserver_options` only those that
  kube-apiserver has too.
- `settings` checks the parsed options and returns the server's `Settings`.
"""

from __future__ import annotations

import argparse
import ipaddress
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ostinato.cli.error import CommandError
from ostinato.cli.options.server import audit as audit_options
from ostinato.cli.options.server import authentication as authentication_options
from ostinato.cli.options.server import authorization as authorization_options
from ostinato.cli.options.server import service_ranges
from ostinato.cli.options.server import storage as storage_options

if TYPE_CHECKING:
    from ostinato.server.access.authority import Pair
    from ostinato.server.admission.settings import AdmissionSettings
    from ostinato.server.faults.rules import Rule
    from ostinato.server.flow.control import FlowSettings
    from ostinato.server.http.serving_certificates import KeyPairFiles, TlsSettings
    from ostinato.server.standalone import Settings


def add_to(parser: argparse.ArgumentParser) -> None:
    serving = parser.add_argument_group("serving")
    serving.add_argument(
        "--listen",
        metavar="HOST:PORT",
        default="127.0.0.1:6443",
        help="address to listen on; port 0 chooses a free one (default: %(default)s)",
    )
    serving.add_argument(
        "--advertise-address",
        metavar="IP",
        default="",
        help="address at which Pods and other machines reach this server, in the endpoints of the Service kubernetes "
        "and in the serving certificate (default: that of --listen)",
    )
    serving.add_argument(
        "--faults",
        metavar="FILE",
        help="deal the faults of these rules to clients, for tests of operators; POST /faults replaces them",
    )
    add_kube_apiserver_options(parser, serving)
    storage_options.add_to(parser.add_argument_group("storage"))


def add_kube_apiserver_options(parser: argparse.ArgumentParser, serving: argparse._ArgumentGroup) -> None:
    _add_serving(serving)
    service_ranges.add_to(serving)
    authentication_options.add_to(parser.add_argument_group("authentication"))
    authorization_options.add_to(parser.add_argument_group("authorization"))
    _add_admission(parser.add_argument_group("admission"))
    audit_options.add_to(parser.add_argument_group("audit"))
    _add_flow(parser.add_argument_group("priority and fairness"))
    parser.add_argument_group("encryption").add_argument(
        "--encryption-provider-config",
        metavar="FILE",
        help="encryption of stored objects (apiserver.config.k8s.io/v1 EncryptionConfiguration; default: none)",
    )


def _faults(path: str | None) -> Sequence[Rule] | None:
    if path is None:
        return None
    from ostinato.api.wire.yaml import decode_yaml_documents  # noqa: PLC0415 - only with --faults
    from ostinato.server.faults.rules import RulesError, parse  # noqa: PLC0415

    try:
        documents = [each for each in decode_yaml_documents(Path(path).read_bytes()) if each]
        return [rule for each in documents for rule in parse(each)]
    except (OSError, ValueError, RulesError) as error:
        raise CommandError(f"--faults {path}: {error}") from None


def settings(options: argparse.Namespace) -> Settings:
    """Return the checked options; CommandError names the invalid option."""
    from ostinato.server.standalone import Settings  # noqa: PLC0415 - `ostinato --help` does not load the server

    host, port = address(options.listen)
    return Settings(
        host=host,
        port=port,
        advertise_address=_advertised(options),
        service_ranges=service_ranges.parse(options.service_cluster_ip_range),
        tls=_tls(options),
        **storage_options.settings(options),
        verifies_nodes=options.kubelet_certificate_authority != "none",
        kubelet_authority=_kubelet_authority(options),
        encryption_config=Path(options.encryption_provider_config) if options.encryption_provider_config else None,
        authentication=authentication_options.settings(options),
        authorization=authorization_options.settings(options),
        admission=_admission(options),
        audit=audit_options.settings(options),
        flow=_flow(options),
        faults=_faults(getattr(options, "faults", None)),
        proxy_client=_proxy_client(options),
        flags=_flags(options),
    )


def _flags(options: argparse.Namespace) -> dict[str, str]:
    """The values of all options, as /flagz shows them."""
    return {name.replace("_", "-"): _shown(value) for name, value in vars(options).items() if not callable(value)}


def _shown(value: object) -> str:
    if isinstance(value, list | tuple):
        return f"[{','.join(map(_shown, value))}]"
    return "" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


# Serving


def _add_serving(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--tls-cert-file",
        metavar="PEM",
        help="serving certificate, with intermediates after it, reloaded when the file changes "
        "(default: signed by the server's own authority)",
    )
    group.add_argument("--tls-private-key-file", metavar="PEM", help="private key of --tls-cert-file")
    group.add_argument(
        "--tls-sni-cert-key",
        metavar="CERT,KEY[:NAME,...]",
        action="append",
        default=[],
        help="further serving certificate and key, for clients that ask for one of the names "
        "(*.example.com matches one label; default: the names in the certificate); repeatable",
    )
    group.add_argument(
        "--kubelet-certificate-authority",
        metavar="FILE|none",
        help="certificate authority of the nodes' serving certificates; none accepts any certificate "
        "(default: the cluster's authority)",
    )
    group.add_argument(
        "--proxy-client-cert-file",
        metavar="PEM",
        help="client certificate for requests to extension API servers (default: signed by an authority of its own)",
    )
    group.add_argument("--proxy-client-key-file", metavar="PEM", help="private key of --proxy-client-cert-file")


def address(listen: str) -> tuple[str, int]:
    """Return host and port of `--listen`; CommandError if it is malformed."""
    host, colon, port = listen.rpartition(":")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    elif ":" in host:
        raise CommandError(f"--listen {listen}: an IPv6 address needs brackets: [::1]:6443")
    if not colon or not (port.isascii() and port.isdigit()) or int(port) > 65535:
        raise CommandError(f"--listen {listen}: want HOST:PORT, with a port from 0 to 65535")
    return host, int(port)


def _advertised(options: argparse.Namespace) -> str:
    """The address of the Service `kubernetes`, whose first cluster IP has the same family."""
    given: str = options.advertise_address
    if not given:
        return ""
    try:
        found = ipaddress.ip_address(given)
    except ValueError:
        raise CommandError(f"--advertise-address {given}: want an IP address") from None
    first = service_ranges.parse(options.service_cluster_ip_range)[0]
    if found.version != first.version:
        raise CommandError(
            f"--advertise-address {given}: --service-cluster-ip-range {first}: want an address of the same IP family "
            "as the first range"
        )
    return str(found)


def _proxy_client(options: argparse.Namespace) -> Pair | None:
    from ostinato.server.access.authority import Pair  # noqa: PLC0415 - see `settings`

    certificate, key = options.proxy_client_cert_file, options.proxy_client_key_file
    if bool(certificate) != bool(key):
        given, missing = ("--proxy-client-cert-file", "--proxy-client-key-file")[:: 1 if certificate else -1]
        raise CommandError(f"{given} needs {missing}")
    return Pair(Path(certificate), Path(key)) if certificate else None


def _tls(options: argparse.Namespace) -> TlsSettings:
    from ostinato.server.http.serving_certificates import KeyPairFiles, TlsSettings  # noqa: PLC0415 - see `settings`

    certificate, key = options.tls_cert_file, options.tls_private_key_file
    if bool(certificate) != bool(key):
        given, missing = ("--tls-cert-file", "--tls-private-key-file")[:: 1 if certificate else -1]
        raise CommandError(f"{given} needs {missing}")
    pair = KeyPairFiles(Path(certificate), Path(key)) if certificate else None
    return TlsSettings(key_pair=pair, sni=tuple(map(_sni, options.tls_sni_cert_key)))


def _sni(text: str) -> KeyPairFiles:
    from ostinato.server.http.serving_certificates import KeyPairFiles  # noqa: PLC0415 - see `settings`

    files, colon, names = text.partition(":")
    certificate, _, key = files.partition(",")
    patterns = tuple(filter(None, names.split(",")))
    if not certificate or not key or "," in key or (colon and not patterns):
        raise CommandError(f"--tls-sni-cert-key {text}: want CERT,KEY or CERT,KEY:NAME,...")
    return KeyPairFiles(Path(certificate), Path(key), patterns)


def _kubelet_authority(options: argparse.Namespace) -> Path | None:
    given = options.kubelet_certificate_authority
    if given in (None, "none"):
        return None
    if not Path(given).is_file():
        raise CommandError(f"--kubelet-certificate-authority {given}: no such file")
    return Path(given)


# Priority and fairness


def _add_flow(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--enable-priority-and-fairness",
        metavar="true|false",
        nargs="?",
        const="true",
        default="true",
        help="queue requests by FlowSchema and priority level; false: only limit their number (default: %(default)s)",
    )
    group.add_argument(
        "--max-requests-inflight",
        metavar="N",
        type=int,
        default=400,
        help="maximum number of non-mutating requests in flight; with priority and fairness, the sum of this and the "
        "next limit is divided among the priority levels (default: %(default)s)",
    )
    group.add_argument(
        "--max-mutating-requests-inflight",
        metavar="N",
        type=int,
        default=200,
        help="maximum number of mutating requests in flight (default: %(default)s)",
    )


def _flow(options: argparse.Namespace) -> FlowSettings:
    from ostinato.server.flow.control import FlowSettings  # noqa: PLC0415 - `ostinato --help` does not load the server

    most, mutating = options.max_requests_inflight, options.max_mutating_requests_inflight
    if options.enable_priority_and_fairness not in ("true", "false"):
        raise CommandError(f"--enable-priority-and-fairness {options.enable_priority_and_fairness}: want true or false")
    enabled = options.enable_priority_and_fairness == "true"
    if min(most, mutating) < 0:
        raise CommandError("--max-requests-inflight and --max-mutating-requests-inflight: want 0 or more")
    if enabled and most + mutating == 0:
        raise CommandError("--max-requests-inflight and --max-mutating-requests-inflight: their sum must be positive")
    return FlowSettings(enabled=enabled, most=most, most_mutating=mutating)


# Admission


def _add_admission(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--enable-admission-plugins",
        metavar="NAME,...",
        action="append",
        default=[],
        help="admission plugins to enable in addition to the default ones, by kube-apiserver's names",
    )
    group.add_argument(
        "--disable-admission-plugins",
        metavar="NAME,...",
        action="append",
        default=[],
        help="default admission plugins to disable",
    )
    group.add_argument(
        "--admission-control-config-file",
        metavar="FILE",
        help="AdmissionConfiguration file with the configuration of plugins",
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
        raise CommandError(f"--{error}") from None
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
    from ostinato.server.admission.configuration import ConfigurationError, read  # noqa: PLC0415 - only for these plugins

    try:
        return read(Path(file) if file else None, plugins)
    except ConfigurationError as error:
        raise CommandError(str(error)) from None
