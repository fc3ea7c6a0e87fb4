"""Runs a task by its kind, and turns its errors into results."""

from __future__ import annotations

from ostinato.api.errors import APIError
from ostinato.api.owners import OwnerError
from ostinato.client.transport.protocol import TransportError
from ostinato.frontends.plans.api import Task
from ostinato.frontends.plans.engine.execute import DONE, TaskResult
from ostinato.frontends.plans.tasks.child import install
from ostinato.frontends.plans.tasks.cluster import Waiting
from ostinato.frontends.plans.tasks.context import TaskContext
from ostinato.frontends.plans.tasks.errors import BUILD, DUMMY, FatalError
from ostinato.frontends.plans.tasks.pipe import pipe, pipe_problem
from ostinato.frontends.plans.tasks.resources import apply, delete, is_enabled


async def run_task(task: Task, context: TaskContext) -> TaskResult:
    """Try a task once."""
    problem = task_problem(task)
    if problem:
        return fatal(f"failed to build task {context.names.path}: {problem}", BUILD, context)
    try:
        return await _run(task, context)
    except FatalError as error:
        return fatal(f"failed in {context.names.path}: {error}", error.reason, context)
    except Waiting as waiting:
        return TaskResult("waiting", str(waiting))
    except (APIError, TransportError, OwnerError, _TransientError) as error:
        message = f"A transient error when executing task {context.names.path}. Will retry. {error}"
        return TaskResult("error", message)


def fatal(cause: str, reason: str, context: TaskContext) -> TaskResult:
    message = f"Error during execution: fatal error: {context.names.namespace}/{context.names.instance} {cause}"
    return TaskResult("fatal", message, reason)


class _TransientError(Exception):
    pass


async def _run(task: Task, context: TaskContext) -> TaskResult:
    resources = task.spec.resources or []
    match task.kind:
        case "Apply":
            return await apply(resources, context)
        case "Delete":
            return await delete(resources, context)
        case "Toggle":
            chosen = apply if is_enabled(task.spec.parameter, context) else delete
            return await chosen(resources, context)
        case "Pipe":
            return await pipe(task.spec, context)
        case "KudoOperator":
            return await install(task.spec, context)
        case _:
            return _dummy(task)


def _dummy(task: Task) -> TaskResult:
    """Succeed or fail as the task says; for tests of packages."""
    if task.spec.want_err:
        if task.spec.fatal:
            raise FatalError("dummy error", DUMMY)
        raise _TransientError("dummy error")
    return DONE if task.spec.done else TaskResult("waiting", "dummy task is not done")


def task_problem(task: Task) -> str:
    """Return why a task cannot be run, or ""."""
    match task.kind:
        case "Apply" | "Delete" | "Toggle":
            if not task.spec.resources:
                kind = task.kind.lower()
                return f"task validation error: {kind} task '{task.name}' has an empty resource list; use a Dummy task"
            if task.kind == "Toggle" and not task.spec.parameter:
                return "task validation error: Missing parameter to evaluate the Toggle Task"
        case "Pipe":
            if not task.spec.pipe:
                return "task validation error: pipe task has an empty pipe files list"
            found = "; ".join(filter(None, map(pipe_problem, task.spec.pipe)))
            return found and f"task validation error: {found}"
        case "KudoOperator":
            if not task.spec.package:
                return f"task validation error: kudo operator task '{task.name}' has an empty package name"
            if not task.spec.operator_version:
                return f"task validation error: kudo operator task '{task.name}' has an empty operatorVersion"
        case "Dummy":
            pass
        case other:
            return f"unknown task kind {other}"
    return ""
