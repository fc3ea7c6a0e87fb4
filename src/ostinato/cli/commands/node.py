"""`ostinato node`: this machine as a node of any cluster, until it is told to stop."""

from __future__ import annotations

import argparse
import logging
import re
import socket
from pathlib import Path

from ostinato.api.validation import names
from ostinato.cli.commands.serve import run
from ostinato.cli.error import Failure
from ostinato.cli.options.server.settings import address, default_state
from ostinato.client.config.config import Config
from ostinato.client.config.error import ConfigError
from ostinato.manager import configure_logging
from ostinato.plane.network.services import SERVICES
from ostinato.plane.node.credentials.certificates import CertificateError
from ostinato.plane.node.credentials.cluster_discovery import DiscoveryError
from ostinato.plane.node.joined_node import JoinedNode, Joining, JoinSettings
from ostinato.plane.node.runtimes import ProcessOptions, UnusableRuntime

_HASH = re.compile(r"sha256:[0-9a-f]{64}")


def node(options: argparse.Namespace) -> None:
    """Join until SIGTERM or SIGINT; a Failure if that cannot begin."""
    config, joining = _cluster(options)
    host, port = address(options.listen)
    name = options.name or socket.gethostname().lower()
    if wrong := names.is_dns1123_subdomain(name):
        raise Failure(f"--name {name}: {'; '.join(wrong)}")
    try:
        settings = JoinSettings(
            name=name,
            state=Path(options.state) if options.state else default_state() / "node",
            runtime=options.runtime,
            host=host,
            port=port,
            containerd=Path(options.containerd),
            processes=ProcessOptions(
                exposed=[Path(each) for each in options.expose], insecure=options.insecure_processes
            ),
            services=SERVICES not in options.without,
            joining=joining,
        )
    except ValueError as error:
        raise Failure(str(error)) from None
    configure_logging(level=logging.WARNING)
    try:
        run(lambda world: JoinedNode(world, config, settings), f"ostinato node {name}", options.listen)
    except (UnusableRuntime, DiscoveryError, CertificateError) as error:
        raise Failure(str(error)) from error


def _cluster(options: argparse.Namespace) -> tuple[Config | None, Joining]:
    """The kubeconfig with which a node joins, or None and how it does by a bootstrap token."""
    if not options.server and not options.token:
        try:
            return Config.load(context=options.context, path=options.kubeconfig), Joining()
        except ConfigError as error:
            raise Failure(str(error)) from None
    if options.kubeconfig or options.context:
        raise Failure("--server and --token join by a bootstrap token, --kubeconfig by what it holds: give one of them")
    if not (options.server and options.token):
        raise Failure(f"--{'token' if options.server else 'server'} is missing: both are needed to join by a token")
    if not options.ca_cert_hash:
        raise Failure("--ca-cert-hash is missing: without it nothing tells the cluster from one that pretends to be it")
    for text in options.ca_cert_hash:
        if not _HASH.fullmatch(text):
            raise Failure(f"--ca-cert-hash {text}: want sha256: and 64 hexadecimal digits")
    server, hashes = options.server, tuple(options.ca_cert_hash)
    if not server.startswith("https://"):
        raise Failure(f"--server {server}: want an https:// URL")
    return None, Joining(server=server, token=options.token, hashes=hashes, patience=300.0, required=True)
