"""The settings of a control plane, from the options of `ostinato up`."""

from __future__ import annotations

import argparse
from pathlib import Path

from ostinato.cli.error import CommandError
from ostinato.cli.options.control_plane import ip_families
from ostinato.cli.options.control_plane.cluster_dns import cluster_dns
from ostinato.cli.options.control_plane.signing import signing_of
from ostinato.cli.options.server import settings as server_options
from ostinato.plane.node import pod_networking
from ostinato.plane.node.runtimes import ProcessOptions
from ostinato.plane.parts import PlaneSettings


def plane_settings(options: argparse.Namespace) -> PlaneSettings:
    """Return the checked options; CommandError names the invalid one."""
    try:
        return PlaneSettings(
            server=server_options.settings(options),
            without=frozenset(options.without),
            nodes=options.nodes,
            runtime=options.runtime,
            containerd=Path(options.containerd),
            processes=ProcessOptions(
                exposed=[Path(each) for each in options.expose],
                insecure=options.insecure_processes,
                network=pod_networking.parse(options.pod_network_cidr, dual=ip_families.is_dual_stack(options)),
            ),
            dns=cluster_dns(options),
            signing=signing_of(options),
            pod_ranges=ip_families.simulated_pod_ranges(options),
            csi=tuple(Path(each).absolute() for each in options.csi_socket),
        )
    except ValueError as error:
        raise CommandError(str(error)) from None
