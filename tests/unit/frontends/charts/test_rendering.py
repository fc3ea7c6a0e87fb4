"""What templates see of the cluster, when a chart is rendered again, and recordings."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.unit.frontends.charts.stage import CONFIG_MAP, SHOP, history, make_chart, shop

from ostinato.client import Client, MergePatch
from ostinato.crd.rbac import Access
from ostinato.frontends.charts import Chart
from ostinato.frontends.kernel.recording import DIRECTORY, recordings, replayed
from ostinato.testing import ClusterManager, VirtualClock

LOOKUP = """
apiVersion: v1
kind: ConfigMap
metadata: {name: found}
data:
  other: {{ dig "data" "text" "nothing" (lookup "v1" "ConfigMap" .Release.Namespace "other") | quote }}
  all: {{ len ((lookup "v1" "ConfigMap" .Release.Namespace "").items | default list) | quote }}
  none: {{ lookup "example.com/v9" "Nothing" "" "x" | toJson | quote }}
  kube: {{ .Capabilities.APIVersions.Has "example.com/v1/Shop" | quote }}
  revision: {{ .Release.Revision | quote }}
  random: {{ randAlphaNum 20 | quote }}
"""
OTHER = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "other"}, "data": {"text": "hi"}}
READ = [Access(groups=("",), resources=("configmaps",), verbs=("get", "list"))]


async def test_templates_look_up_objects_and_random_values_cause_no_upgrades(
    tmp_path: Path, manager: ClusterManager, client: Client, clock: VirtualClock
) -> None:
    await client.create(
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "other"}, "data": {"text": "hi"}}
    )
    chart = Chart(make_chart(tmp_path, {"found.yaml": LOOKUP}))
    await manager.start(chart.for_kind("Shop", group="example.com", access=READ, reconcile_period=10))
    await client.create(shop())
    await clock.advance(1)
    found = (await client.get(CONFIG_MAP, "found"))["data"]
    assert (found["other"], found["none"], found["kube"], found["revision"]) == ("hi", "{}", "true", "1")
    await clock.advance(100)
    assert await history(client) == [(1, "deployed")]
    await client.patch(SHOP, "a", MergePatch({"spec": {"motto": "x"}}))
    await clock.advance(1)
    assert (await client.get(CONFIG_MAP, "found"))["data"]["revision"] == "2"


async def test_the_server_option_follows_what_templates_look_up(
    tmp_path: Path, manager: ClusterManager, client: Client, clock: VirtualClock
) -> None:
    template = LOOKUP.replace("  random: {{ randAlphaNum 20 | quote }}\n", "")
    template = "\n".join(line for line in template.splitlines() if "all:" not in line)
    chart = Chart(make_chart(tmp_path, {"found.yaml": template}))
    options = {"dry_run": "server", "reconcile_period": 10}
    await manager.start(chart.for_kind("Shop", group="example.com", access=READ, **options))
    await client.create(shop())
    await clock.advance(50)
    assert await history(client) == [(1, "deployed")]
    await client.create(
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "other"}, "data": {"text": "hi"}}
    )
    await clock.advance(11)
    assert (await client.get(CONFIG_MAP, "found"))["data"]["other"] == "hi"


async def test_renderings_are_recorded_and_replayed(
    tmp_path: Path, manager: ClusterManager, client: Client, clock: VirtualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(DIRECTORY, str(tmp_path / "recordings"))
    chart = Chart(make_chart(tmp_path))
    await manager.start(chart.for_kind("Shop", group="example.com"))
    await client.create(shop(motto="recorded"))
    await clock.advance(1)
    monkeypatch.delenv(DIRECTORY)
    ((_, recording),) = recordings(tmp_path / "recordings")
    assert recording.result is not None
    assert (recording.result.children or [])[0]["data"]["motto"] == "recorded"
    decider = chart.for_kind("Shop", group="example.com").deciders()["shop-controller"]
    assert not await replayed(recording, decider)
    (tmp_path / "shop" / "templates" / "config.yaml").write_text("apiVersion: v1\nkind: Secret\nmetadata: {name: a}\n")
    changed = Chart(tmp_path / "shop").for_kind("Shop", group="example.com").deciders()["shop-controller"]
    assert "Secret" in await replayed(recording, changed)
