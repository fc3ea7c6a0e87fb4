"""CronJob controller: schedule, concurrency policy, history."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from tests.stage.plane import Stage, on_stage

from ostinato.api.codec import from_dict
from ostinato.api.text.cron import ScheduleError, parse_schedule
from ostinato.client import MergePatch
from ostinato.kinds.batch_v1 import CronJob, Job
from ostinato.manager import Manager
from ostinato.plane.controllers import Options
from ostinato.plane.controllers.workloads.cronjob import reconciler as cronjob
from ostinato.plane.controllers.workloads.cronjob.schedule import missed_schedules, seconds_until_next

CRON = "cronjob-controller"
GARBAGE = "garbage-collector-controller"
NOW = datetime(2026, 3, 1, 12, 0, 30, tzinfo=UTC)
Json = dict[str, Any]


def cron(schedule: str = "*/5 * * * *", **spec: Any) -> Json:
    template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "app", "image": "work:1"}]}}
    made = {"metadata": {"labels": {"from": "tick"}, "annotations": {"note": "kept"}}, "spec": {"template": template}}
    meta = {"name": "tick", "namespace": "default"}
    return {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": meta,
        "spec": {"schedule": schedule, "jobTemplate": made, **spec},
    }


async def jobs(stage: Stage) -> list[Job]:
    return sorted(await stage.client.list(Job), key=lambda each: each.metadata.name)


async def names(stage: Stage) -> list[str]:
    return [each.metadata.name for each in await jobs(stage)]


async def read(stage: Stage) -> CronJob:
    return await stage.client.get(CronJob, "tick")


async def until_minute(stage: Stage, minutes: int = 5, offset: float = 1.0) -> None:
    """Sleep until shortly after the next multiple of this many minutes."""
    period = minutes * 60
    await stage.world.clock.sleep(period - stage.world.clock.wall() % period + offset)


async def end(stage: Stage, job: Job, kind: str = "Complete") -> None:
    now = stage.world.clock.now().strftime("%Y-%m-%dT%H:%M:%SZ")
    announcement = "SuccessCriteriaMet" if kind == "Complete" else "FailureTarget"
    conditions = [{"type": each, "status": "True", "lastTransitionTime": now} for each in (announcement, kind)]
    status: Json = {"conditions": conditions, "startTime": now}
    if kind == "Complete":
        status["completionTime"] = now
        status["succeeded"] = 1
    await stage.client.patch(Job, job.metadata, MergePatch({"status": status}), subresource="status")


def test_a_job_begins_at_every_time_of_the_schedule() -> None:
    async def play(stage: Stage) -> None:
        await stage.client.create(cron())
        await stage.settle()
        assert await jobs(stage) == []
        await until_minute(stage)
        (job,) = await jobs(stage)
        minute = int(stage.world.clock.wall()) // 60
        assert job.metadata.name == f"tick-{minute}"
        assert job.metadata.labels["from"] == "tick"
        assert job.metadata.annotations["note"] == "kept"
        when = datetime.fromtimestamp(minute * 60, UTC)
        timestamp = job.metadata.annotations["batch.kubernetes.io/cronjob-scheduled-timestamp"]
        assert timestamp == when.strftime("%Y-%m-%dT%H:%M:%SZ")
        assert [each.name for each in job.metadata.owner_references] == ["tick"]
        status = (await read(stage)).status
        assert [each.name for each in status.active] == [job.metadata.name]
        assert status.last_schedule_time == when
        await end(stage, job)
        await stage.settle()
        status = (await read(stage)).status
        assert status.active == []
        assert status.last_successful_time is not None
        await until_minute(stage)
        assert len(await jobs(stage)) == 2
        told = await stage.events("tick")
        assert ("SuccessfulCreate", f"Created job {job.metadata.name}") in told
        assert ("SawCompletedJob", f"Saw completed job: {job.metadata.name}, condition: Complete") in told

    on_stage(play, CRON)


def test_a_resumed_cronjob_starts_the_last_missed_run() -> None:
    async def play(stage: Stage) -> None:
        await stage.client.create(cron(suspend=True))
        await stage.world.clock.sleep(1000)
        assert await jobs(stage) == []
        assert (await read(stage)).status.last_schedule_time is None
        await stage.client.patch(CronJob, "tick", MergePatch({"spec": {"suspend": False}}))
        await stage.settle()
        assert len(await jobs(stage)) == 1

    on_stage(play, CRON)


def test_concurrency_policy_allow_starts_a_second_job() -> None:
    async def play(stage: Stage) -> None:
        await stage.client.create(cron(concurrencyPolicy="Allow"))
        for _ in range(3):
            await until_minute(stage)
        assert len((await read(stage)).status.active) == 3

    on_stage(play, CRON)


def test_concurrency_policy_forbid_skips_the_run() -> None:
    async def play(stage: Stage) -> None:
        await stage.client.create(cron(concurrencyPolicy="Forbid"))
        for _ in range(3):
            await until_minute(stage)
        (job,) = await jobs(stage)
        said = "Not starting job because prior execution is running and concurrency policy is Forbid"
        assert ("JobAlreadyActive", said) in await stage.events("tick")
        await end(stage, job)
        await stage.settle()
        assert len(await jobs(stage)) == 2  # the last skipped run is started

    on_stage(play, CRON)


def test_concurrency_policy_replace_deletes_the_active_job() -> None:
    async def play(stage: Stage) -> None:
        await stage.client.create(cron(concurrencyPolicy="Replace"))
        await until_minute(stage)
        (first,) = await names(stage)
        await until_minute(stage)
        (second,) = await names(stage)
        assert first != second
        assert [each.name for each in (await read(stage)).status.active] == [second]
        assert ("SuccessfulDelete", f"Deleted job {first}") in await stage.events("tick")

    on_stage(play, CRON, GARBAGE)


def test_the_newest_finished_jobs_are_kept() -> None:
    async def play(stage: Stage) -> None:
        await stage.client.create(cron(successfulJobsHistoryLimit=2, failedJobsHistoryLimit=1))
        made: list[str] = []
        for number in range(7):
            await until_minute(stage)
            job = next(each for each in await jobs(stage) if not each.status.conditions)
            made.append(job.metadata.name)
            await end(stage, job, "Failed" if number in (0, 2) else "Complete")
            await stage.settle()
        assert await names(stage) == sorted([made[2], made[5], made[6]])

    on_stage(play, CRON, GARBAGE)


def test_a_deleted_success_still_sets_last_successful_time() -> None:
    async def play(stage: Stage) -> None:
        await stage.client.create(cron(successfulJobsHistoryLimit=0))
        await until_minute(stage)
        await end(stage, (await jobs(stage))[0])
        await stage.settle()
        assert await jobs(stage) == []
        status = (await read(stage)).status
        assert status.last_successful_time is not None
        assert status.active == []

    on_stage(play, CRON, GARBAGE)


def test_of_several_missed_runs_the_latest_is_started() -> None:
    async def play(stage: Stage) -> None:
        await stage.client.create(cron())
        await stage.world.clock.sleep(3600)
        stage.run(_add)
        await stage.settle()
        (job,) = await names(stage)
        assert job == f"tick-{int(stage.world.clock.wall()) // 300 * 5}"
        assert not any(each[0] == "TooManyMissedTimes" for each in await stage.events("tick"))

    on_stage(play)


def _add(manager: Manager) -> None:
    cronjob.add_to(manager, Options())


def test_too_many_missed_runs_are_reported() -> None:
    async def play(stage: Stage) -> None:
        await stage.client.create(cron("* * * * *"))
        await stage.world.clock.sleep(3 * 3600)
        stage.run(_add)
        await stage.settle()
        assert len(await jobs(stage)) >= 1
        said = "too many missed start times. Set or decrease .spec.startingDeadlineSeconds or check clock skew"
        assert ("TooManyMissedTimes", said) in await stage.events("tick")

    on_stage(play)


def test_a_run_past_its_starting_deadline_is_not_started() -> None:
    async def play(stage: Stage) -> None:
        await stage.client.create(cron("0 * * * *", startingDeadlineSeconds=60))
        await until_minute(stage, 60, 600)
        stage.run(_add)
        await stage.settle()
        assert await jobs(stage) == []
        await until_minute(stage, 60)
        assert len(await jobs(stage)) == 1

    on_stage(play)


def test_a_changed_schedule_starts_no_missed_runs() -> None:
    async def play(stage: Stage) -> None:
        await stage.client.create(cron("0 0 1 1 *"))
        await stage.world.clock.sleep(7200)
        await until_minute(stage, 60, 90)
        await stage.client.patch(CronJob, "tick", MergePatch({"spec": {"schedule": "0 * * * *"}}))
        await stage.settle()
        assert await jobs(stage) == []
        await until_minute(stage, 60)
        assert len(await jobs(stage)) == 1

    on_stage(play, CRON)


def test_a_schedule_uses_its_time_zone() -> None:
    async def play(stage: Stage) -> None:
        await stage.client.create(cron("30 * * * *", timeZone="Asia/Kathmandu"))  # a quarter off the hour
        await until_minute(stage, 60, 46 * 60)
        found = await jobs(stage)
        assert found
        for job in found:
            timestamp = job.metadata.annotations["batch.kubernetes.io/cronjob-scheduled-timestamp"]
            assert timestamp.endswith(":30:00+05:45")

    on_stage(play, CRON)


def test_an_invalid_schedule_is_reported_and_starts_nothing() -> None:
    async def play(stage: Stage) -> None:
        await stage.client.create(cron("0 0 30 2 *"))
        await stage.settle()
        before = stage.version
        await stage.world.clock.sleep(3000)
        assert stage.version == before
        assert [each[0] for each in await stage.events("tick")] == ["InvalidSchedule"]

    on_stage(play, CRON)


def test_missing_and_unexpected_jobs_are_reported() -> None:
    async def play(stage: Stage) -> None:
        made = await stage.client.create(cron())
        await until_minute(stage)
        (job,) = await jobs(stage)
        await stage.client.delete(job, propagation="Background")
        await stage.settle()
        assert ("MissingJob", f"Active job went missing: {job.metadata.name}") in await stage.events("tick")
        reference = {"apiVersion": "batch/v1", "kind": "CronJob", "name": "tick", "uid": made["metadata"]["uid"]}
        meta = {"name": "mine", "namespace": "default", "ownerReferences": [{**reference, "controller": True}]}
        spec = made["spec"]["jobTemplate"]["spec"]
        await stage.client.create({"apiVersion": "batch/v1", "kind": "Job", "metadata": meta, "spec": spec})
        await stage.settle()
        said = "Saw a job that the controller did not create or forgot: mine"
        assert ("UnexpectedJob", said) in await stage.events("tick")

    on_stage(play, CRON)


def test_a_foreign_job_of_the_name_is_not_adopted() -> None:
    async def play(stage: Stage) -> None:
        made = await stage.client.create(cron())
        minute = (int(stage.world.clock.wall()) // 300 + 1) * 5
        spec = made["spec"]["jobTemplate"]["spec"]
        meta = {"name": f"tick-{minute}", "namespace": "default"}
        await stage.client.create({"apiVersion": "batch/v1", "kind": "Job", "metadata": meta, "spec": spec})
        await until_minute(stage)
        assert (await read(stage)).status.active == []
        before = stage.version
        await stage.world.clock.sleep(120)
        assert stage.version == before

    on_stage(play, CRON)


def test_at_rest_nothing_is_written() -> None:
    async def play(stage: Stage) -> None:
        await stage.client.create(cron("0 0 1 1 *"))
        await stage.settle()
        before = stage.version
        await stage.world.clock.sleep(7200)
        assert stage.version == before

    on_stage(play, CRON)


def made(schedule: str, ago: timedelta, **spec: Any) -> CronJob:
    document = cron(schedule, **spec)
    document["metadata"]["creationTimestamp"] = (NOW - ago).strftime("%Y-%m-%dT%H:%M:%SZ")
    return from_dict(CronJob, document)


@pytest.mark.parametrize(
    ("schedule", "ago", "newest", "missed", "wait"),
    [
        ("*/5 * * * *", timedelta(seconds=20), None, 0, 270),  # none since its creation
        ("*/5 * * * *", timedelta(seconds=40), NOW - timedelta(seconds=30), 0, 270),
        ("*/5 * * * *", timedelta(minutes=12), NOW - timedelta(seconds=30), 3, 270),
        ("0 * * * *", timedelta(days=10), NOW - timedelta(seconds=30), 240, 3570),
        ("@every 7m", timedelta(minutes=20), NOW - timedelta(minutes=6), 2, 60),
    ],
)
def test_missed_schedules_and_the_next_time(
    schedule: str, ago: timedelta, newest: datetime | None, missed: int, wait: float
) -> None:
    job, times = made(schedule, ago), parse_schedule(schedule, "UTC")
    found = missed_schedules(job, times, NOW)
    assert (found.newest, found.missed) == (newest, missed)
    assert seconds_until_next(job, times, NOW) == pytest.approx(wait + 0.1)


def test_runs_of_an_uneven_schedule_are_estimated_by_the_first_two() -> None:
    schedule = "30 6-16/4 * * 1-5"  # it is Sunday
    times = parse_schedule(schedule, "UTC")
    since_friday = made(schedule, timedelta(days=1, hours=23))
    assert missed_schedules(since_friday, times, NOW).newest == datetime(2026, 2, 27, 14, 30, tzinfo=UTC)
    since_wednesday = made(schedule, timedelta(days=4))
    assert missed_schedules(since_wednesday, times, NOW).newest is None  # so no missed run is started
    assert seconds_until_next(since_wednesday, times, NOW) == pytest.approx(18.5 * 3600 - 30 + 0.1)


def test_a_schedule_without_times_is_an_error() -> None:
    with pytest.raises(ScheduleError, match="time difference between two schedules is less than 1 second"):
        missed_schedules(made("0 0 30 2 *", timedelta(days=1)), parse_schedule("0 0 30 2 *", "UTC"), NOW)
    assert seconds_until_next(made("0 0 30 2 *", timedelta(days=1)), parse_schedule("0 0 30 2 *", "UTC"), NOW) is None
