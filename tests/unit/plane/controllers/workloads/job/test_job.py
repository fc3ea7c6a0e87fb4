"""Job controller: number of Pods, counting, completion."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tests.stage.plane import Stage, on_stage

from ostinato.api.meta import ObjectMeta
from ostinato.client import MergePatch
from ostinato.kinds.batch_v1 import Job
from ostinato.kinds.core_v1 import Pod, ResourceQuota, ServiceAccount

JOBS = ("job-controller", "serviceaccount-controller")
GARBAGE = "garbage-collector-controller"
TRACKING = "batch.kubernetes.io/job-tracking"
INDEX = "batch.kubernetes.io/job-completion-index"
Json = dict[str, Any]


def job(name: str = "work", *, policy: str = "Never", **spec: Any) -> Json:
    template = {"spec": {"restartPolicy": policy, "containers": [{"name": "app", "image": "work:1"}]}}
    meta = {"name": name, "namespace": "default"}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": meta, "spec": {"template": template, **spec}}


async def begun(stage: Stage, **spec: Any) -> None:
    await stage.client.create(job(**spec))
    await stage.settle()


async def pods(stage: Stage) -> list[Pod]:
    found = await stage.client.list(Pod, namespace="default")
    return sorted(found, key=lambda pod: (pod.metadata.labels.get(INDEX, ""), int(pod.metadata.resource_version)))


async def active(stage: Stage) -> list[Pod]:
    return [each for each in await pods(stage) if each.status.phase in ("Pending", "Running")]


async def end(stage: Stage, some: Sequence[Pod], code: int = 0, **more: Any) -> None:
    """Terminate the Pods with an exit code."""
    now = stage.world.clock.now().strftime("%Y-%m-%dT%H:%M:%SZ")
    ended = {"terminated": {"exitCode": code, "finishedAt": now, "startedAt": now}}
    status = {"name": "app", "image": "work:1", "imageID": "", "ready": False, "restartCount": 0, "state": ended}
    for pod in some:
        phase = "Failed" if code else "Succeeded"
        await stage.set_pod_status(pod, **{"phase": phase, "containerStatuses": [status], **more})
    await stage.settle()


async def made_ready(stage: Stage) -> None:
    for pod in await active(stage):
        condition = {"type": "Ready", "status": "True"}
        await stage.set_pod_status(pod, phase="Running", conditions=[condition])
    await stage.settle()


async def changed(stage: Stage, **spec: Any) -> None:
    await stage.client.patch(Job, "work", MergePatch({"spec": spec}))
    await stage.settle()


async def read(stage: Stage) -> Job:
    return await stage.client.get(Job, "work")


async def counts(stage: Stage) -> tuple[int, int, int]:
    status = (await read(stage)).status
    return status.active or 0, status.succeeded or 0, status.failed or 0


async def ends(stage: Stage) -> dict[str, str]:
    """True conditions and their reasons."""
    conditions = (await read(stage)).status.conditions
    return {each.type: each.reason or "" for each in conditions if each.status == "True"}


def complete(reason: str = "CompletionsReached") -> dict[str, str]:
    return {"SuccessCriteriaMet": reason, "Complete": reason}


def failed(reason: str) -> dict[str, str]:
    return {"FailureTarget": reason, "Failed": reason}


def test_a_job_runs_parallelism_pods_until_completions_are_reached() -> None:
    async def play(stage: Stage) -> None:
        await begun(stage, completions=3, parallelism=2)
        first = await pods(stage)
        assert [each.metadata.finalizers for each in first] == [[TRACKING], [TRACKING]]
        assert all(each.metadata.labels["batch.kubernetes.io/job-name"] == "work" for each in first)
        assert await counts(stage) == (2, 0, 0)
        await end(stage, first)
        assert await counts(stage) == (1, 2, 0)
        await end(stage, await active(stage))
        done = await read(stage)
        assert await ends(stage) == complete()
        assert (done.status.succeeded, done.status.active, done.status.ready) == (3, None, 0)
        assert done.status.completion_time is not None
        assert done.status.start_time is not None
        assert done.status.uncounted_terminated_pods is not None
        assert not done.status.uncounted_terminated_pods.succeeded
        assert not any(each.metadata.finalizers for each in await pods(stage))
        told = await stage.events("work")
        assert told.count(("Completed", "Job completed")) == 1
        assert [each[0] for each in told].count("SuccessfulCreate") == 3
        before = stage.version
        await stage.world.clock.sleep(600)
        assert stage.version == before

    on_stage(play, *JOBS)


def test_a_work_queue_job_completes_when_one_pod_succeeded_and_all_have_finished() -> None:
    async def play(stage: Stage) -> None:
        await begun(stage, parallelism=2)
        first, second = await pods(stage)
        await end(stage, [first])
        assert await counts(stage) == (1, 1, 0)
        assert await ends(stage) == {}
        await end(stage, [second])
        assert await ends(stage) == complete()
        assert len(await pods(stage)) == 2

    on_stage(play, *JOBS)


def test_reducing_parallelism_is_not_a_failure() -> None:
    async def play(stage: Stage) -> None:
        await begun(stage, completions=5, parallelism=1)
        await changed(stage, parallelism=3)
        await made_ready(stage)
        assert (await read(stage)).status.ready == 3
        await changed(stage, parallelism=2)
        assert await counts(stage) == (2, 0, 0)
        assert len(await pods(stage)) == 2
        assert (await read(stage)).status.terminating == 0

    on_stage(play, *JOBS)


def test_a_failed_pod_is_replaced_after_ten_seconds_then_twenty() -> None:
    async def play(stage: Stage) -> None:
        await begun(stage)
        for wait in (10, 20, 40):
            await end(stage, await active(stage), 1)
            assert await active(stage) == []
            failed_at = stage.world.clock.monotonic() - 4  # two syncs until it is stable
            await stage.until(lambda: active(stage), limit=100)
            assert wait - 3 <= stage.world.clock.monotonic() - failed_at <= wait + 3
        assert await counts(stage) == (1, 0, 3)

    on_stage(play, *JOBS)


def test_a_success_resets_the_backoff() -> None:
    async def play(stage: Stage) -> None:
        await begun(stage, completions=3, parallelism=2)
        one, two = await pods(stage)
        await end(stage, [one], 1)
        await stage.world.clock.sleep(3)
        await end(stage, [two])
        assert len(await active(stage)) == 2

    on_stage(play, *JOBS)


def test_exceeding_the_backoff_limit_fails_the_job() -> None:
    async def play(stage: Stage) -> None:
        await begun(stage, backoffLimit=0, parallelism=2, completions=2)
        one, _ = await pods(stage)
        await end(stage, [one], 3)
        assert await ends(stage) == failed("BackoffLimitExceeded")
        assert await counts(stage) == (0, 0, 2)  # the other one was deleted
        assert (await read(stage)).status.completion_time is None
        assert ("BackoffLimitExceeded", "Job has reached the specified backoff limit") in await stage.events("work")

    on_stage(play, *JOBS)


def test_container_restarts_count_with_restart_policy_on_failure() -> None:
    async def play(stage: Stage) -> None:
        await begun(stage, backoffLimit=2, policy="OnFailure")
        (pod,) = await pods(stage)
        status = {"name": "app", "image": "work:1", "imageID": "", "ready": False, "restartCount": 2}
        await stage.set_pod_status(pod, phase="Running", containerStatuses=[status])
        await stage.settle()
        assert await ends(stage) == failed("BackoffLimitExceeded")

    on_stage(play, *JOBS)


def test_a_job_past_its_active_deadline_loses_its_pods() -> None:
    async def play(stage: Stage) -> None:
        await begun(stage, activeDeadlineSeconds=60, parallelism=2)
        await stage.world.clock.sleep(50)
        assert await ends(stage) == {}
        await stage.world.clock.sleep(15)
        assert await ends(stage) == failed("DeadlineExceeded")
        assert await counts(stage) == (0, 0, 2)
        assert await pods(stage) == []

    on_stage(play, *JOBS)


def test_a_suspended_job_has_no_pods_and_its_deadline_does_not_count() -> None:
    async def play(stage: Stage) -> None:
        await begun(stage, suspend=True, parallelism=2, completions=2, activeDeadlineSeconds=60)
        await stage.world.clock.sleep(100)
        assert await pods(stage) == []
        assert await ends(stage) == {"Suspended": "JobSuspended"}
        assert (await read(stage)).status.start_time is None
        await changed(stage, suspend=False)
        assert len(await pods(stage)) == 2
        assert await ends(stage) == {}
        assert (await read(stage)).status.start_time is not None
        await changed(stage, suspend=True)
        assert await pods(stage) == []
        assert await counts(stage) == (0, 0, 0)
        assert (await read(stage)).status.start_time is None
        told = {each[0] for each in await stage.events("work")}
        assert told == {"Suspended", "Resumed", "SuccessfulCreate", "SuccessfulDelete"}

    on_stage(play, *JOBS)


def test_an_indexed_job_has_a_pod_per_index() -> None:
    async def play(stage: Stage) -> None:
        await begun(stage, completions=5, parallelism=3, completionMode="Indexed")
        first = await pods(stage)
        assert [each.metadata.labels[INDEX] for each in first] == ["0", "1", "2"]
        assert first[1].metadata.annotations[INDEX] == "1"
        assert first[1].metadata.name.startswith("work-1-")
        assert first[1].spec.hostname == "work-1"
        assert [each.name for each in first[1].spec.containers[0].env] == ["JOB_COMPLETION_INDEX"]
        await end(stage, [first[0], first[2]])
        assert (await read(stage)).status.completed_indexes == "0,2"
        assert [each.metadata.labels[INDEX] for each in await active(stage)] == ["1", "3", "4"]
        await end(stage, [first[1]], 1)
        await stage.until(lambda: _has_index(stage, "1"), limit=30)
        await end(stage, await active(stage))
        assert (await read(stage)).status.completed_indexes == "0-4"
        assert await ends(stage) == complete()
        assert await counts(stage) == (0, 5, 1)

    on_stage(play, *JOBS)


async def _has_index(stage: Stage, index: str) -> bool:
    return any(each.metadata.labels[INDEX] == index for each in await active(stage))


def test_a_duplicate_pod_of_an_index_is_deleted() -> None:
    async def play(stage: Stage) -> None:
        await begun(stage, completions=2, parallelism=2, completionMode="Indexed")
        one, _ = await pods(stage)
        copy = Pod(
            metadata=ObjectMeta(
                name="copy",
                namespace="default",
                labels=one.metadata.labels,
                annotations=one.metadata.annotations,
                owner_references=one.metadata.owner_references,
                finalizers=one.metadata.finalizers,
            ),
            spec=one.spec,
        )
        await stage.client.create(copy)
        await stage.settle()
        assert sorted(each.metadata.labels[INDEX] for each in await pods(stage)) == ["0", "1"]

    on_stage(play, *JOBS)


def test_backoff_limit_per_index_fails_single_indexes() -> None:
    async def play(stage: Stage) -> None:
        await begun(stage, completions=3, parallelism=3, completionMode="Indexed", backoffLimitPerIndex=1)
        zero, one, two = await pods(stage)
        assert zero.metadata.annotations["batch.kubernetes.io/job-index-failure-count"] == "0"
        await end(stage, [one], 1)
        assert (await read(stage)).status.failed_indexes == ""
        await stage.until(lambda: _has_index(stage, "1"), limit=30)
        again = next(each for each in await active(stage) if each.metadata.labels[INDEX] == "1")
        assert again.metadata.annotations["batch.kubernetes.io/job-index-failure-count"] == "1"
        await end(stage, [again], 1)
        assert (await read(stage)).status.failed_indexes == "1"
        assert await ends(stage) == {}
        await end(stage, [zero, two])
        status = (await read(stage)).status
        assert (status.completed_indexes, status.failed_indexes, status.failed) == ("0,2", "1", 2)
        assert await ends(stage) == failed("FailedIndexes")

    on_stage(play, *JOBS)


def test_exceeding_max_failed_indexes_fails_the_job() -> None:
    async def play(stage: Stage) -> None:
        more = {"backoffLimitPerIndex": 0, "maxFailedIndexes": 1}
        await begun(stage, completions=4, parallelism=4, completionMode="Indexed", **more)
        await end(stage, (await pods(stage))[:2], 1)
        assert await ends(stage) == failed("MaxFailedIndexesExceeded")
        assert (await read(stage)).status.failed_indexes == "0,1"

    on_stage(play, *JOBS)


def test_pod_failure_policy_rules() -> None:
    rules = [
        {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]},
        {"action": "FailJob", "onExitCodes": {"containerName": "app", "operator": "In", "values": [42]}},
        {"action": "Ignore", "onExitCodes": {"operator": "NotIn", "values": [1, 2]}},
    ]

    async def play(stage: Stage) -> None:
        await begun(stage, completions=2, parallelism=2, backoffLimit=1, podFailurePolicy={"rules": rules})
        one, two = await pods(stage)
        await end(stage, [one], 1, conditions=[{"type": "DisruptionTarget", "status": "True"}])
        await end(stage, [two], 3)
        assert await counts(stage) == (0, 0, 0)
        await stage.until(lambda: active(stage), limit=60)
        one, two = await active(stage)
        await end(stage, [one], 1)
        assert await counts(stage) == (1, 0, 1)
        await end(stage, [two], 42)
        assert await ends(stage) == failed("PodFailurePolicy")
        message = (await read(stage)).status.conditions[-1].message
        name = f"default/{two.metadata.name}"
        assert message == f"Container app for pod {name} failed with exit code 42 matching FailJob rule at index 1"

    on_stage(play, *JOBS)


def test_pod_failure_policy_may_fail_an_index() -> None:
    rule = {"action": "FailIndex", "onExitCodes": {"operator": "In", "values": [42]}}

    async def play(stage: Stage) -> None:
        more = {"backoffLimitPerIndex": 5, "podFailurePolicy": {"rules": [rule]}}
        await begun(stage, completions=2, parallelism=2, completionMode="Indexed", **more)
        zero, one = await pods(stage)
        await end(stage, [zero], 42)
        assert (await read(stage)).status.failed_indexes == "0"
        await end(stage, [one])
        assert await ends(stage) == failed("FailedIndexes")

    on_stage(play, *JOBS)


def test_a_success_policy_completes_a_job_early() -> None:
    async def play(stage: Stage) -> None:
        rules = [{"succeededIndexes": "1-2", "succeededCount": 1}]
        more = {"successPolicy": {"rules": rules}}
        await begun(stage, completions=3, parallelism=3, completionMode="Indexed", **more)
        zero, one, _ = await pods(stage)
        await end(stage, [zero])
        assert await ends(stage) == {}
        await end(stage, [one])
        assert await ends(stage) == complete("SuccessPolicy")
        status = (await read(stage)).status
        assert (status.completed_indexes, status.failed, status.active) == ("0,1", None, None)
        assert status.conditions[-1].message == "Matched rules at index 0"
        assert [each.status.phase for each in await pods(stage)] == ["Succeeded", "Succeeded"]

    on_stage(play, *JOBS)


def test_a_deleted_pod_counts_as_failed_and_is_replaced() -> None:
    async def play(stage: Stage) -> None:
        await begun(stage)
        (pod,) = await pods(stage)
        await stage.client.delete(pod)
        await stage.settle()
        assert await counts(stage) == (0, 0, 1)
        await stage.until(lambda: active(stage), limit=30)
        await stage.settle()
        assert await counts(stage) == (1, 0, 1)

    on_stage(play, *JOBS)


def test_pod_replacement_policy_failed_waits_for_termination() -> None:
    async def play(stage: Stage) -> None:
        await begun(stage, podReplacementPolicy="Failed")
        (pod,) = await pods(stage)
        await stage.client.pods.bind(pod.metadata.name, "node")
        await stage.client.delete(pod)
        await stage.settle()
        assert len(await pods(stage)) == 1
        status = (await read(stage)).status
        assert (status.active, status.terminating, status.failed) == (None, 1, None)
        await end(stage, await pods(stage), 143)
        await stage.until(lambda: active(stage), limit=30)
        assert await counts(stage) == (1, 0, 1)

    on_stage(play, *JOBS)


def test_a_job_finishes_after_its_pods() -> None:
    async def play(stage: Stage) -> None:
        await begun(stage, activeDeadlineSeconds=30)
        (pod,) = await pods(stage)
        await stage.client.pods.bind(pod.metadata.name, "node")
        await stage.world.clock.sleep(40)
        status = (await read(stage)).status
        assert await ends(stage) == {"FailureTarget": "DeadlineExceeded"}
        assert (status.terminating, status.failed) == (1, 1)
        await stage.client.delete(Pod, pod.metadata.name, grace_period=0)
        await stage.settle()
        assert await ends(stage) == failed("DeadlineExceeded")

    on_stage(play, *JOBS)


def test_a_job_managed_by_another_controller_is_ignored() -> None:
    async def play(stage: Stage) -> None:
        await begun(stage, managedBy="example.com/other")
        assert await pods(stage) == []
        assert (await read(stage)).status.start_time is None

    on_stage(play, *JOBS)


def test_pods_of_a_deleted_job_lose_the_finalizer() -> None:
    async def play(stage: Stage) -> None:
        await begun(stage, parallelism=2)
        await stage.client.delete(Job, "work", propagation="Background")
        await stage.settle()
        assert await pods(stage) == []

    on_stage(play, *JOBS, GARBAGE)


def test_orphans_of_a_job_lose_the_finalizer_and_stay() -> None:
    async def play(stage: Stage) -> None:
        await begun(stage, parallelism=2)
        await stage.client.delete(Job, "work", propagation="Orphan")
        await stage.settle()
        assert [each.metadata.finalizers for each in await pods(stage)] == [[], []]

    on_stage(play, *JOBS, GARBAGE)


def test_foreground_deletion_of_a_job_removes_the_finalizer_of_its_pods() -> None:
    async def play(stage: Stage) -> None:
        await begun(stage, parallelism=2)
        await stage.client.delete(Job, "work", propagation="Foreground")
        await stage.settle()
        assert await pods(stage) == []
        assert await stage.client.get(Job, "work", missing=None) is None

    on_stage(play, *JOBS, GARBAGE)


def test_a_matching_orphan_is_adopted_with_the_finalizer() -> None:
    async def play(stage: Stage) -> None:
        meta = ObjectMeta(name="lonely", namespace="default", labels={"app": "x"})
        wanted = job(parallelism=1, manualSelector=True, selector={"matchLabels": {"app": "x"}})
        wanted["spec"]["template"]["metadata"] = {"labels": {"app": "x"}}
        spec = wanted["spec"]["template"]["spec"]
        await stage.until(lambda: _has_account(stage))
        await stage.client.create({"apiVersion": "v1", "kind": "Pod", "metadata": _json(meta), "spec": spec})
        await stage.client.create(wanted)
        await stage.settle()
        (pod,) = await pods(stage)
        assert pod.metadata.finalizers == [TRACKING]
        assert [each.name for each in pod.metadata.owner_references] == ["work"]

    on_stage(play, *JOBS)


def _json(meta: ObjectMeta) -> Json:
    return {"name": meta.name, "namespace": meta.namespace, "labels": meta.labels}


async def _has_account(stage: Stage) -> bool:
    return await stage.client.get(ServiceAccount, "default", missing=None) is not None


def test_rejected_pods_are_reported_and_retried_with_backoff() -> None:
    async def play(stage: Stage) -> None:
        none = {"pods": "0"}
        meta = {"name": "none", "namespace": "default"}
        quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": meta, "spec": {"hard": none}}
        await stage.client.create(quota)
        status = MergePatch({"status": {"hard": none, "used": none}})
        await stage.client.patch(ResourceQuota, "none", status, subresource="status")
        await stage.client.create(job(parallelism=50, completions=50))
        await stage.world.clock.sleep(600)
        assert await pods(stage) == []
        told = [each for each in await stage.events("work") if each[0] == "FailedCreate"]
        assert told
        assert "exceeded quota: none" in told[0][1]
        assert len(told) < 30
        await stage.client.delete(ResourceQuota, "none")
        await stage.until(lambda: active(stage), limit=70)
        await stage.settle()
        assert len(await active(stage)) == 50

    on_stage(play, *JOBS)


def test_a_job_that_always_fails_is_retried_at_most_every_ten_minutes() -> None:
    async def play(stage: Stage) -> None:
        await begun(stage, backoffLimit=1000)
        for _ in range(8):
            await stage.until(lambda: active(stage), limit=700)
            await end(stage, await active(stage), 1)
        assert await counts(stage) == (0, 0, 8)
        before = stage.version
        await stage.world.clock.sleep(500)
        assert stage.version == before

    on_stage(play, *JOBS)


def test_a_thousand_pods_are_counted_once_each() -> None:
    async def play(stage: Stage) -> None:
        await begun(stage, completions=1000, parallelism=1000)
        assert len(await active(stage)) == 1000
        await end(stage, await pods(stage))
        assert await counts(stage) == (0, 1000, 0)
        assert await ends(stage) == complete()

    on_stage(play, *JOBS)
