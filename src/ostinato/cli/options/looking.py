"""Options of `ostinato top`, `ostinato tree`, `ostinato why` and `ostinato page`."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from ostinato.cli.options.cluster import add_kubeconfig, add_state

if TYPE_CHECKING:
    from pathlib import Path

    from ostinato.cli.commands.tree import Target
    from ostinato.cli.options.parsed import Commands

_TOP = """Show the queues of all controllers, live: depth, busy workers, rate, latencies, errors, retries, the wait of
the oldest key, and alarms. Asks the page of a running `ostinato up --page` or `ostinato run --page`. Prints lines into
a pipe."""

_TREE = """Show an object and all that it owns, with readiness. Asks a running page, or the cluster of a kubeconfig."""

_WHY = """Show why an object changed last: the chain of causes, from this change back to the edit that began it. Without
a running page, shows who wrote which fields."""

_PAGE = """Print a new URL of a running page, for another browser. Its token works once; one that was printed before and
not used does not work any more."""


def add_to(commands: Commands) -> None:
    top = commands.add_parser("top", help="show the queues of controllers, live", description=_TOP)
    top.set_defaults(command=_top, prog=top.prog)
    _add_page(top)
    top.add_argument(
        "--interval", metavar="SECONDS", type=float, default=1.0, help="between samples (default: %(default)g)"
    )
    top.add_argument("--count", metavar="N", type=int, default=0, help="end after so many samples (default: never)")
    _add_target(commands.add_parser("tree", help="show an object and what it owns", description=_TREE), _tree)
    _add_target(commands.add_parser("why", help="show why an object changed", description=_WHY), _why)
    page = commands.add_parser("page", help="print a new URL of a running page", description=_PAGE)
    page.set_defaults(command=_page, prog=page.prog)
    _add_page(page)


def _add_page(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--socket", metavar="FILE", help="Unix socket of the page (default: of the state directory, or the only one)"
    )
    add_state(parser)


def _add_target(parser: argparse.ArgumentParser, command: object) -> None:
    parser.set_defaults(command=command, prog=parser.prog)
    parser.add_argument("kind", metavar="KIND", help="kind or resource, as for kubectl: deployment, deploy, pods")
    parser.add_argument("name", metavar="NAME", help="name of the object")
    parser.add_argument("-n", "--namespace", metavar="NS", help="namespace (default: that of the context, or default)")
    _add_page(parser)
    add_kubeconfig(parser)


def _top(options: argparse.Namespace) -> int:
    from ostinato.cli.commands import top  # noqa: PLC0415 - loaded when the command is called

    return top.top(options.socket, _state(options), max(0.1, options.interval), options.count)


def _tree(options: argparse.Namespace) -> int:
    from ostinato.cli.commands import tree  # noqa: PLC0415

    return tree.tree(_target(options))


def _why(options: argparse.Namespace) -> int:
    from ostinato.cli.commands import why  # noqa: PLC0415

    return why.why(_target(options))


def _page(options: argparse.Namespace) -> int:
    from ostinato.cli.commands import page  # noqa: PLC0415

    return page.page(options.socket, _state(options))


def _target(options: argparse.Namespace) -> Target:
    from ostinato.cli.commands.tree import Target  # noqa: PLC0415

    return Target(
        options.kind,
        options.name,
        options.namespace,
        options.kubeconfig,
        options.context,
        options.socket,
        _state(options),
    )


def _state(options: argparse.Namespace) -> Path:
    from ostinato.cli.options.server.storage import state  # noqa: PLC0415

    return state(options)
