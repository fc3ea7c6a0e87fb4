"""`ostinato node`: this machine as a node of any cluster, until it is told to stop."""

from __future__ import annotations

import argparse
import logging
import socket
from pathlib import Path

from ostinato.api import names
from ostinato.cli.failure import Failure
from ostinato.cli.server_options import address, default_state
from ostinato.cli.serving import run
from ostinato.client.config.config import Config
from ostinato.client.config.error import ConfigError
from ostinato.manager import configure_logging
from ostinato.plane.node.joined import JoinedNode, JoinSettings
from ostinato.plane.node.runtimes import ProcessOptions, UnusableRuntime
from ostinato.plane.services import SERVICES


def node(options: argparse.Namespace) -> None:
    """Join until SIGTERM or SIGINT; a Failure if that cannot begin."""
    try:
        config = Config.load(context=options.context, path=options.kubeconfig)
    except ConfigError as error:
        raise Failure(str(error)) from None
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
        )
    except ValueError as error:
        raise Failure(str(error)) from None
    configure_logging(level=logging.WARNING)
    try:
        run(lambda world: JoinedNode(world, config, settings), f"ostinato node {name}", options.listen)
    except UnusableRuntime as error:
        raise Failure(str(error)) from error
