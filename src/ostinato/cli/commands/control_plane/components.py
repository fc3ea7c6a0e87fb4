"""`ostinato controllers` and `ostinato scheduler`: components of the control plane against any API server."""

from __future__ import annotations

import argparse
from pathlib import Path

from ostinato.cli.error import CommandError
from ostinato.cli.options.control_plane.pod_ranges import pod_ranges_of
from ostinato.cli.options.control_plane.signing import signing_of
from ostinato.cli.options.server import service_ranges
from ostinato.cli.reporting import check_endpoints, command_errors, metrics_of
from ostinato.client.config.config import Config
from ostinato.manager import ClientOptions, LeaderElection, Manager, ReportingOptions
from ostinato.plane import scheduler
from ostinato.plane.controllers import FIELD_MANAGER, Options, add_controllers, ignore_warning


def run(options: argparse.Namespace) -> None:
    """Run until SIGTERM or SIGINT; CommandError if the component cannot start or fails."""
    check_endpoints(options)
    with command_errors():
        _manager(options).run()


def _manager(options: argparse.Namespace) -> Manager:
    is_scheduler = options.component == "scheduler"
    name = "kube-scheduler" if is_scheduler else FIELD_MANAGER
    election = None if options.no_leader_election else LeaderElection(name=name, namespace="kube-system")
    manager = Manager(
        Config.load(context=options.context, path=options.kubeconfig),
        leader_election=election,
        health=options.health,
        metrics=metrics_of(options),
        profiler=options.profiler,
        client=ClientOptions(field_manager=name, warn=ignore_warning),
        reporting=ReportingOptions(core_events=not is_scheduler),
    )
    if is_scheduler:
        scheduler.add_to(manager)
    else:
        _add_controllers(manager, options)
    return manager


def _add_controllers(manager: Manager, options: argparse.Namespace) -> None:
    def path(text: str | None) -> Path | None:
        return Path(text).absolute() if text else None

    chosen = Options(
        ca_certificate=path(options.ca_certificate),
        ca_key=path(options.ca_key),
        signing=signing_of(options),
        volumes=path(options.volumes),
        account_key=path(options.service_account_private_key_file),
        pod_ranges=pod_ranges_of(options),
        service_ranges=service_ranges.parse(options.service_cluster_ip_range),
    )
    try:
        add_controllers(manager, chosen, without=options.without)
    except ValueError as error:
        raise CommandError(str(error)) from None
