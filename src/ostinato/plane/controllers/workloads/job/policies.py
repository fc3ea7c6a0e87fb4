"""podFailurePolicy and successPolicy of Jobs."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from ostinato.kinds.batch_v1 import (
    Job,
    PodFailurePolicyOnExitCodesRequirement,
    PodFailurePolicyOnPodConditionsPattern,
    PodFailurePolicyRule,
    SuccessPolicyRule,
)
from ostinato.plane.controllers.workloads.job.indexes import Indexes
from ostinato.plane.controllers.workloads.job.pods import ContainerStatus, JobPod, has_failed


class PolicyMatch(msgspec.Struct, frozen=True):
    """Result of podFailurePolicy: the action, whether the failure counts, and the message if it fails the Job."""

    action: str = "Count"
    counts: bool = True
    message: str = ""


_COUNTS = PolicyMatch()


def match_failure_policy(job: Job, pod: JobPod) -> PolicyMatch:
    """Match a failed Pod against podFailurePolicy; without a matching rule the failure counts."""
    policy = job.spec.pod_failure_policy
    for number, rule in enumerate(policy.rules if policy is not None else ()):
        what = _match_description(rule, pod)
        if what:
            message = f"{what} matching {rule.action} rule at index {number}"
            return PolicyMatch(rule.action, rule.action != "Ignore", message if rule.action == "FailJob" else "")
    return _COUNTS


def job_failure_message(job: Job, pods: Iterable[JobPod]) -> str:
    """Return the message of a Pod failure that fails the Job; "" if there is none."""
    if job.spec.pod_failure_policy is None:
        return ""
    return next(
        (message for pod in pods if has_failed(pod, job) and (message := match_failure_policy(job, pod).message)), ""
    )


def _match_description(rule: PodFailurePolicyRule, pod: JobPod) -> str:
    name = f"{pod.metadata.namespace}/{pod.metadata.name}"
    if rule.on_exit_codes is not None:
        statuses = (*pod.status.container_statuses, *pod.status.init_container_statuses)
        found = next((each for each in statuses if _has_code(each, rule.on_exit_codes)), None)
        if found is None or found.state.terminated is None:
            return ""
        return f"Container {found.name} for pod {name} failed with exit code {found.state.terminated.exit_code}"
    for condition in pod.status.conditions:
        if any(_matches_condition(each, condition.type, condition.status) for each in rule.on_pod_conditions):
            return f"Pod {name} has condition {condition.type}"
    return ""


def _matches_condition(pattern: PodFailurePolicyOnPodConditionsPattern, kind: str, status: str) -> bool:
    return pattern.type == kind and (pattern.status or "True") == status


def _has_code(status: ContainerStatus, wanted: PodFailurePolicyOnExitCodesRequirement) -> bool:
    ended = status.state.terminated
    if ended is None or ended.exit_code == 0 or (wanted.container_name or status.name) != status.name:
        return False
    return (ended.exit_code in wanted.values) == (wanted.operator == "In")


def match_success_policy(job: Job, succeeded: Indexes) -> str:
    """Return the message of the matching successPolicy rule; "" if none matches."""
    policy = job.spec.success_policy
    if policy is None or not succeeded:
        return ""
    for number, rule in enumerate(policy.rules):
        if _is_enough(rule, succeeded, job.spec.completions or 0):
            return f"Matched rules at index {number}"
    return ""


def _is_enough(rule: SuccessPolicyRule, succeeded: Indexes, completions: int) -> bool:
    if rule.succeeded_indexes is None:
        return rule.succeeded_count is not None and len(succeeded) >= rule.succeeded_count
    wanted = Indexes.parse(rule.succeeded_indexes, completions)
    found = len(wanted & succeeded)
    return bool(wanted) and (
        found == len(wanted) or (rule.succeeded_count is not None and found >= rule.succeeded_count)
    )
