"""`ostinato node`: run the node agent that joins this machine to a cluster."""

from __future__ import annotations

import argparse
import logging
import re
import socket
from pathlib import Path

from ostinato.api.validation import names
from ostinato.cli.commands.control_plane.serve import run
from ostinato.cli.error import CommandError
from ostinato.cli.options.control_plane.cluster_dns import cluster_dns
from ostinato.cli.options.server import service_ranges
from ostinato.cli.options.server.settings import address
from ostinato.cli.options.server.storage import default_state
from ostinato.client.config.config import Config
from ostinato.client.config.error import ConfigError
from ostinato.manager import configure_logging
from ostinato.plane.network.services import SERVICES
from ostinato.plane.node import pod_networking
from ostinato.plane.node.credentials.certificate_manager import CertificateError
from ostinato.plane.node.credentials.cluster_discovery import DiscoveryError
from ostinato.plane.node.joined_node import JoinedNode, Joining, JoinSettings
from ostinato.plane.node.runtimes import ProcessOptions, UnusableRuntime

_HASH = re.compile(r"sha256:[0-9a-f]{64}")


def node(options: argparse.Namespace) -> None:
    """Run the node agent until SIGTERM or SIGINT; CommandError if it cannot start."""
    config, joining = _cluster(options)
    host, port = address(options.listen)
    name = options.name or socket.gethostname().lower()
    if problems := names.is_dns1123_subdomain(name):
        raise CommandError(f"--name {name}: {'; '.join(problems)}")
    ranges = service_ranges.parse(options.service_cluster_ip_range)
    try:
        settings = JoinSettings(
            name=name,
            state=Path(options.state) if options.state else default_state() / "node",
            runtime=options.runtime,
            host=host,
            port=port,
            containerd=Path(options.containerd),
            processes=ProcessOptions(
                exposed=[Path(each) for each in options.expose],
                insecure=options.insecure_processes,
                network=pod_networking.parse(options.pod_network_cidr, dual=len(ranges) == 2),
            ),
            services=SERVICES not in options.without,
            dns_address=options.cluster_dns or "",
            dns_domain=options.cluster_domain,
            service_ranges=ranges,
            joining=joining,
        )
        cluster_dns(options)  # valid
    except ValueError as error:
        raise CommandError(str(error)) from None
    configure_logging(level=logging.WARNING)
    try:
        run(lambda world: JoinedNode(world, config, settings), f"ostinato node {name}", options.listen)
    except (UnusableRuntime, DiscoveryError, CertificateError) as error:
        raise CommandError(str(error)) from error


def _cluster(options: argparse.Namespace) -> tuple[Config | None, Joining]:
    """Return the kubeconfig's configuration, or None and the settings to join with a bootstrap token."""
    if not options.server and not options.token:
        try:
            return Config.load(context=options.context, path=options.kubeconfig), Joining()
        except ConfigError as error:
            raise CommandError(str(error)) from None
    if options.kubeconfig or options.context:
        raise CommandError("--server and --token exclude --kubeconfig and --context; give one or the other")
    if not (options.server and options.token):
        raise CommandError(
            f"--{'token' if options.server else 'server'} is missing; a bootstrap token needs both --server and --token"
        )
    if not options.ca_cert_hash:
        raise CommandError("--ca-cert-hash is missing; without it the node cannot authenticate the cluster")
    for text in options.ca_cert_hash:
        if not _HASH.fullmatch(text):
            raise CommandError(f"--ca-cert-hash {text}: want sha256: and 64 hexadecimal digits")
    server, hashes = options.server, tuple(options.ca_cert_hash)
    if not server.startswith("https://"):
        raise CommandError(f"--server {server}: want an https:// URL")
    return None, Joining(server=server, token=options.token, hashes=hashes, timeout=300.0, required=True)
