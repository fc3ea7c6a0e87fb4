"""Task KudoOperator: installs an instance of another operator, and waits until its plan is complete."""

from __future__ import annotations

from typing import Any

from ostinato.frontends.plans.api import API_VERSION, OPERATOR_LABEL, TaskSpec, operator_version_name
from ostinato.frontends.plans.engine.execute import DONE, TaskResult
from ostinato.frontends.plans.parameters import ParameterError, values_of_file
from ostinato.frontends.plans.tasks.context import TaskContext
from ostinato.frontends.plans.tasks.errors import RENDERING, FatalError
from ostinato.frontends.plans.tasks.health import plan_health
from ostinato.frontends.plans.tasks.manifests import rendered, variables

Json = dict[str, Any]


async def install(spec: TaskSpec, context: TaskContext) -> TaskResult:
    applied = await context.cluster.apply_dependent(child_of(spec, context), context.owner)
    health = plan_health(applied)
    return DONE if health else TaskResult("waiting", health.message)


def child_of(spec: TaskSpec, context: TaskContext) -> Json:
    """Return the instance that a task installs."""
    name = spec.instance_name or f"{context.names.instance}-{spec.package}"
    version = operator_version_name(spec.package, spec.app_version, spec.operator_version)
    return {
        "apiVersion": API_VERSION,
        "kind": "Instance",
        "metadata": {
            "name": name,
            "namespace": context.names.namespace,
            "labels": {OPERATOR_LABEL: spec.package},
        },
        "spec": {"operatorVersion": {"name": version}, "parameters": _parameters(spec, context)},
    }


def _parameters(spec: TaskSpec, context: TaskContext) -> dict[str, str]:
    if not spec.parameter_file:
        return {}
    values = {**variables(context.names, context.params), "Args": dict(context.args)}
    text = rendered(context.templates, spec.parameter_file, values, context.world)
    try:
        return values_of_file(text, spec.parameter_file)
    except ParameterError as error:
        raise FatalError(str(error), RENDERING) from None
