"""Options of the commands that work on a cluster."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from ostinato.cli.options.cluster import add_kubeconfig
from ostinato.cli.options.frontends.kudo.packages import add_package, add_repo, add_search
from ostinato.cli.options.parsed import values
from ostinato.cli.options.run import add_run_options

if TYPE_CHECKING:
    from ostinato.cli.options.parsed import Commands

_DESCRIPTION = """Run KUDO's operators: packages of parameters, templates and plans. The commands are those of `kubectl
kudo`; `manager` runs the plans. A package is a directory, a .tgz file, a URL, or a name in a repository."""
_RUN_KEYS = ("repair_drift", "packages", "group")


def add_to(commands: Commands) -> None:
    parser = commands.add_parser("kudo", help="run KUDO's packages: operators made of plans", description=_DESCRIPTION)
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    _add_manager(actions)
    _add_init(actions)
    _add_install(actions)
    _add_update(actions)
    _add_upgrade(actions)
    _add_uninstall(actions)
    _add_get(actions)
    _add_plan(actions)
    add_search(actions)
    add_package(actions)
    add_repo(actions)


def _add_manager(actions: Commands) -> None:
    parser = actions.add_parser("manager", help="run the plans of instances until SIGINT or SIGTERM")
    parser.set_defaults(command=_manager, prog=parser.prog)
    parser.add_argument(
        "--repair-drift",
        action="store_true",
        help="apply the objects of completed plans again when somebody changes or deletes them (default: an instance "
        'with the annotation plans.ostinato.dev/repair-drift: "true")',
    )
    parser.add_argument(
        "--kind",
        dest="packages",
        metavar="KIND=PACKAGE",
        action="append",
        default=[],
        help="serve a package as a kind of its own, with a schema of its parameters; repeatable",
    )
    parser.add_argument(
        "--group", default="operators.example.dev", help="API group of the kinds of --kind (default: %(default)s)"
    )
    add_run_options(parser)


def _add_init(actions: Commands) -> None:
    parser = actions.add_parser("init", help="install the definitions of Operator, OperatorVersion and Instance")
    parser.set_defaults(command=_call("init"), prog=parser.prog)
    add_kubeconfig(parser)
    parser.add_argument("--dry-run", action="store_true", help="change nothing")
    parser.add_argument("-o", "--output", choices=("yaml", "json"), help="print the definitions")
    parser.add_argument("--upgrade", action="store_true", help="accepted for scripts; definitions are always updated")
    parser.add_argument("--crd-only", action="store_true", help="accepted for scripts; there is nothing else")
    parser.add_argument("--wait", action="store_true", help="wait until the kinds are served")
    parser.add_argument("--wait-timeout", type=int, default=300, metavar="SECONDS", help="(default: %(default)s)")
    parser.add_argument(
        "--unsafe-self-signed-webhook-ca", action="store_true", help="accepted for scripts; no webhook is needed"
    )


def _add_install(actions: Commands) -> None:
    parser = actions.add_parser("install", help="install a package")
    parser.set_defaults(command=_call("install"), prog=parser.prog)
    parser.add_argument("package", metavar="PACKAGE", help="directory, .tgz file, URL or name in a repository")
    parser.add_argument("--instance", metavar="NAME", default="", help="(default: OPERATOR-instance)")
    _add_parameters(parser)
    _add_source(parser)
    parser.add_argument("--skip-instance", action="store_true", help="install operator and version only")
    parser.add_argument("--create-namespace", action="store_true", help="create the namespace first; it must not exist")
    parser.add_argument("--in-cluster", action="store_true", help="use an operator version that is installed")
    parser.add_argument(
        "--repair-drift", action="store_true", help="repair the objects of the instance when they change"
    )
    _add_wait(parser)
    _add_common(parser)


def _add_update(actions: Commands) -> None:
    parser = actions.add_parser("update", help="change parameters of an instance")
    parser.set_defaults(command=_call("update"), prog=parser.prog)
    _add_instance(parser)
    _add_parameters(parser)
    _add_wait(parser)
    _add_common(parser)


def _add_upgrade(actions: Commands) -> None:
    parser = actions.add_parser("upgrade", help="change the version of an instance")
    parser.set_defaults(command=_call("upgrade"), prog=parser.prog)
    parser.add_argument("package", metavar="PACKAGE", help="directory, .tgz file, URL or name in a repository")
    _add_instance(parser)
    _add_parameters(parser)
    _add_source(parser)
    _add_wait(parser)
    _add_common(parser)


def _add_uninstall(actions: Commands) -> None:
    parser = actions.add_parser("uninstall", help="delete an instance, after its cleanup plan")
    parser.set_defaults(command=_call("uninstall"), prog=parser.prog)
    _add_instance(parser)
    _add_wait(parser)
    _add_common(parser)


def _add_get(actions: Commands) -> None:
    parser = actions.add_parser("get", help="list operators, versions and instances")
    parser.set_defaults(command=_call("get"), prog=parser.prog)
    parser.add_argument("what", choices=("instances", "operators", "operatorversions", "all"))
    _add_output(parser)
    _add_common(parser)


def _add_plan(actions: Commands) -> None:
    parser = actions.add_parser("plan", help="show, run, cancel, retry or skip plans of an instance")
    verbs = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    status = verbs.add_parser("status", help="draw the plans of an instance")
    status.set_defaults(command=_call("plan_status"), prog=status.prog)
    status.add_argument("--wait", action="store_true", help="draw again at each change until the plan has ended")
    status.add_argument("--wait-time", type=int, default=0, metavar="SECONDS", help="of --wait (default: no limit)")
    _add_output(status)
    history = verbs.add_parser("history", help="when each plan has run last")
    history.set_defaults(command=_call("plan_history"), prog=history.prog)
    trigger = verbs.add_parser("trigger", help="run a plan")
    trigger.set_defaults(command=_call("plan_trigger"), prog=trigger.prog)
    trigger.add_argument("plan", metavar="PLAN", nargs="?", default="", help="name of the plan")
    trigger.add_argument("--name", metavar="PLAN", default="", help="the same, as `kubectl kudo` has it")
    trigger.add_argument(
        "-a", "--arg", dest="arguments", metavar="NAME=VALUE", action="append", default=[],
        help="a value for this run only, .Args.NAME in templates; repeatable",
    )  # fmt: skip
    _add_wait(trigger)
    for verb, text in (
        ("cancel", "stop the plan that runs"),
        ("retry", "go on with a plan that failed or was cancelled, at the step that is not complete"),
        ("skip", "count a step as complete, and go on"),
    ):
        each = verbs.add_parser(verb, help=text)
        each.set_defaults(command=_call(f"plan_{verb}"), prog=each.prog)
        each.add_argument("--name", metavar="PLAN", default="", help="(default: the plan that runs, or ran last)")
        if verb == "skip":
            each.add_argument("--phase", metavar="NAME", default="", help="(default: any)")
            each.add_argument("--step", metavar="NAME", default="", help="(default: the first that is not complete)")
        if verb != "cancel":
            _add_wait(each)
        _add_instance(each)
        _add_common(each)
    for each in (status, history, trigger):
        _add_instance(each)
        _add_common(each)


def _add_instance(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--instance", metavar="NAME", required=True, help="the instance")


def _add_parameters(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "-p", "--parameter", dest="parameters", metavar="NAME=VALUE", action="append", default=[], help="repeatable"
    )
    parser.add_argument(
        "-P", "--parameter-file", dest="parameter_files", metavar="FILE", action="append", default=[],
        help="YAML file with parameters; repeatable, -p overrides",
    )  # fmt: skip


def _add_source(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--repo", metavar="NAME", default="", help="repository (default: that of the context)")
    parser.add_argument("--app-version", metavar="VERSION", default="", help="(default: the newest)")
    parser.add_argument("--operator-version", metavar="VERSION", default="", help="(default: the newest)")


def _add_wait(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--wait", action="store_true", help="wait until the plan is complete; fail if it fails")
    parser.add_argument(
        "--wait-time", type=int, default=300, metavar="SECONDS", help="of --wait (default: %(default)s)"
    )


def _add_output(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-o", "--output", choices=("yaml", "json"), help="print objects (default: a tree)")


def _add_common(parser: argparse.ArgumentParser) -> None:
    add_kubeconfig(parser)
    parser.add_argument("-n", "--namespace", metavar="NS", default="", help="(default: that of the context)")
    parser.add_argument("--home", metavar="DIR", default="", help="of repositories (default: $KUDO_HOME or ~/.kudo)")


def _manager(options: argparse.Namespace) -> int:
    from ostinato.cli.commands.frontends.kudo import manager  # noqa: PLC0415 - loaded when the command is called

    given = values(options)
    own = {name: given.pop(name) for name in _RUN_KEYS}
    manager.manager(manager.ManagerCommand(**own), given)
    return 0


def _call(name: str) -> object:
    """Return the function that runs a command on a cluster."""

    def command(options: argparse.Namespace) -> int:
        from ostinato.cli.commands.frontends.kudo import cluster  # noqa: PLC0415 - loaded when the command is called

        cluster.run(name, options)
        return 0

    return command
