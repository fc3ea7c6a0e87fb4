"""Recording and replay of runs: executables and Python functions."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.unit.frontends.hooks.stage import CONFIG_MAP, HookDirectory, config_map

from ostinato.api.gvk import GroupVersionKind
from ostinato.client import Client, MergePatch
from ostinato.frontends.hooks import HookContext, Hooks, hook, watch
from ostinato.frontends.kernel.recording import Recording, recordings, replayed
from ostinato.frontends.kernel.sync import Decider
from ostinato.kinds.core_v1 import ConfigMap
from ostinato.testing import ClusterManager, VirtualClock

pytestmark = pytest.mark.ostinato(rbac=False)

CONFIG = """
configVersion: v1
kubernetes:
- {name: cms, kind: ConfigMap, jqFilter: .data, labelSelector: {matchLabels: {t: a}}}
"""
BODY = """echo '{"name": "runs", "add": 1}' >> $METRICS_PATH
echo '{"operation": "Delete", "kind": "Secret", "name": "x", "namespace": "default"}' > $KUBERNETES_PATCH_PATH"""


async def test_recorded_runs_can_be_replayed_without_a_cluster(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, clock: VirtualClock, manager: ClusterManager, client: Client
) -> None:
    monkeypatch.setenv("OSTINATO_RECORD", str(tmp_path / "recorded"))
    directory = HookDirectory(tmp_path)
    directory.add("a.sh", CONFIG, BODY)
    shown = ["first"]

    @hook(watch("cms", GroupVersionKind("", "v1", "ConfigMap"), labels="t=a"))
    async def count(ctx: HookContext) -> None:
        names = [each.name for context in ctx.contexts for each in context.objects]
        names += [each.event.read(ConfigMap).metadata.name for each in ctx.events if each.event is not None]
        report = {"data": {shown[0]: ",".join(names)}}
        ctx.merge_patch("v1/ConfigMap", "report", report, namespace="default", ignoreMissingObject=True)

    runnable = Hooks(directory.root, count)
    await client.create(config_map("one", labels={"t": "a"}))
    await manager.start(runnable)
    await client.patch(CONFIG_MAP, "one", MergePatch({"data": {"x": "1"}}))
    await clock.advance(1)
    found = [each for _, each in recordings(tmp_path / "recorded")]
    assert [each.request.trigger.data["hook"] for each in found].count("a.sh") == 2
    operations = [each.result.operations for each in found if each.result is not None]
    patch = {
        "operation": "MergePatch",
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "namespace": "default",
        "name": "report",
    }
    assert {**patch, "ignoreMissingObject": True, "mergePatch": {"data": {"first": "one"}}} in [
        o[0] for o in operations
    ]
    decider = runnable.deciders()["hooks"]
    monkeypatch.delenv("OSTINATO_RECORD")
    assert [_replay(each, decider) for each in found] == [""] * 4
    shown[0] = "second"
    assert sum(bool(_replay(each, decider)) for each in found) == 2


def _replay(recording: Recording, decider: Decider) -> str:
    """Replay in real time, as the command does, beside the loop of the test."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(lambda: asyncio.run(replayed(recording, decider))).result()
