"""Options of `ostinato hooks`."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from ostinato.cli.options.parsed import values
from ostinato.cli.options.run import add_run_options

if TYPE_CHECKING:
    from ostinato.cli.options.parsed import Commands

_DESCRIPTION = """Run the hooks of a directory, as shell-operator does, until SIGINT or SIGTERM: executables that print
their configuration with --config, and Python files with @hook functions, which run in this process."""
_OWN = (
    "directory",
    "reload",
    "strict",
    "webhook_service",
    "webhook_url",
    "webhook_port",
    "webhook_name",
    "log_proxy_hook_json",
    "keep_tmp_files",
    "tmp_dir",
)


def add_to(commands: Commands) -> None:
    parser = commands.add_parser("hooks", help="run a directory of shell-operator hooks", description=_DESCRIPTION)
    parser.set_defaults(command=_hooks, prog=parser.prog)
    parser.add_argument(
        "directory",
        metavar="DIR",
        nargs="?",
        help="directory of the hooks (default: $SHELL_OPERATOR_HOOKS_DIR, or hooks)",
    )
    parser.add_argument("--reload", action="store_true", help="load hooks again when their files change")
    parser.add_argument(
        "--strict", action="store_true", help="stop if a hook cannot be loaded (default: the others run)"
    )
    webhooks = parser.add_argument_group("webhooks of hooks")
    webhooks.add_argument(
        "--webhook-service",
        metavar="NAMESPACE/NAME",
        default="",
        help="Service by which API servers reach this process (default: 127.0.0.1)",
    )
    webhooks.add_argument("--webhook-url", metavar="URL", default="", help="https URL instead of a Service")
    webhooks.add_argument(
        "--webhook-port", metavar="PORT", type=int, default=9680, help="port to listen on (default: 9680)"
    )
    webhooks.add_argument(
        "--webhook-name",
        metavar="NAME",
        default="ostinato-hooks",
        help="name of the webhook configurations (default: ostinato-hooks)",
    )
    runs = parser.add_argument_group("runs of hooks")
    runs.add_argument(
        "--log-proxy-hook-json", action="store_true", help="pass lines of hooks that are JSON on as they are"
    )
    runs.add_argument("--keep-tmp-files", action="store_true", help="do not remove the files of runs")
    runs.add_argument("--tmp-dir", metavar="DIR", default="", help="directory for them (default: a new one)")
    add_run_options(parser)


def _hooks(options: argparse.Namespace) -> int:
    from ostinato.cli.commands.frontends import hooks as command  # noqa: PLC0415 - loaded when the command is called

    given = values(options)
    own = {name: given.pop(name) for name in _OWN}
    command.hooks(command.HooksCommand(**own), given)
    return 0
