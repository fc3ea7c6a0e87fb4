"""Builds the Pods of a Job."""

from __future__ import annotations

from typing import Final

from ostinato.kinds.batch_v1 import Job
from ostinato.kinds.core_v1 import Container, EnvVar, EnvVarSource, ObjectFieldSelector, Pod
from ostinato.plane.controllers.workloads.job.pods import (
    FAILURES,
    IGNORED_FAILURES,
    INDEX,
    TRACKING,
    JobPod,
    failure_count,
    ignored_failure_count,
)
from ostinato.plane.controllers.workloads.job.policies import match_failure_policy
from ostinato.plane.controllers.workloads.pod_template import pod_from_template

_VARIABLE: Final = "JOB_COMPLETION_INDEX"
_MAX_PREFIX: Final = 58  # of generateName


def new_pod(job: Job, index: int | None, replaced: JobPod | None = None) -> Pod:
    """Return a Pod for an index, or for none. `replaced`: the last failed Pod of the index."""
    pod = pod_from_template(job.spec.template, job)
    if TRACKING not in pod.metadata.finalizers:
        pod.metadata.finalizers.append(TRACKING)
    if index is None:
        return pod
    pod.metadata.annotations[INDEX] = pod.metadata.labels[INDEX] = str(index)
    pod.metadata.generate_name = _prefix(job.metadata.name, f"-{index}-")
    if pod.spec is not None:
        pod.spec.hostname = f"{job.metadata.name}-{index}"
        for container in (*pod.spec.init_containers, *pod.spec.containers):
            _add_index_variable(container)
    if job.spec.backoff_limit_per_index is not None:
        failures, ignored = _failures(job, replaced)
        pod.metadata.annotations[FAILURES] = str(failures)
        if ignored:
            pod.metadata.annotations[IGNORED_FAILURES] = str(ignored)
    return pod


def _prefix(name: str, suffix: str) -> str:
    whole = name + suffix
    return whole if len(whole) <= _MAX_PREFIX else whole[: _MAX_PREFIX - len(suffix)] + suffix


def _add_index_variable(container: Container) -> None:
    if all(each.name != _VARIABLE for each in container.env):
        field = ObjectFieldSelector(field_path=f"metadata.labels['{INDEX}']")
        container.env = [*container.env, EnvVar(name=_VARIABLE, value_from=EnvVarSource(field_ref=field))]


def _failures(job: Job, replaced: JobPod | None) -> tuple[int, int]:
    if replaced is None:
        return 0, 0
    counts = match_failure_policy(job, replaced).counts
    return failure_count(replaced) + counts, ignored_failure_count(replaced) + (not counts)
