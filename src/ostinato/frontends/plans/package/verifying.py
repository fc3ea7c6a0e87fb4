"""Checks of a package before anybody installs it: references, parameters, tasks and templates."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any, Final

import msgspec

from ostinato.frontends.plans.api import DEPLOY, Plan
from ostinato.frontends.plans.package.files import FileParameter, PackageFiles
from ostinato.frontends.plans.package.resources import parameter_of, task_problems
from ostinato.frontends.plans.package.versions import is_semantic
from ostinato.frontends.plans.parameters import ParameterError, enum_problem, type_problem, values_for_templates
from ostinato.frontends.plans.tasks.rendering import RenderError, render
from ostinato.frontends.plans.tasks.run import task_problem
from ostinato.world import World

_USED: Final = re.compile(r"\.Params\.([A-Za-z_]\w*)")
EXTENDED: Final = ("display", "hint", "group", "description", "type")


class Findings(msgspec.Struct):
    errors: list[str] = []
    warnings: list[str] = []


def verify(files: PackageFiles, world: World, checks: Iterable[str] = ()) -> Findings:
    """Return what is wrong with a package, and what may be. `checks`: of EXTENDED, for every parameter."""
    found = Findings(errors=[], warnings=[])
    found.errors += _operator(files)
    found.errors += _parameters(files)
    found.errors += _plans(files)
    for task in files.operator.tasks or ():
        found.errors += task_problems(task, files)
        problem = "" if task.kind == "KudoOperator" else task_problem(task)
        if problem and not task_problems(task, files):
            found.errors.append(f"task {task.name}: {problem}")
        if task.kind == "KudoOperator" and not task.spec.package:
            found.errors.append(f"task {task.name}: a KudoOperator task needs a package")
    found.errors += _templates(files, world)
    found.warnings += _unused(files)
    found.warnings += [
        f'parameter "{each.name}" has no {check}'
        for each in files.params.parameters or ()
        for check in checks
        if not getattr(each, {"display": "display_name"}.get(check, check))
    ]
    return found


def _operator(files: PackageFiles) -> Iterator[str]:
    if not is_semantic(files.operator.operator_version):
        yield '"operatorVersion" is required and must be semver'
    if files.operator.app_version and not is_semantic(files.operator.app_version):
        yield '"appVersion" must be semver'
    if DEPLOY not in (files.operator.plans or {}):
        yield f"plan {DEPLOY} is missing; an instance cannot be created without it"


def _parameters(files: PackageFiles) -> Iterator[str]:
    parameters = files.params.parameters or []
    for name, count in Counter(each.name.lower() for each in parameters).items():
        if count > 1:
            title = next(each.name for each in parameters if each.name.lower() == name)
            yield f'parameter "{title}" has a duplicate'
    groups = {each.name for each in files.params.groups or ()}
    for each in parameters:
        if not each.name:
            yield "a parameter has no name"
        if "," in each.name:
            yield f"parameter \"{each.name}\" contains invalid character ','"
        if each.trigger and each.trigger not in (files.operator.plans or {}):
            yield f'plan "{each.trigger}" used in parameter "{each.name}" is not defined'
        if each.group and groups and each.group not in groups:
            yield f'group "{each.group}" used in parameter "{each.name}" is not defined'
        yield from _values(each)


def _values(parameter: FileParameter) -> Iterator[str]:
    given = parameter_of(parameter)
    if parameter.default is not None:
        default = parameter.default if parameter.type not in ("", "string") else given.default
        problem = type_problem(parameter.type, default) or enum_problem(given.enum, given.default or "")
        if problem:
            yield f'parameter "{parameter.name}" has an invalid default value: {problem}'
    for value in parameter.enum or ():
        if problem := type_problem(parameter.type, value if parameter.type not in ("", "string") else str(value)):
            yield f'parameter "{parameter.name}" has an invalid enum value: {problem}'


def _plans(files: PackageFiles) -> Iterator[str]:
    tasks = Counter(each.name for each in files.operator.tasks or ())
    yield from (f'task "{name}" is defined {count} times' for name, count in tasks.items() if count > 1)
    for name, plan in (files.operator.plans or {}).items():
        yield from _plan(name, plan, set(tasks))


def _plan(name: str, plan: Plan, tasks: set[str]) -> Iterator[str]:
    phases = Counter(each.name for each in plan.phases or ())
    yield from (f'plan "{name}": phase "{each}" is defined twice' for each, count in phases.items() if count > 1)
    for strategy, at in [
        (plan.strategy, name),
        *((each.strategy, f"{name}.{each.name}") for each in plan.phases or ()),
    ]:
        if strategy not in ("", "serial", "parallel"):
            yield f'plan "{at}": strategy "{strategy}" is neither serial nor parallel'
    for phase in plan.phases or ():
        steps = Counter(each.name for each in phase.steps)
        yield from (
            f'plan "{name}": step "{phase.name}.{each}" is defined twice' for each, count in steps.items() if count > 1
        )
        for step in phase.steps:
            for task in step.tasks:
                if task not in tasks:
                    yield f'task "{task}" used in step "{name}.{phase.name}.{step.name}" is not defined'


def _templates(files: PackageFiles, world: World) -> Iterator[str]:
    known = {each.name for each in files.params.parameters or ()}
    for name, text in files.templates.items():
        for used in sorted(set(_USED.findall(text)) - known):
            yield f'parameter "{used}" in template {name} is not defined'
    for task in files.operator.tasks or ():
        if task.kind == "Toggle" and task.spec.parameter and task.spec.parameter not in known:
            yield f'parameter "{task.spec.parameter}" of task {task.name} is not defined'
    try:
        params = values_for_templates(map(parameter_of, files.params.parameters or ()), {})
    except ParameterError:
        return  # reported with the parameter
    for name, text in files.templates.items():
        try:
            render(name, text, _sample(files, params), world)
        except RenderError as error:
            if "has no entry for key" not in str(error):
                yield f"template {name} cannot be rendered with the defaults: {error}"


def _sample(files: PackageFiles, params: dict[str, Any]) -> dict[str, Any]:
    names = ("Name", "Namespace", "PlanName", "PhaseName", "StepName")
    pipes = {each.key: each.key for task in files.operator.tasks or () for each in task.spec.pipe or ()}
    return {
        **{name: name for name in names},
        "OperatorName": files.operator.name,
        "OperatorVersion": files.operator.operator_version,
        "AppVersion": files.operator.app_version,
        "Params": params,
        "Pipes": pipes,
        "Args": {},
    }


def _unused(files: PackageFiles) -> Iterator[str]:
    text = "\n".join(files.templates.values())
    toggled = {each.spec.parameter for each in files.operator.tasks or ()}
    for each in files.params.parameters or ():
        if each.name not in toggled and not re.search(rf"\b{re.escape(each.name)}\b", text) and not each.trigger:
            yield f'parameter "{each.name}" defined but not used.'
    needed = {name for each in files.operator.tasks or () for name in _named(each)}
    yield from (f"template {name} is not used by any task" for name in files.templates if name not in needed)
    steps = [
        step for plan in (files.operator.plans or {}).values() for phase in plan.phases or () for step in phase.steps
    ]
    used = {name for step in steps for name in step.tasks}
    yield from (
        f'task "{each.name}" defined but not used' for each in files.operator.tasks or () if each.name not in used
    )


def _named(task: Any) -> list[str]:
    return [*(task.spec.resources or ()), task.spec.pod, task.spec.parameter_file]
