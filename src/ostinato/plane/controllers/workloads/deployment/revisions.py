"""Revisions: the ReplicaSet of a Deployment's template, and its annotations.

- The new ReplicaSet has the Deployment's template, except for the label `pod-template-hash`; of several, the oldest.
- A new or restored template gets the highest revision; earlier revisions of a ReplicaSet are kept in its revision
  history.
- Annotations of the Deployment are copied to the new ReplicaSet, so that a change cause stays with its revision.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from hashlib import blake2b
from typing import Final

import msgspec

from ostinato.api.codec import to_dict
from ostinato.api.meta import LabelSelector, ObjectMeta
from ostinato.api.owners import controller_reference_to
from ostinato.kinds.apps_v1 import Deployment, ReplicaSet, ReplicaSetSpec
from ostinato.kinds.core_v1 import PodTemplateSpec
from ostinato.world.ids import hash_text

HASH: Final = "pod-template-hash"
REVISION: Final = "deployment.kubernetes.io/revision"
HISTORY: Final = "deployment.kubernetes.io/revision-history"
DESIRED: Final = "deployment.kubernetes.io/desired-replicas"
MAXIMUM: Final = "deployment.kubernetes.io/max-replicas"
ROLLBACK_TO: Final = "deprecated.deployment.rollback.to"
OWN_ANNOTATIONS: Final = frozenset(
    {
        "kubectl.kubernetes.io/last-applied-configuration",
        ROLLBACK_TO,
        REVISION,
        HISTORY,
        DESIRED,
        MAXIMUM,
    }
)
_LONGEST_HISTORY: Final = 2000
_LONGEST_NAME: Final = 253
_INT32: Final = 2**31
_INT64: Final = 2**63


def integer(text: str) -> int | None:
    """Parse a 64-bit integer of an annotation; None if it is invalid."""
    try:
        number = int(text) if text.removeprefix("-").removeprefix("+").isdecimal() and text.isascii() else None
    except ValueError:
        return None
    return number if number is not None and -_INT64 <= number < _INT64 else None


def same_template(one: PodTemplateSpec | None, other: PodTemplateSpec | None) -> bool:
    """Return whether two templates are equal, except for pod-template-hash."""
    if one is None or other is None:
        return one is other
    return one.spec == other.spec and _unhashed(one.metadata) == _unhashed(other.metadata)


def revision_of(replica_set: ReplicaSet) -> int | None:
    """Return the revision; 0 if it has none, None if it is invalid."""
    return integer(replica_set.metadata.annotations.get(REVISION, "0"))


def next_revision(others: Sequence[ReplicaSet]) -> int:
    """Return the revision after the highest of the others."""
    return max((revision_of(each) or 0 for each in others), default=0) + 1


def number_in(replica_set: ReplicaSet, annotation: str) -> int | None:
    """Return an integer annotation; None if it is missing or invalid."""
    number = integer(replica_set.metadata.annotations.get(annotation, ""))
    return number if number is not None and 0 <= number < _INT32 else None


def scale_annotations(replicas: int, maximum: int) -> dict[str, str]:
    """Return the annotations desired-replicas and max-replicas, by which a scaling event is detected."""
    return {DESIRED: str(replicas), MAXIMUM: str(maximum)}


def new_annotations(deployment: Deployment, annotations: dict[str, str], revision: int) -> dict[str, str]:
    """Return the annotations of the new ReplicaSet, given its current ones."""
    copied = {name: value for name, value in deployment.metadata.annotations.items() if name not in OWN_ANNOTATIONS}
    changed = {**annotations, **copied}
    before = annotations.get(REVISION, "")
    number = integer(before) if before else 0
    if number is None or number >= revision:
        return changed
    changed[REVISION] = str(revision)
    if REVISION in annotations:
        changed[HISTORY] = _extended(annotations.get(HISTORY, ""), before)
    return changed


def new_replica_set(deployment: Deployment, collisions: int) -> ReplicaSet:
    """Return a new ReplicaSet for the Deployment's template, with 0 replicas."""
    template = copy.deepcopy(deployment.spec.template)
    code = template_hash(template, collisions)
    template.metadata.labels[HASH] = code
    selector = copy.deepcopy(deployment.spec.selector)
    selector = LabelSelector(
        match_labels={**selector.match_labels, HASH: code}, match_expressions=selector.match_expressions
    )
    return ReplicaSet(
        metadata=ObjectMeta(
            name=f"{deployment.metadata.name[: _LONGEST_NAME - 1 - len(code)]}-{code}",
            namespace=deployment.metadata.namespace,
            labels=dict(template.metadata.labels),
            owner_references=[controller_reference_to(deployment)],
        ),
        spec=ReplicaSetSpec(
            replicas=0,
            min_ready_seconds=deployment.spec.min_ready_seconds,
            selector=selector,
            template=template,
        ),
    )


def template_hash(template: PodTemplateSpec, collisions: int) -> str:
    """Return the pod-template-hash; the collision count changes it."""
    digest = blake2b(msgspec.json.encode(to_dict(template), order="deterministic"), digest_size=4)
    if collisions:
        digest.update(collisions.to_bytes(4, "little"))
    return hash_text(int.from_bytes(digest.digest(), "little"))


def _extended(history: str, revision: str) -> str:
    """Append a revision to the history annotation; drop the oldest beyond its size limit."""
    revisions = history.split(",") if history else []
    revisions.append(revision)
    while len(revisions) > 1 and len(",".join(revisions)) > _LONGEST_HISTORY:
        revisions.pop(0)
    return ",".join(revisions)


def _unhashed(metadata: ObjectMeta) -> ObjectMeta:
    labels = {name: value for name, value in metadata.labels.items() if name != HASH}
    return msgspec.structs.replace(metadata, labels=labels)
