"""Options of `ostinato init`, `add` and `upgrade-template`."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ostinato.cli.options.parsed import Commands

_INIT = """Generate a project for an operator: a package with a kind and its controller, tests, a Dockerfile, a
Makefile, a workflow for CI, samples and settings of the deployment. Existing files are not replaced without --force."""

_ADD = """Add a kind, a controller or webhooks to the project in the working directory. Files that change are merged:
your edits are kept; where they are in the way, both versions are kept between conflict markers, and the exit code
is 1."""

_UPGRADE = """Merge the newest template into the project in the working directory: what the recorded version generated,
what you have made of it, and what the newest version generates. Your edits are kept; where they are in the way, both
versions are kept between conflict markers and the exit code is 1."""


def add_to(commands: Commands) -> None:
    _add_init(commands)
    _add_add(commands)
    _add_upgrade(commands)


def _add_init(commands: Commands) -> None:
    parser = commands.add_parser("init", help="generate a project for an operator", description=_INIT)
    parser.set_defaults(command=_init, prog=parser.prog)
    parser.add_argument("name", metavar="NAME", help="name of the project: lower-case letters, digits and dashes")
    parser.add_argument(
        "--template",
        metavar="FORM",
        default="default",
        help="form of the operator: default (controllers), handlers, hooks, composite, plan, chart or roles "
        "(default: %(default)s)",
    )
    parser.add_argument("--directory", metavar="DIR", help="directory of the project (default: NAME)")
    parser.add_argument("--package", default="", help="Python package (default: NAME with underscores)")
    parser.add_argument("--group", default="", help="API group of the first kind (default: NAME.example.dev)")
    parser.add_argument("--version", default="v1", help="API version of the first kind (default: %(default)s)")
    parser.add_argument("--kind", default="", help="the first kind (default: NAME in CamelCase)")
    parser.add_argument("--image", default="nginx", help="image that it runs by default (default: %(default)s)")
    _add_writing(parser)
    parser.add_argument("--force", action="store_true", help="replace existing files")


def _add_add(commands: Commands) -> None:
    parser = commands.add_parser("add", help="add a kind, controller or webhook to a project", description=_ADD)
    parts = parser.add_subparsers(title="parts", metavar="PART", required=True)
    kind = parts.add_parser("kind", help="add a custom resource, or a version of it, with its controller")
    kind.set_defaults(command=_add_kind, prog=kind.prog)
    kind.add_argument("kind", metavar="KIND", help="name in CamelCase, for example Widget")
    kind.add_argument("--group", default="", help="API group (default: that of the first kind)")
    kind.add_argument("--version", default="v1", help="API version (default: %(default)s)")
    kind.add_argument("--plural", default="", help="plural, for example oxen (default: the usual one)")
    kind.add_argument("--cluster-scoped", action="store_true", help="objects are in no namespace")
    kind.add_argument("--image", default="", help="run this image in a Deployment (default: no Deployment)")
    kind.add_argument("--no-controller", action="store_true", help="generate no controller")
    controller = parts.add_parser("controller", help="add a controller for a kind of the project or of Kubernetes")
    controller.set_defaults(command=_add_controller, prog=controller.prog)
    _add_subject(controller)
    controller.add_argument("--name", default="", help="name of its module (default: that of the kind)")
    webhook = parts.add_parser("webhook", help="add webhooks for a kind of the project or of Kubernetes")
    webhook.set_defaults(command=_add_webhook, prog=webhook.prog)
    _add_subject(webhook)
    webhook.add_argument("--validating", action="store_true", help="reject invalid objects")
    webhook.add_argument("--mutating", action="store_true", help="change objects before they are stored")
    webhook.add_argument("--conversion", action="store_true", help="convert between the versions of the kind")
    for part in (kind, controller, webhook):
        _add_writing(part)
        part.add_argument("--force", action="store_true", help="replace files that exist and were not generated")


def _add_upgrade(commands: Commands) -> None:
    parser = commands.add_parser(
        "upgrade-template", help="merge the newest template into a project", description=_UPGRADE
    )
    parser.set_defaults(command=_upgrade, prog=parser.prog)
    _add_writing(parser)
    parser.add_argument(
        "--allow-dirty", action="store_true", help="run also if the git work tree has uncommitted changes"
    )


def _add_subject(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("kind", metavar="KIND", help="a kind of the project, or one of Kubernetes, for example Pod")
    parser.add_argument("--group", default="", help="its API group, if several have the kind")
    parser.add_argument("--version", default="", help="its API version, if it has several")
    parser.add_argument(
        "--from",
        metavar="MODULE",
        dest="source",
        default="",
        help="module of the package that has the class of the kind, for example written by ostinato types",
    )


def _add_writing(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--dry-run", action="store_true", help="print what would change, and write nothing")


def _init(options: argparse.Namespace) -> int:
    from ostinato.cli.commands import project  # noqa: PLC0415 - loaded when the command is called

    return project.init(options)


def _add_kind(options: argparse.Namespace) -> int:
    from ostinato.cli.commands import project  # noqa: PLC0415 - loaded when the command is called

    return project.add_kind(options)


def _add_controller(options: argparse.Namespace) -> int:
    from ostinato.cli.commands import project  # noqa: PLC0415 - loaded when the command is called

    return project.add_controller(options)


def _add_webhook(options: argparse.Namespace) -> int:
    from ostinato.cli.commands import project  # noqa: PLC0415 - loaded when the command is called

    return project.add_webhook(options)


def _upgrade(options: argparse.Namespace) -> int:
    from ostinato.cli.commands import project  # noqa: PLC0415 - loaded when the command is called

    return project.upgrade(options)
