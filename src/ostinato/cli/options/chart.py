"""Options of `ostinato chart`."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from ostinato.cli.options.parsed import values

if TYPE_CHECKING:
    from ostinato.cli.options.parsed import Commands

_TEMPLATE = """Render a chart and print its manifests as `helm template` does, byte for byte, without Helm and without a
cluster."""


def add_to(commands: Commands) -> None:
    parser = commands.add_parser("chart", help="render Helm charts", description="Work with Helm charts.")
    verbs = parser.add_subparsers(title="verbs", metavar="VERB", required=True)
    template = verbs.add_parser("template", help="print the manifests of a chart", description=_TEMPLATE)
    template.set_defaults(command=_template, prog=template.prog)
    template.add_argument("chart", metavar="CHART", help="directory or .tgz archive of the chart")
    template.add_argument("--name", default="release-name", help="name of the release (default: %(default)s)")
    template.add_argument("-n", "--namespace", default="default", help="its namespace (default: %(default)s)")
    add_values(template)
    template.add_argument("--include-crds", action="store_true", help="print the files of crds/ too")
    template.add_argument("--no-hooks", action="store_true", help="leave out hooks")
    template.add_argument("--skip-tests", action="store_true", help="leave out hooks that are tests")
    template.add_argument(
        "-s",
        "--show-only",
        metavar="TEMPLATE",
        action="append",
        default=[],
        help="print only a template; repeatable",
    )
    template.add_argument("--is-upgrade", action="store_true", help="set .Release.IsUpgrade, not .Release.IsInstall")
    template.add_argument("--kube-version", metavar="VERSION", help="version of Kubernetes (default: v1.36.0)")
    template.add_argument(
        "-a", "--api-versions", metavar="VERSIONS", action="append", default=[], help="further API versions; repeatable"
    )
    template.add_argument("--skip-schema-validation", action="store_true", help="do not check values.schema.json")
    template.add_argument("--notes", action="store_true", help="print NOTES.txt instead of the manifests")


def add_values(parser: argparse.ArgumentParser) -> None:
    """Add the options that give values, with Helm's names."""
    for names, metavar, text in (
        (("-f", "--values"), "FILE", "values of a YAML file; repeatable"),
        (("--set",), "KEY=VALUE", "set values: a.b=1,c[0]=x,d={x,y}; repeatable"),
        (("--set-string",), "KEY=VALUE", "set values that are strings; repeatable"),
        (("--set-json",), "KEY=JSON", "set values in JSON; repeatable"),
        (("--set-file",), "KEY=FILE", "set values to the contents of files; repeatable"),
        (("--set-literal",), "KEY=VALUE", "set a value to the rest of the text; repeatable"),
    ):
        parser.add_argument(*names, metavar=metavar, action="append", default=[], help=text)


def _template(options: argparse.Namespace) -> None:
    from ostinato.cli.commands import chart as command  # noqa: PLC0415 - loaded when the command is called

    command.template(command.TemplateOptions(**values(options)))
