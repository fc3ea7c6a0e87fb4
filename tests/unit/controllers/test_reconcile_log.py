"""The log of a controller: one line per reconcile at debug level."""

from __future__ import annotations

import logging

import pytest
from tests.stage.election import ElectionStage, staged
from tests.unit.manager.test_manager import Rig

from ostinato.api.meta import ObjectMeta
from ostinato.controllers import Context, Result, controller
from ostinato.kinds.core_v1 import ConfigMap


def test_each_reconcile_logs_one_line_with_object_reason_duration_and_result(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG, logger="ostinato.maps")

    @controller(ConfigMap, name="maps")
    async def maps(config_map: ConfigMap, ctx: Context) -> Result | None:
        if config_map.metadata.name == "wrong":
            raise ValueError("no")
        await ctx.client.world.clock.sleep(0.25)
        return Result(requeue_after=3600) if config_map.metadata.name == "later" else None

    @staged
    async def play(stage: ElectionStage) -> None:
        rig = Rig(stage)
        rig.manager.add(maps)
        await rig.start(1)
        caplog.clear()
        for name in ("done", "later", "wrong"):
            await stage.client.create(ConfigMap(metadata=ObjectMeta(name=name, namespace="default")))
        await stage.clock.sleep(2)
        await rig.stop()

    play()
    lines = [text for text in caplog.messages if text.startswith("reconcile finished")]
    assert not [text for text in caplog.messages if text.startswith("reconcile started")]
    of = {
        name: [text for text in lines if f"'ConfigMap default/{name}'" in text] for name in ("done", "later", "wrong")
    }
    assert len(of["done"]) == len(of["later"]) == 1
    assert of["done"][0].startswith("reconcile finished controller=maps object='ConfigMap default/done' reason='")
    assert of["done"][0].endswith("duration=0.250s result=success")
    assert of["later"][0].endswith("result=requeue_after delay=3600s")
    assert of["wrong"][0].endswith("result=error")
