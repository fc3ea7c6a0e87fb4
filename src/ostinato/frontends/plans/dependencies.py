"""Dependencies among operators: the versions that KudoOperator tasks install, and cycles among them."""

from __future__ import annotations

from typing import Any

from ostinato.api import accessors as access
from ostinato.api.owners import owner_references
from ostinato.cache.client import CachedClient
from ostinato.frontends.plans.api import OperatorVersionSpec, operator_version_name
from ostinato.frontends.plans.decisions.deciding import Version
from ostinato.frontends.plans.subjects import Instances, Subject

Json = dict[str, Any]


def children_of(version: OperatorVersionSpec) -> list[str]:
    """Return the names of the operator versions that the tasks of a version install."""
    return [
        operator_version_name(each.spec.package, each.spec.app_version, each.spec.operator_version)
        for each in version.tasks
        if each.kind == "KudoOperator"
    ]


async def cycle_problem(version: Version, subject: Subject, instance: Json, client: CachedClient) -> str:
    """Return why the dependencies of an object cannot be installed: one is missing, or depends on itself; or "".

    An object that another one installs is not checked: its parent was.
    """
    if any(each.kind == "Instance" for each in owner_references(instance)) or not children_of(version.spec):
        return ""
    known = subject if isinstance(subject, Instances) else Instances()
    root = Version(version.name, version.namespace or access.namespace(instance), version.spec)
    return await _walk(root, (version.name,), known, client)


async def _walk(version: Version, path: tuple[str, ...], subject: Instances, client: CachedClient) -> str:
    for name in children_of(version.spec):
        if name in path:
            return f"cyclic package dependency found when adding package {path[-1]} -> {name}"
        child = await subject.version(name, version.namespace, client)
        if child is None:
            return f"failed to resolve operator version {version.namespace}/{name}, dependency of {path[-1]}"
        problem = await _walk(child, (*path, name), subject, client)
        if problem:
            return problem
    return ""
