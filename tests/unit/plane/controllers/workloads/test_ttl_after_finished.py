"""Finished Jobs are deleted after their TTL."""

from __future__ import annotations

from tests.stage.plane import Stage, on_stage
from tests.unit.plane.controllers.workloads.job.test_job import GARBAGE, JOBS, begun, end, pods

from ostinato.client import MergePatch
from ostinato.kinds.batch_v1 import Job

ALL = (*JOBS, GARBAGE, "ttl-after-finished-controller")


def test_an_expired_job_is_deleted_with_its_pods() -> None:
    async def play(stage: Stage) -> None:
        await begun(stage, ttlSecondsAfterFinished=60)
        await stage.world.clock.sleep(120)
        await end(stage, await pods(stage))
        await stage.world.clock.sleep(40)
        assert await stage.client.get(Job, "work")
        await stage.world.clock.sleep(30)
        assert await stage.client.get(Job, "work", missing=None) is None
        assert await pods(stage) == []

    on_stage(play, *ALL)


def test_the_ttl_may_be_changed_later() -> None:
    async def play(stage: Stage) -> None:
        await begun(stage, ttlSecondsAfterFinished=60)
        await end(stage, await pods(stage))
        await stage.client.patch(Job, "work", MergePatch({"spec": {"ttlSecondsAfterFinished": 600}}))
        await stage.world.clock.sleep(120)
        assert await stage.client.get(Job, "work")
        await stage.client.patch(Job, "work", MergePatch({"spec": {"ttlSecondsAfterFinished": None}}))
        await stage.world.clock.sleep(1200)
        assert await stage.client.get(Job, "work")
        await stage.client.patch(Job, "work", MergePatch({"spec": {"ttlSecondsAfterFinished": 0}}))
        await stage.settle()
        assert await stage.client.get(Job, "work", missing=None) is None

    on_stage(play, *ALL)
