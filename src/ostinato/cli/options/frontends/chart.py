"""Options of `ostinato chart`."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from ostinato.cli.options.parsed import values
from ostinato.cli.options.run import add_run_options

if TYPE_CHECKING:
    from ostinato.cli.options.parsed import Commands

_TEMPLATE = """Render a chart and print its manifests as `helm template` does, byte for byte, without Helm and without a
cluster."""


_RUN = """Run a chart as an operator until SIGINT or SIGTERM: the spec of each object of the kind is the values of a
release, which is installed, upgraded, repaired and uninstalled. With --embedded or --install-crds its
CustomResourceDefinition is created from the values of the chart."""
_OWN = (
    "chart",
    "kind",
    "group",
    "api_version",
    "no_definition",
    "override",
    "wait",
    "reconcile_period",
    "max_history",
    "workers",
)


def add_to(commands: Commands) -> None:
    parser = commands.add_parser("chart", help="render and run Helm charts", description="Work with Helm charts.")
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

    _add_run(verbs)


def _add_run(verbs: Commands) -> None:
    run = verbs.add_parser("run", help="run a chart as an operator", description=_RUN)
    run.set_defaults(command=_run, prog=run.prog)
    run.add_argument("chart", metavar="CHART", help="directory or .tgz archive of the chart")
    run.add_argument("--kind", required=True, help="kind whose objects are releases of the chart, such as Nginx")
    run.add_argument("--group", required=True, help="its API group, such as example.com")
    run.add_argument("--version", dest="api_version", metavar="VERSION", default="v1", help="its version (default: v1)")
    run.add_argument(
        "--no-definition",
        action="store_true",
        help="the CustomResourceDefinition exists (default: from the values)",
    )
    run.add_argument(
        "--override",
        metavar="PATH=VALUE",
        action="append",
        default=[],
        help="value that wins over others; repeatable",
    )
    run.add_argument(
        "--wait", metavar="DURATION", default="", help="objects must be ready after this time (default: do not wait)"
    )
    run.add_argument("--reconcile-period", metavar="DURATION", default="1m", help="default: 1m; 0 disables it")
    run.add_argument("--max-history", metavar="N", type=int, default=10, help="revisions that are kept (default: 10)")
    run.add_argument("--workers", metavar="N", type=int, default=1, help="concurrent reconciles (default: 1)")
    add_run_options(run)


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
    from ostinato.cli.commands.frontends import chart as command  # noqa: PLC0415 - loaded when the command is called

    command.template(command.TemplateOptions(**values(options)))


def _run(options: argparse.Namespace) -> int:
    from ostinato.cli.commands.frontends import chart_run as command  # noqa: PLC0415 - loaded when the command is called

    given = values(options)
    own = {name: given.pop(name) for name in _OWN}
    command.run_chart(command.ChartRunCommand(**own), given)
    return 0
