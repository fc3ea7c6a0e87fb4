"""`ostinato kudo package`: create, check, list and change packages."""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import yaml

from ostinato.cli.commands.frontends.kudo.repositories import repository_of
from ostinato.cli.error import CommandError
from ostinato.frontends.plans.api import Task
from ostinato.frontends.plans.package.files import OPERATOR, PARAMS, PackageError, read_package
from ostinato.frontends.plans.package.resolving import PackageResolver
from ostinato.frontends.plans.package.resources import Package
from ostinato.frontends.plans.package.verifying import EXTENDED, Findings, verify
from ostinato.frontends.plans.package.writing import add_entry, add_template, write_archive, write_new
from ostinato.frontends.plans.parameters import load_yaml
from ostinato.frontends.plans.pictures import Node, tree
from ostinato.world import World

Json = dict[str, Any]


def run(name: str, options: argparse.Namespace) -> int:
    """Run a command, and return its exit code; CommandError if it fails."""
    try:
        return _COMMANDS[name](options) or 0
    except (PackageError, OSError) as error:
        raise CommandError(str(error)) from None


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")


def _create(options: argparse.Namespace) -> int:
    directory = Path(options.directory)
    findings = _checked(directory)
    if findings.errors:
        _print(findings)
        raise CommandError(f"{directory}: {len(findings.errors)} errors; the package was not created")
    target = write_archive(directory, Path(options.destination), overwrite=options.overwrite)
    _say(f"Package created: {target.resolve()}")
    return 0


def _new(options: argparse.Namespace) -> None:
    if Path(OPERATOR).exists():
        raise PackageError("operator.yaml exists in the current directory; a package in a package is not supported")
    for path in write_new(Path("operator"), options.name, overwrite=options.overwrite):
        _say(f"{path} created")


def _verify(options: argparse.Namespace) -> int:
    checks = [each for each in options.param_checks.split(",") if each]
    unknown = [each for each in checks if each not in EXTENDED]
    if unknown:
        raise CommandError(f"--param-checks {unknown[0]}: use of {', '.join(EXTENDED)}")
    findings = _checked(Path(options.package), checks)
    if options.output:
        data = msgspec.to_builtins(findings)
        _say(json.dumps(data, indent=2) if options.output == "json" else yaml.safe_dump(data, sort_keys=False).rstrip())
    else:
        _print(findings)
        if not findings.errors:
            _say("package is valid")
    return 1 if findings.errors else 0


def _checked(path: Path, checks: Sequence[str] = ()) -> Findings:
    world = World.real()
    try:
        return verify(read_package(path), world, checks)
    finally:
        world.executor.close()


def _print(findings: Findings) -> None:
    for title, found in (("Warnings", findings.warnings), ("Errors", findings.errors)):
        if found:
            _say("\n".join([title, *found]))


def _list_parameters(options: argparse.Namespace) -> None:
    parameters = sorted(_package(options).version.spec.parameters, key=lambda each: each.name)
    if options.required:
        parameters = [each for each in parameters if each.is_required and each.default is None]
    if not parameters:
        _say("no parameters found")
    elif options.names:
        _table(("Name",), [(each.name,) for each in parameters])
    else:
        titles = ["Name", "Default", "Required", "Immutable"]
        rows = [
            [each.name, each.default or "", _bool(each.is_required), _bool(each.is_immutable)] for each in parameters
        ]
        if options.descriptions:
            titles.append("Descriptions")
            rows = [[*row, each.description] for row, each in zip(rows, parameters, strict=True)]
        _table(titles, rows)


def _bool(value: bool) -> str:
    return "true" if value else "false"


def _list_tasks(options: argparse.Namespace) -> None:
    rows = [
        (each.name, each.kind, "[" + " ".join(each.spec.resources or ()) + "]")
        for each in _package(options).version.spec.tasks
    ]
    _table(("Name", "Kind", "Resources"), rows)


def _list_plans(options: argparse.Namespace) -> None:
    spec = _package(options).version.spec
    tasks = {each.name: each for each in spec.tasks}
    nodes = [
        Node(
            f"{name} ({plan.strategy})",
            [
                Node(
                    f"[phase]  {phase.name} ({phase.strategy})",
                    [
                        Node(
                            f"[step]  {step.name}",
                            [_task(each, tasks.get(each), with_tasks=options.with_tasks) for each in step.tasks],
                        )
                        for step in phase.steps
                    ],
                )
                for phase in plan.phases or ()
            ],
        )
        for name, plan in sorted((spec.plans or {}).items())
    ]
    _say(tree(*nodes, title="plans") if nodes else "no plans found")


def _task(name: str, task: Task | None, *, with_tasks: bool) -> Node:
    if not with_tasks or task is None:
        return Node(name)
    parts = [Node(each) for each in (*(task.spec.resources or ()), task.spec.pod, task.spec.package) if each]
    if task.spec.parameter:
        parts.insert(0, Node(f"[parameter]  {task.spec.parameter}"))
    return Node(f"[{task.kind.lower()}]  {name}", parts)


def _table(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    lines = [[cell.strip().replace("\n", " ") for cell in row] for row in (titles, *rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        _say("\t".join(f"{cell:<{width}}" for cell, width in zip(line, widths, strict=True)))


def _package(options: argparse.Namespace) -> Package:
    resolver = PackageResolver(Path(), repository_of(options.home, options.repo))
    found = asyncio.run(resolver.resolve(options.package, options.app_version, options.operator_version))
    return found.package


def _add_maintainer(options: argparse.Namespace) -> None:
    _added(add_entry(Path(options.path), OPERATOR, "maintainers", {"name": options.name, "email": options.email}))


def _add_parameter(options: argparse.Namespace) -> None:
    entry: Json = {"name": options.name}
    for name in ("description", "type", "trigger", "group"):
        if getattr(options, name):
            entry[name] = getattr(options, name)
    if options.display_name:
        entry["displayName"] = options.display_name
    if options.default:
        entry["default"] = load_yaml(options.default) if options.type in ("array", "map") else options.default
    if options.optional:
        entry["required"] = False
    if options.immutable:
        entry["immutable"] = True
    _added(add_entry(Path(options.path), PARAMS, "parameters", entry))


def _add_plan(options: argparse.Namespace) -> None:
    phases: dict[str, list[Json]] = {}
    for each in options.steps:
        place, equals, tasks = each.partition("=")
        if not equals or not tasks:
            raise CommandError(f"--step {each}: write [PHASE.]STEP=TASK[,TASK]")
        phase, dot, step = place.partition(".")
        phases.setdefault(phase if dot else "main", []).append({"name": step or phase, "tasks": tasks.split(",")})
    listed = [{"name": name, "strategy": "serial", "steps": steps} for name, steps in phases.items()]
    plan = {"strategy": options.strategy, "phases": listed}
    _added(add_entry(Path(options.path), OPERATOR, "plans", (options.name, plan)))


def _add_task(options: argparse.Namespace) -> None:
    spec: Json = {name: getattr(options, name) for name in ("resources", "parameter", "pod", "package")}
    entry = {"name": options.name, "kind": options.kind, "spec": {name: each for name, each in spec.items() if each}}
    directory = Path(options.path)
    _added(add_entry(directory, OPERATOR, "tasks", entry))
    for each in (*options.resources, *([options.pod] if options.pod else [])):
        add_template(directory, each)


def _added(path: Path) -> None:
    _say(f"{path} changed")


_COMMANDS: dict[str, Callable[[argparse.Namespace], int | None]] = {
    "create": _create,
    "new": _new,
    "verify": _verify,
    "list_parameters": _list_parameters,
    "list_tasks": _list_tasks,
    "list_plans": _list_plans,
    "add_maintainer": _add_maintainer,
    "add_parameter": _add_parameter,
    "add_plan": _add_plan,
    "add_task": _add_task,
}
