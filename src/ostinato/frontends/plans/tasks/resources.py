"""Tasks about objects: Apply, Delete, and Toggle, which is one of them depending on a parameter."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ostinato.api import accessors as access
from ostinato.api.gvk import GroupVersionKind
from ostinato.frontends.plans.engine.execute import DONE, TaskResult
from ostinato.frontends.plans.parameters import ParameterError, boolean
from ostinato.frontends.plans.tasks.context import TaskContext
from ostinato.frontends.plans.tasks.decoration import add_hashes, decorate
from ostinato.frontends.plans.tasks.errors import TERMINAL_STATE, TOGGLE, FatalError
from ostinato.frontends.plans.tasks.health import health_of

Json = dict[str, Any]


async def apply(resources: Sequence[str], context: TaskContext) -> TaskResult:
    """Apply the objects of templates, and wait until they are healthy."""
    wanted = await desired(context.objects(resources), context)
    return await apply_objects(wanted, context)


async def desired(instances: Sequence[Json], context: TaskContext) -> list[Json]:
    """Return objects as they are applied: in their place, and decorated."""
    placed = [await context.cluster.place(each, context.owner) for each in instances]
    for each in placed:
        decorate(each, context.names)
    await add_hashes(placed, lambda kind, name: _dependency(kind, name, context))
    return placed


async def _dependency(kind: str, name: str, context: TaskContext) -> Json | None:
    return await context.cluster.get(GroupVersionKind("", "v1", kind), context.names.namespace, name)


async def apply_objects(wanted: Sequence[Json], context: TaskContext) -> TaskResult:
    applied = [await context.cluster.apply(each, context.owner) for each in wanted]
    for each in applied:
        health = health_of(each)
        if health.state == "Failed":
            raise FatalError(health.message, TERMINAL_STATE)
        if not health:
            return TaskResult("waiting", f"{access.gvk(each).kind} {access.name(each)}: {health.message}")
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
