"""Tasks about objects: Apply, Delete, and Toggle, which is one of them depending on a parameter."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ostinato.api import accessors as access
from ostinato.api.gvk import GroupVersionKind
from ostinato.frontends.plans.engine.execute import DONE, TaskResult
from ostinato.frontends.plans.parameters import ParameterError, boolean
from ostinato.frontends.plans.tasks.context import TaskContext
from ostinato.frontends.plans.tasks.decoration import PLAN_UID, add_hashes, decorate
from ostinato.frontends.plans.tasks.errors import TERMINAL_STATE, TOGGLE, FatalError
from ostinato.frontends.plans.tasks.health import health_of
from ostinato.frontends.plans.tasks.rendering import is_unstable

Json = dict[str, Any]


async def apply(resources: Sequence[str], context: TaskContext) -> TaskResult:
    """Apply the objects of templates, and wait until they are healthy.

    An object with random values, such as a password, is applied once in a run: later passes leave it as it is.
    """
    wanted = await desired(context.objects(resources), context)
    unstable = {key_of(each) for each in await stable(wanted, resources, context, are=False)}
    applied = []
    for each in wanted:
        kept = await _applied_in_this_run(each, context) if key_of(each) in unstable else None
        applied.append(kept or await context.cluster.apply(each, context.owner))
    return health(applied)


async def stable(
    wanted: Sequence[Json], resources: Sequence[str], context: TaskContext, *, are: bool = True
) -> list[Json]:
    """Return the objects whose templates give the same each time; with `are=False` the others."""
    names = [each for each in resources if is_unstable(context.templates.get(each, ""))]
    others = {key_of(each) for each in (await desired(context.objects(names), context) if names else ())}
    return [each for each in wanted if (key_of(each) in others) != are]


async def _applied_in_this_run(instance: Json, context: TaskContext) -> Json | None:
    key = access.key(instance)
    found = await context.cluster.get(access.gvk(instance), key.namespace, key.name)
    if found is None or access.annotations(found).get(PLAN_UID) != context.names.uid:
        return None
    return found


def key_of(instance: Json) -> tuple[Any, ...]:
    """Return what identifies an object among those of a plan."""
    return (access.gvk(instance).group_kind, access.namespace(instance), access.name(instance))


async def desired(instances: Sequence[Json], context: TaskContext) -> list[Json]:
    """Return objects as they are applied: in their place, and decorated."""
    placed = [await context.cluster.place(each, context.owner) for each in instances]
    for each in placed:
        decorate(each, context.names)
    await add_hashes(placed, lambda kind, name: _dependency(kind, name, context))
    return placed


async def _dependency(kind: str, name: str, context: TaskContext) -> Json | None:
    return await context.cluster.get(GroupVersionKind("", "v1", kind), context.names.namespace, name)


def health(applied: Sequence[Json]) -> TaskResult:
    """Return whether all objects are healthy. Raises FatalError if one cannot become so."""
    for each in applied:
        found = health_of(each)
        if found.state == "Failed":
            raise FatalError(found.message, TERMINAL_STATE)
        if not found:
            return TaskResult("waiting", f"{access.gvk(each).kind} {access.name(each)}: {found.message}")
    return DONE


async def delete(resources: Sequence[str], context: TaskContext) -> TaskResult:
    """Delete the objects of templates, and wait until they are gone. Kinds that do not exist are ignored."""
    instances = context.objects(resources)
    left = [
        each for each in await context.cluster.known(instances, context.owner) if not await context.cluster.delete(each)
    ]
    if left:
        return TaskResult("waiting", f"{access.gvk(left[0]).kind} {access.name(left[0])} is being deleted")
    return DONE


def is_enabled(parameter: str, context: TaskContext) -> bool:
    """Return the value of the parameter of a Toggle task. Raises FatalError."""
    if parameter not in context.params:
        raise FatalError(f"no value for parameter {parameter} found", TOGGLE)
    value = context.params[parameter]
    if not isinstance(value, str):
        raise FatalError(f"value of parameter {parameter} isn't a string", TOGGLE)
    try:
        return boolean(value)
    except ParameterError as error:
        raise FatalError(f"could not parse value of parameter {parameter}: {error}", TOGGLE) from None
