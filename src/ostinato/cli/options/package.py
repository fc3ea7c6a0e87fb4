"""Options of `ostinato package`."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from ostinato.cli.options.parsed import values

if TYPE_CHECKING:
    from ostinato.cli.options.parsed import Commands

_DESCRIPTION = """Package an operator for a cluster: what its program needs (`ostinato manifests`), a Deployment and all
that belongs to it, with the decisions of deploy/overrides.yaml. The output is the same every time."""

_FORMATS = {
    "yaml": ("write install.yaml", "standard output"),
    "helm": ("write a Helm chart", "dist/chart"),
    "kustomize": ("write a kustomize base with overlays", "dist/kustomize"),
    "olm": ("write a bundle for the Operator Lifecycle Manager", "dist/bundle"),
    "monitoring": ("write a Grafana dashboard and Prometheus alert rules", "dist/monitoring"),
}


def add_to(commands: Commands) -> None:
    parser = commands.add_parser("package", help="package an operator for a cluster", description=_DESCRIPTION)
    formats = parser.add_subparsers(title="formats", metavar="FORMAT", required=True)
    for name, (text, default) in _FORMATS.items():
        each = formats.add_parser(name, help=text, description=f"{text[0].upper()}{text[1:]}.")
        each.set_defaults(command=_package, prog=each.prog, format=name)
        add_program(each)
        what = "FILE" if name == "yaml" else "DIR"
        each.add_argument("-o", "--output", metavar=what, help=f"where to write (default: {default})")
        each.add_argument("--check", action="store_true", help="write nothing; print differences and exit 1 if any")


def add_program(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that describe a package."""
    parser.add_argument(
        "files",
        metavar="FILE",
        nargs="*",
        help="Python file, module or package; as for `ostinato run` (default: tool.ostinato.run in pyproject.toml)",
    )
    parser.add_argument(
        "--overrides",
        metavar="FILE",
        help="decisions about the deployment (default: deploy/overrides.yaml, if it exists)",
    )
    parser.add_argument(
        "--samples", metavar="DIR", default="samples", help="directory of sample objects (default: %(default)s)"
    )
    parser.add_argument("--image", default="", help="image of the operator (default: that of the overrides)")


def _package(options: argparse.Namespace) -> int:
    from ostinato.cli.commands import package as command  # noqa: PLC0415 - loaded when the command is called

    return command.package(command.PackageOptions(**values(options)))
