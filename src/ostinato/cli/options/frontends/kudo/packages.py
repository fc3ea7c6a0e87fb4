"""Options of the commands about packages and repositories."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ostinato.cli.options.parsed import Commands


def add_package(actions: Commands) -> None:
    parser = actions.add_parser("package", help="create, check, list and change packages")
    verbs = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    create = verbs.add_parser("create", help="make a .tgz file of a package directory")
    create.set_defaults(command=_package("create"), prog=create.prog)
    create.add_argument("directory", metavar="DIR")
    create.add_argument("-d", "--destination", metavar="DIR", default=".", help="(default: this directory)")
    create.add_argument("-w", "--overwrite", action="store_true", help="replace an existing file")
    new = verbs.add_parser("new", help="make the files of a new package")
    new.set_defaults(command=_package("new"), prog=new.prog)
    new.add_argument("name", metavar="NAME")
    new.add_argument("-w", "--overwrite", action="store_true", help="replace existing files")
    verify = verbs.add_parser("verify", help="check a package: references, templates, parameters")
    verify.set_defaults(command=_package("verify"), prog=verify.prog)
    verify.add_argument("package", metavar="PACKAGE")
    verify.add_argument("-o", "--output", choices=("yaml", "json"), help="print the findings as data")
    verify.add_argument(
        "-P", "--param-checks", metavar="CHECKS", default="", help="of display, hint, group, description, type"
    )
    _add_lists(verbs)
    _add_additions(verbs)


def _add_lists(verbs: Commands) -> None:
    parser = verbs.add_parser("list", help="show parameters, plans or tasks of a package")
    lists = parser.add_subparsers(title="lists", metavar="LIST", required=True)
    for name in ("parameters", "plans", "tasks"):
        each = lists.add_parser(name, aliases=["params"] if name == "parameters" else [], help=f"{name} of a package")
        each.set_defaults(command=_package(f"list_{name}"), prog=each.prog)
        each.add_argument("package", metavar="PACKAGE")
        _add_repo(each)
        if name == "parameters":
            each.add_argument("-d", "--descriptions", action="store_true", help="with descriptions")
            each.add_argument("-r", "--required", action="store_true", help="only those without a default")
            each.add_argument("-n", "--names", action="store_true", help="only names")
        if name == "plans":
            each.add_argument("-t", "--with-tasks", action="store_true", help="with the resources of tasks")


def _add_additions(verbs: Commands) -> None:
    parser = verbs.add_parser("add", help="add a maintainer, parameter, plan or task to a package")
    parts = parser.add_subparsers(title="parts", metavar="PART", required=True)
    maintainer = parts.add_parser("maintainer", help="add a maintainer")
    maintainer.set_defaults(command=_package("add_maintainer"), prog=maintainer.prog)
    maintainer.add_argument("name", metavar="NAME")
    maintainer.add_argument("email", metavar="EMAIL")
    parameter = parts.add_parser("parameter", help="add a parameter")
    parameter.set_defaults(command=_package("add_parameter"), prog=parameter.prog)
    parameter.add_argument("name", metavar="NAME")
    for option, text in (
        ("default", "value that it has unless an instance sets it"),
        ("type", "string, integer, number, boolean, array or map (default: string)"),
        ("description", "what it is for"),
        ("display-name", "name for people"),
        ("trigger", "plan that a change starts (default: update, or deploy)"),
        ("group", "group in which it is shown"),
    ):
        parameter.add_argument(f"--{option}", metavar="TEXT", default="", help=text)
    parameter.add_argument("--optional", action="store_true", help="not required")
    parameter.add_argument("--immutable", action="store_true", help="cannot be changed after the installation")
    plan = parts.add_parser("plan", help="add a plan")
    plan.set_defaults(command=_package("add_plan"), prog=plan.prog)
    plan.add_argument("name", metavar="NAME")
    plan.add_argument(
        "--strategy",
        choices=("serial", "parallel"),
        default="serial",
        help="order of the phases (default: %(default)s)",
    )
    plan.add_argument(
        "--step", dest="steps", metavar="[PHASE.]STEP=TASK[,TASK]", action="append", default=[], required=True,
        help="a step and its tasks; repeatable",
    )  # fmt: skip
    task = parts.add_parser("task", help="add a task, and the templates that it names")
    task.set_defaults(command=_package("add_task"), prog=task.prog)
    task.add_argument("name", metavar="NAME")
    kinds = ("Apply", "Delete", "Toggle", "Pipe", "KudoOperator", "Dummy")
    task.add_argument("--kind", choices=kinds, default="Apply", help="what it does (default: %(default)s)")
    task.add_argument("--resource", dest="resources", metavar="FILE", action="append", default=[], help="repeatable")
    task.add_argument("--parameter", metavar="NAME", default="", help="of a Toggle task")
    task.add_argument("--pod", metavar="FILE", default="", help="of a Pipe task")
    task.add_argument("--package", metavar="PACKAGE", default="", help="of a KudoOperator task")
    for each in (maintainer, parameter, plan, task):
        each.add_argument("--path", metavar="DIR", default=".", help="the package (default: this directory)")


def add_search(actions: Commands) -> None:
    parser = actions.add_parser("search", help="search the repository for packages")
    parser.set_defaults(command=_repo("search"), prog=parser.prog)
    parser.add_argument("words", metavar="TEXT", nargs="?", default="")
    parser.add_argument("--all-versions", "-a", action="store_true", help="not only the newest")
    _add_repo(parser)


def add_repo(actions: Commands) -> None:
    parser = actions.add_parser("repo", help="add, list, remove, index and choose repositories")
    verbs = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    add = verbs.add_parser("add", help="add a repository")
    add.add_argument("name", metavar="NAME")
    add.add_argument("url", metavar="URL")
    add.add_argument("--skip-validate", action="store_true", help="do not read its index")
    listing = verbs.add_parser("list", help="list repositories")
    remove = verbs.add_parser("remove", help="remove a repository")
    remove.add_argument("name", metavar="NAME")
    context = verbs.add_parser("context", help="choose the default repository")
    context.add_argument("name", metavar="NAME")
    index = verbs.add_parser("index", help="write the index of a directory of .tgz files")
    index.add_argument("directory", metavar="DIR")
    index.add_argument("--url", default="http://localhost/", help="of the files (default: %(default)s)")
    index.add_argument("--merge", metavar="FILE", default="", help="add to the entries of this index")
    index.add_argument("-w", "--overwrite", action="store_true", help="replace an existing index.yaml")
    for verb, each in (("add", add), ("list", listing), ("remove", remove), ("context", context), ("index", index)):
        each.set_defaults(command=_repo(verb), prog=each.prog)
        each.add_argument("--home", metavar="DIR", default="", help="(default: $KUDO_HOME or ~/.kudo)")


def _add_repo(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--repo", metavar="NAME", default="", help="repository (default: that of the context)")
    parser.add_argument("--app-version", metavar="VERSION", default="", help="(default: the newest)")
    parser.add_argument("--operator-version", metavar="VERSION", default="", help="(default: the newest)")
    parser.add_argument("--home", metavar="DIR", default="", help="of repositories (default: $KUDO_HOME or ~/.kudo)")


def _package(name: str) -> object:
    def command(options: argparse.Namespace) -> int:
        from ostinato.cli.commands.frontends.kudo import packages  # noqa: PLC0415 - loaded when the command is called

        return packages.run(name, options)

    return command


def _repo(name: str) -> object:
    def command(options: argparse.Namespace) -> int:
        from ostinato.cli.commands.frontends.kudo import repositories  # noqa: PLC0415 - loaded when the command is called

        repositories.run(name, options)
        return 0

    return command
