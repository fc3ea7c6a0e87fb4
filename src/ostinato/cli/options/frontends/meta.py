"""Options of `ostinato meta`."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from ostinato.cli.options.parsed import values
from ostinato.cli.options.run import add_run_options

if TYPE_CHECKING:
    from ostinato.cli.options.parsed import Commands

_DESCRIPTION = """Run CompositeControllers and DecoratorControllers of metacontroller.k8s.io with their HTTP hooks,
until SIGINT or SIGTERM: those of the files, or without files those in the cluster, as they are created, changed and
deleted."""


def add_to(commands: Commands) -> None:
    parser = commands.add_parser(
        "meta", help="run CompositeControllers and DecoratorControllers with HTTP hooks", description=_DESCRIPTION
    )
    parser.set_defaults(command=_meta, prog=parser.prog)
    parser.add_argument(
        "files", metavar="FILE", nargs="*", help="YAML or JSON file with definitions; other documents are skipped"
    )
    parser.add_argument("--follow", action="store_true", help="with files, also run the definitions in the cluster")
    parser.add_argument(
        "--target-label-selector",
        metavar="SELECTOR",
        default="",
        help="run only definitions in the cluster with these labels (default: all)",
    )
    parser.add_argument(
        "--resolve",
        metavar="HOST[:PORT]=ADDRESS[:PORT]",
        action="append",
        default=[],
        help="connect to this address for hooks of a host, such as webhook.default=127.0.0.1:8000; repeatable",
    )
    parser.add_argument(
        "--workers", metavar="N", type=int, default=5, help="parents of a controller synced concurrently (default: 5)"
    )
    parser.add_argument(
        "--skip-crds", action="store_true", help="do not create or update metacontroller's CustomResourceDefinitions"
    )
    add_run_options(parser)


def _meta(options: argparse.Namespace) -> int:
    from ostinato.cli.commands.frontends import meta as command  # noqa: PLC0415 - loaded when the command is called

    given = values(options)
    own = {name: given.pop(name) for name in ("follow", "target_label_selector", "resolve", "workers", "skip_crds")}
    command.meta(command.MetaOptions(**own), given)
    return 0
