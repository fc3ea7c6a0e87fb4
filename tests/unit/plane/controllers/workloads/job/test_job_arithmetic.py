"""Pure functions of the Job controller: indexes, backoff, policies, deletion order."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ostinato.api.codec import from_dict
from ostinato.kinds.batch_v1 import Job, JobStatus, UncountedTerminatedPods
from ostinato.plane.controllers.workloads.job.backoff import Failures, of_index
from ostinato.plane.controllers.workloads.job.indexes import Indexes
from ostinato.plane.controllers.workloads.job.new_pod import new_pod
from ostinato.plane.controllers.workloads.job.pods import JobPod, deletion_order, finished_at, index_of
from ostinato.plane.controllers.workloads.job.policies import match_failure_policy, match_success_policy
from ostinato.plane.controllers.workloads.job.tracking import count_untracked

NOW = datetime(2026, 1, 1, tzinfo=UTC)
INDEX = "batch.kubernetes.io/job-completion-index"


def job(**spec: Any) -> Job:
    template = {"spec": {"containers": [{"name": "app", "image": "a"}]}}
    meta = {"name": "work", "namespace": "n", "uid": "u"}
    return from_dict(Job, {"metadata": meta, "spec": {"template": template, **spec}})


def pod(name: str = "p", **more: Any) -> JobPod:
    meta = {"name": name, "namespace": "n", "uid": name, "creationTimestamp": "2026-01-01T00:00:00Z"}
    return from_dict(JobPod, {"metadata": {**meta, **more.pop("metadata", {})}, **more})


def ended(name: str, seconds: int, code: int = 1) -> JobPod:
    moment = (NOW + timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")
    status = {"name": "app", "state": {"terminated": {"exitCode": code, "finishedAt": moment}}}
    return pod(name, status={"phase": "Failed" if code else "Succeeded", "containerStatuses": [status]})


@pytest.mark.parametrize(
    ("text", "completions", "expected", "size"),
    [
        ("", 10, "", 0),
        ("0", 10, "0", 1),
        ("0,1", 10, "0,1", 2),
        ("0,1,2", 10, "0-2", 3),
        ("1,3-5,7", 10, "1,3-5,7", 5),
        ("0-3,4-6", 10, "0-6", 7),
        ("0-20", 10, "0-9", 10),
        ("3,12,14", 10, "3", 1),
        ("nonsense,2,-,4-x", 10, "2", 1),
        ("5-3", 10, "", 0),
    ],
)
def test_indexes_are_read_and_written(text: str, completions: int, expected: str, size: int) -> None:
    found = Indexes.parse(text, completions)
    assert (str(found), len(found)) == (expected, size)


@given(st.frozensets(st.integers(0, 40)), st.frozensets(st.integers(0, 40)))
def test_indexes_are_sets(one: frozenset[int], two: frozenset[int]) -> None:
    first, second = Indexes.of(one), Indexes.of(two)
    assert first | second == Indexes.of(one | two)
    assert first & second == Indexes.of(one & two)
    assert len(first) == len(one)
    assert Indexes.parse(str(first), 100) == first
    assert list(first.missing(41)) == sorted(set(range(41)) - one)
    assert all((each in first) == (each in one) for each in range(41))


@pytest.mark.parametrize(
    ("count", "ago", "expected"), [(0, 0, 0), (1, 0, 10), (1, 4, 6), (1, 11, 0), (2, 0, 20), (7, 0, 600), (60, 0, 600)]
)
def test_each_failure_doubles_the_wait(count: int, ago: int, expected: float) -> None:
    assert Failures(count, NOW - timedelta(seconds=ago)).wait(NOW) == expected


def test_failures_count_from_the_last_success() -> None:
    before = Failures(3, NOW)
    assert before.after([], []) == before
    assert before.after([], [ended("a", 5), ended("b", 2)]) == Failures(5, NOW + timedelta(seconds=5))
    assert before.after([ended("c", 3, 0)], []) == Failures()
    assert before.after([ended("c", 3, 0)], [ended("a", 5), ended("b", 2)]) == Failures(1, NOW + timedelta(seconds=5))


def test_failures_of_an_index_are_in_the_annotations_of_its_last_pod() -> None:
    last = ended("a", 7)
    last.metadata.annotations = {
        "batch.kubernetes.io/job-index-failure-count": "2",
        "batch.kubernetes.io/job-index-ignored-failure-count": "1",
    }
    assert of_index(last) == Failures(4, NOW + timedelta(seconds=7))
    assert of_index(None) == Failures()
    last.metadata.annotations = {"batch.kubernetes.io/job-index-failure-count": "99999999999999"}
    assert of_index(last).count == 1


@pytest.mark.parametrize(
    ("more", "seconds"),
    [
        ({}, 0),
        (
            {
                "status": {
                    "conditions": [{"type": "Ready", "status": "False", "lastTransitionTime": "2026-01-01T00:00:09Z"}]
                }
            },
            9,
        ),
        ({"metadata": {"deletionTimestamp": "2026-01-01T00:00:40Z", "deletionGracePeriodSeconds": 30}}, 10),
        (
            {
                "status": {
                    "containerStatuses": [
                        {"name": "a", "state": {"terminated": {"finishedAt": "2026-01-01T00:00:03Z"}}},
                        {"name": "b", "state": {"terminated": {"finishedAt": "2026-01-01T00:00:02Z"}}},
                    ]
                }
            },
            3,
        ),
    ],
)
def test_finish_time_of_a_pod(more: dict[str, Any], seconds: int) -> None:
    assert finished_at(pod(**more)) == NOW + timedelta(seconds=seconds)


@pytest.mark.parametrize(
    ("text", "expected"), [("0", 0), ("17", 17), ("-1", None), ("x", None), ("", None), ("²", None)]
)
def test_an_index_is_a_number(text: str, expected: int | None) -> None:
    assert index_of(pod(metadata={"annotations": {INDEX: text}})) == expected


def test_pods_with_the_least_progress_are_deleted_first() -> None:
    ready = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    found = deletion_order(
        [
            pod("ready", spec={"nodeName": "n"}, status=ready),
            pod("running", spec={"nodeName": "n"}, status={"phase": "Running"}),
            pod("pending", spec={"nodeName": "n"}, status={"phase": "Pending"}),
            pod("unassigned", status={"phase": "Pending"}),
            pod("newer", metadata={"creationTimestamp": "2026-01-02T00:00:00Z"}, status={"phase": "Pending"}),
        ]
    )
    assert [each.metadata.name for each in found] == ["newer", "unassigned", "pending", "running", "ready"]


def test_the_first_matching_rule_applies() -> None:
    rules = [
        {"action": "Count", "onExitCodes": {"containerName": "other", "operator": "In", "values": [1]}},
        {"action": "Ignore", "onExitCodes": {"operator": "In", "values": [1]}},
        {"action": "FailJob", "onExitCodes": {"operator": "NotIn", "values": [1]}},
    ]
    work = job(podFailurePolicy={"rules": rules})
    assert match_failure_policy(work, ended("a", 0, 1)).action == "Ignore"
    assert not match_failure_policy(work, ended("a", 0, 1)).counts
    assert match_failure_policy(work, ended("a", 0, 2)).message.endswith(
        "failed with exit code 2 matching FailJob rule at index 2"
    )
    assert match_failure_policy(work, pod(status={"phase": "Failed"})).action == "Count"
    assert match_failure_policy(job(), ended("a", 0, 1)).counts


@pytest.mark.parametrize(
    ("rule", "succeeded", "enough"),
    [
        ({"succeededIndexes": "0"}, "0", True),
        ({"succeededIndexes": "0-2"}, "0,2", False),
        ({"succeededIndexes": "0-2", "succeededCount": 2}, "0,2", True),
        ({"succeededIndexes": "0-2", "succeededCount": 2}, "2-5", False),
        ({"succeededCount": 3}, "2-4", True),
        ({"succeededCount": 3}, "2,4", False),
    ],
)
def test_success_policy_rules(rule: dict[str, Any], succeeded: str, enough: bool) -> None:
    work = job(completions=6, completionMode="Indexed", successPolicy={"rules": [{"succeededCount": 6}, rule]})
    said = match_success_policy(work, Indexes.parse(succeeded, 6))
    assert said == ("Matched rules at index 1" if enough else "")


def test_uids_become_counts_when_the_finalizer_is_removed() -> None:
    status = JobStatus(failed=1, uncounted_terminated_pods=UncountedTerminatedPods(succeeded=["a", "b"], failed=["c"]))
    count_untracked(status, {"b"})
    assert (status.succeeded, status.failed) == (1, 2)
    assert status.uncounted_terminated_pods == UncountedTerminatedPods(succeeded=["b"])


def test_a_long_name_leaves_room_for_the_index_and_five_characters() -> None:
    work = job()
    work.metadata.name = "n" * 63
    made = new_pod(work, 1234)
    assert len(made.metadata.generate_name) == 58
    assert made.metadata.generate_name.endswith("n-1234-")
