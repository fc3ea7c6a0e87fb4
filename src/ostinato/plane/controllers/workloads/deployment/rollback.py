"""Rollback by the deprecated annotation `deprecated.deployment.rollback.to`.

The Deployment gets template and annotations of the named revision; "0" is the previous one. The annotation is removed
and an event records the result.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import NamedTuple

from ostinato.cache import CachedClient
from ostinato.kinds.apps_v1 import Deployment, ReplicaSet
from ostinato.plane.controllers.workloads.deployment.revisions import (
    HASH,
    OWN_ANNOTATIONS,
    ROLLBACK_TO,
    integer,
    revision_of,
    same_template,
)


class RollbackEvent(NamedTuple):
    """Event that records the result of a rollback."""

    reason: str
    note: str
    kind: str = "Warning"


def requested_revision(deployment: Deployment) -> int | None:
    """Return the requested revision: 0 for the previous one, None without a valid request."""
    return integer(deployment.metadata.annotations.get(ROLLBACK_TO, ""))


async def roll_back(client: CachedClient, deployment: Deployment, sets: Sequence[ReplicaSet], to: int) -> RollbackEvent:
    """Write the Deployment with the template of that revision, if it is found, and without the annotation."""
    revision = to or _previous_revision(sets)
    found = next((each for each in sets if revision and revision_of(each) == revision), None)
    event = _restore(deployment, found, revision)
    if found is None and to == 0 and not revision:
        event = RollbackEvent("DeploymentRollbackRevisionNotFound", "Unable to find last revision.")
    deployment.metadata.annotations.pop(ROLLBACK_TO, None)
    await client.update(deployment)
    return event


def _restore(deployment: Deployment, found: ReplicaSet | None, revision: int) -> RollbackEvent:
    name = deployment.metadata.name
    if found is None or found.spec.template is None:
        return RollbackEvent("DeploymentRollbackRevisionNotFound", "Unable to find the revision to rollback to.")
    if same_template(found.spec.template, deployment.spec.template):
        note = f'The rollback revision contains the same template as current deployment "{name}"'
        return RollbackEvent("DeploymentRollbackTemplateUnchanged", note)
    template = copy.deepcopy(found.spec.template)
    template.metadata.labels.pop(HASH, None)
    deployment.spec.template = template
    kept = {key: value for key, value in deployment.metadata.annotations.items() if key in OWN_ANNOTATIONS}
    theirs = {key: value for key, value in found.metadata.annotations.items() if key not in OWN_ANNOTATIONS}
    deployment.metadata.annotations = {**kept, **theirs}
    return RollbackEvent("DeploymentRollback", f'Rolled back deployment "{name}" to revision {revision}', "Normal")


def _previous_revision(sets: Sequence[ReplicaSet]) -> int:
    """Return the second highest revision; 0 if there is none."""
    found = sorted((revision_of(each) or 0 for each in sets), reverse=True)
    return found[1] if len(found) > 1 else 0
