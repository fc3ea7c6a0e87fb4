"""The commands and their options. What they do is in a module each.

The standard library's argparse, not typer: of the half second in which `ostinato apiserver` is to be ready, typer took
130 ms (it validates options with pydantic), argparse takes ten.
"""

from __future__ import annotations

import argparse
import gc
import sys
from collections.abc import Sequence


def run(arguments: Sequence[str] | None = None) -> int:
    """Do what the command line says; the exit code."""
    options = _parser().parse_args(arguments)
    code: int = options.command(options)
    return code


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="ostinato",
        description="Kubernetes controllers in Python, and the control plane to run them against, in one process.",
    )
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    _add_apiserver(commands.add_parser("apiserver", help="run an API server", description=_APISERVER))
    return parser


_APISERVER = """Run an API server: bare, without controllers, scheduler or nodes. It says when it is ready, and runs
until it is interrupted or terminated."""


def _add_apiserver(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(command=_apiserver)
    parser.add_argument(
        "--listen",
        metavar="HOST:PORT",
        default="127.0.0.1:6443",
        help="where to listen; port 0 is any that is free (default: %(default)s)",
    )
    parser.add_argument(
        "--state",
        metavar="DIR",
        help="directory for certificates, the store and admin.kubeconfig, made if it is not there "
        "(default: ostinato in $XDG_STATE_HOME or ~/.local/state)",
    )
    parser.add_argument(
        "--store",
        metavar="sqlite:PATH|memory",
        default="",
        help="where objects are kept (default: sqlite:store.db in the state directory)",
    )
    parser.add_argument(
        "--token-auth-file", metavar="CSV", help='bearer tokens, a line each: token,user,uid,"group1,group2"'
    )


def _apiserver(options: argparse.Namespace) -> int:
    gc.disable()  # until the server runs: what is loaded stays, and looking for garbage in it takes a tenth of the time

    from ostinato.cli import apiserver  # noqa: PLC0415 - `ostinato --help` loads no server

    try:
        apiserver.run(apiserver.settings(options.listen, options.state, options.store, options.token_auth_file))
    except apiserver.Failure as error:
        sys.stderr.write(f"ostinato apiserver: {error}\n")
        return 1
    finally:
        gc.enable()
    return 0
