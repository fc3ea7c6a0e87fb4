"""Releases of a chart in virtual time: install, upgrade, roll back, repair, uninstall."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.unit.frontends.charts.stage import (
    CONFIG_MAP,
    SECRET,
    SHOP,
    conditions,
    history,
    make_chart,
    records,
    shop,
)

from ostinato.client import Client, MergePatch, Unstructured
from ostinato.frontends.charts import Chart
from ostinato.frontends.charts.reconciler import FINALIZER, PERIOD, UNINSTALL_WAIT, UPGRADE_FORCE
from ostinato.testing import Cluster, ClusterManager, Events, VirtualClock

Running = tuple[ClusterManager, Client, VirtualClock]


@pytest.fixture
def running(manager: ClusterManager, client: Client, clock: VirtualClock) -> Running:
    return manager, client, clock


async def test_the_spec_is_the_values_of_an_installed_release(tmp_path: Path, running: Running) -> None:
    manager, client, clock = running
    await manager.start(Chart(make_chart(tmp_path)).for_kind("Shop", group="example.com"))
    made = await client.create(shop(motto="buy", replicas=1000000))
    await clock.advance(1)
    found = await client.get(CONFIG_MAP, "a-config")
    assert found["data"] == {"motto": "buy", "size": "1000000"}
    metadata = found["metadata"]
    assert metadata["labels"] == {
        "app": "shop",
        "app.kubernetes.io/managed-by": "Helm",
        "helm.sdk.operatorframework.io/chart": "shop",
    }
    assert metadata["annotations"] == {"meta.helm.sh/release-name": "a", "meta.helm.sh/release-namespace": "default"}
    (owner,) = metadata["ownerReferences"]
    assert (owner["uid"], owner["controller"]) == (made["metadata"]["uid"], True)

    installed = await client.get(SHOP, "a")
    assert installed["metadata"]["finalizers"] == [FINALIZER]
    status = conditions(installed)
    assert status["Initialized"]["status"] == "True"
    assert (status["Deployed"]["status"], status["Deployed"]["reason"]) == ("True", "InstallSuccessful")
    assert status["Deployed"]["message"] == "Welcome to a."
    (record,) = await records(client)
    assert installed["status"]["deployedRelease"] == {"name": "a", "manifest": record.manifest}
    assert record.manifest.startswith("---\n# Source: shop/templates/config.yaml\napiVersion: v1\n")
    assert (record.status, record.version, record.config) == ("deployed", 1, {"motto": "buy", "replicas": 1000000})
    secret = await client.get(SECRET, "sh.helm.release.v1.a.v1")
    assert secret["type"] == "helm.sh/release.v1"
    assert secret["metadata"]["ownerReferences"][0]["uid"] == made["metadata"]["uid"]


async def test_a_changed_value_upgrades_and_drops_objects(tmp_path: Path, running: Running) -> None:
    manager, client, clock = running
    await manager.start(Chart(make_chart(tmp_path)).for_kind("Shop", group="example.com"))
    await client.create(shop(extra=True))
    await clock.advance(1)
    assert await client.get(CONFIG_MAP, "a-extra")
    await client.patch(SHOP, "a", MergePatch({"spec": {"extra": False, "motto": "new"}}))
    await clock.advance(1)
    assert await client.get(CONFIG_MAP, "a-extra", missing=None) is None
    assert (await client.get(CONFIG_MAP, "a-config"))["data"]["motto"] == "new"
    assert await history(client) == [(1, "superseded"), (2, "deployed")]
    assert conditions(await client.get(SHOP, "a"))["Deployed"]["reason"] == "UpgradeSuccessful"
    await clock.advance(300)  # reconciles without a change
    assert await history(client) == [(1, "superseded"), (2, "deployed")]


async def test_an_object_with_the_policy_keep_survives(tmp_path: Path, running: Running) -> None:
    manager, client, clock = running
    await manager.start(Chart(make_chart(tmp_path)).for_kind("Shop", group="example.com"))
    await client.create(shop(extra=True, keep=True))
    await clock.advance(1)
    kept = await client.get(CONFIG_MAP, "a-extra")
    assert "ownerReferences" not in kept["metadata"]
    assert kept["metadata"]["annotations"]["operator-sdk/primary-resource"] == "default/a"
    await client.patch(SHOP, "a", MergePatch({"spec": {"extra": None}}))
    await clock.advance(1)
    assert await client.get(CONFIG_MAP, "a-extra")
    await client.delete(SHOP, "a")
    await clock.advance(1)
    assert await client.get(SHOP, "a", missing=None) is None
    assert await client.get(CONFIG_MAP, "a-extra")


async def test_drift_is_repaired_when_it_happens(tmp_path: Path, running: Running) -> None:
    manager, client, clock = running
    chart = Chart(make_chart(tmp_path))
    await manager.start(chart.for_kind("Shop", group="example.com", reconcile_period=0))
    await client.create(shop())
    await clock.advance(1)
    await client.delete(CONFIG_MAP, "a-config")
    await clock.advance(1)
    assert (await client.get(CONFIG_MAP, "a-config"))["data"]["motto"] == "hello"
    await client.patch(CONFIG_MAP, "a-config", MergePatch({"data": {"motto": "hacked", "mine": "stays"}}))
    await clock.advance(1)
    assert (await client.get(CONFIG_MAP, "a-config"))["data"] == {"motto": "hello", "size": "1", "mine": "stays"}
    assert await history(client) == [(1, "deployed")]


async def test_a_failed_upgrade_is_rolled_back_and_retried(tmp_path: Path, running: Running) -> None:
    manager, client, clock = running
    template = "{{ if .Values.broken }}\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: Not_A_Name}\n{{ end }}"
    chart = Chart(make_chart(tmp_path, {"z-broken.yaml": template}))
    await manager.start(chart.for_kind("Shop", group="example.com", max_history=4))
    await client.create(shop())
    await clock.advance(1)
    await client.patch(SHOP, "a", MergePatch({"spec": {"broken": True, "motto": "new", "extra": True}}))
    await clock.advance(0.001)
    assert (await history(client))[:3] == [(1, "superseded"), (2, "failed"), (3, "deployed")]
    assert (await client.get(CONFIG_MAP, "a-config"))["data"]["motto"] == "hello"
    assert await client.get(CONFIG_MAP, "a-extra", missing=None) is None
    failed = conditions(await client.get(SHOP, "a"))
    assert failed["ReleaseFailed"]["reason"] == "UpgradeError"
    assert "Not_A_Name" in failed["ReleaseFailed"]["message"]
    assert failed["Deployed"]["status"] == "True"
    await clock.advance(30)
    assert len(await history(client)) <= 4
    assert manager.errors
    await client.patch(SHOP, "a", MergePatch({"spec": {"broken": False}}))
    await clock.advance(1)
    assert (await client.get(CONFIG_MAP, "a-config"))["data"]["motto"] == "new"
    assert "ReleaseFailed" not in conditions(await client.get(SHOP, "a"))


async def test_a_failed_installation_leaves_nothing_and_is_retried(tmp_path: Path, running: Running) -> None:
    manager, client, clock = running
    template = "{{ if .Values.broken }}\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: Not_A_Name}\n{{ end }}"
    await manager.start(Chart(make_chart(tmp_path, {"z.yaml": template})).for_kind("Shop", group="example.com"))
    await client.create(shop(broken=True))
    await clock.advance(1)
    assert await client.get(CONFIG_MAP, "a-config", missing=None) is None
    assert conditions(await client.get(SHOP, "a"))["ReleaseFailed"]["reason"] == "InstallError"
    assert [status for _, status in await history(client)] == ["failed"]
    assert manager.errors
    await client.patch(SHOP, "a", MergePatch({"spec": {"broken": False}}))
    await clock.advance(1)
    assert await history(client) == [(1, "deployed")]
    assert set(conditions(await client.get(SHOP, "a"))) == {"Initialized", "Deployed"}


async def test_a_template_that_fails_is_a_condition_with_file_and_line(tmp_path: Path, running: Running) -> None:
    manager, client, clock = running
    chart = Chart(make_chart(tmp_path, {"x.yaml": 'a: {{ required "motto is needed" .Values.must }}'}))
    await manager.start(chart.for_kind("Shop", group="example.com"))
    await client.create(shop())
    await clock.advance(1)
    message = conditions(await client.get(SHOP, "a"))["ReleaseFailed"]["message"]
    assert message == "failed to install release: execution error at (shop/templates/x.yaml:1:6): motto is needed"
    assert manager.errors
    assert await history(client) == []


async def test_a_foreign_object_is_not_taken_over(tmp_path: Path, running: Running) -> None:
    manager, client, clock = running
    await client.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a-config"}, "data": {"x": "y"}})
    await manager.start(Chart(make_chart(tmp_path)).for_kind("Shop", group="example.com"))
    await client.create(shop())
    await clock.advance(1)
    assert (await client.get(CONFIG_MAP, "a-config"))["data"] == {"x": "y"}
    message = conditions(await client.get(SHOP, "a"))["ReleaseFailed"]["message"]
    assert "ConfigMap default/a-config exists and does not belong to release default/a" in message
    assert manager.errors


async def test_uninstalling_deletes_objects_and_records(tmp_path: Path, running: Running) -> None:
    manager, client, clock = running
    await manager.start(Chart(make_chart(tmp_path)).for_kind("Shop", group="example.com"))
    await client.create(shop(extra=True))
    await clock.advance(1)
    await client.delete(SHOP, "a")
    await clock.advance(1)
    for view, name in ((SHOP, "a"), (CONFIG_MAP, "a-config"), (CONFIG_MAP, "a-extra")):
        assert await client.get(view, name, missing=None) is None
    assert await history(client) == []


async def test_uninstall_wait_keeps_the_finalizer_until_all_objects_are_gone(tmp_path: Path, running: Running) -> None:
    manager, client, clock = running
    await manager.start(Chart(make_chart(tmp_path)).for_kind("Shop", group="example.com"))
    await client.create(shop(annotations={UNINSTALL_WAIT: "true"}))
    await clock.advance(1)
    await client.patch(CONFIG_MAP, "a-config", MergePatch({"metadata": {"finalizers": ["example.com/held"]}}))
    await client.delete(SHOP, "a")
    await clock.advance(20)
    waiting = conditions(await client.get(SHOP, "a"))["Deployed"]
    assert (waiting["status"], waiting["message"]) == ("False", "Waiting until all resources are deleted.")
    await client.patch(CONFIG_MAP, "a-config", MergePatch({"metadata": {"finalizers": None}}))
    await clock.advance(10)
    assert await client.get(SHOP, "a", missing=None) is None


async def test_upgrade_force_recreates_objects_with_immutable_fields(tmp_path: Path, running: Running) -> None:
    manager, client, clock = running
    template = (
        'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: fixed}\nimmutable: true\ndata: {v: "{{ .Values.v }}"}\n'
    )
    await manager.start(Chart(make_chart(tmp_path, {"fixed.yaml": template})).for_kind("Shop", group="example.com"))
    await client.create(shop(v="1"))
    await clock.advance(1)
    await client.patch(SHOP, "a", MergePatch({"spec": {"v": "2"}}))
    await clock.advance(1)
    found = await client.get(CONFIG_MAP, "fixed")
    assert found["data"] == {"v": "1"}
    assert conditions(await client.get(SHOP, "a"))["ReleaseFailed"]["reason"] == "UpgradeError"
    assert manager.errors
    await client.patch(SHOP, "a", MergePatch({"metadata": {"annotations": {UPGRADE_FORCE: "true"}}}))
    await clock.advance(2)
    assert (await client.get(CONFIG_MAP, "fixed"))["data"] == {"v": "2"}


async def test_overrides_win_and_are_reported_without_their_values(
    tmp_path: Path, running: Running, events: Events
) -> None:
    manager, client, clock = running
    chart = Chart(make_chart(tmp_path))
    await manager.start(chart.for_kind("Shop", group="example.com", overrides={"motto": "hunter2"}))
    made = await client.create(shop(motto="mine"))
    await clock.advance(1)
    assert (await client.get(CONFIG_MAP, "a-config"))["data"]["motto"] == "hunter2"
    event = await events.expect("OverrideValuesInUse", regarding=made)
    assert "'motto'" in str(event)
    assert "hunter2" not in str(event)


async def test_a_release_of_another_chart_is_an_error(tmp_path: Path, running: Running, cluster: Cluster) -> None:
    manager, client, clock = running
    await manager.start(Chart(make_chart(tmp_path)).for_kind("Shop", group="example.com"))
    await client.create(shop())
    await clock.advance(1)
    unowned = MergePatch({"metadata": {"ownerReferences": None}})  # as Helm's
    await client.patch(SECRET, "sh.helm.release.v1.a.v1", unowned)
    other = make_chart(tmp_path / "other")
    (other / "Chart.yaml").write_text("apiVersion: v2\nname: other\nversion: 0.1.0\n")
    await manager.start(Chart(other).for_kind("Market", group="example.com"))
    await client.create({**shop(), "kind": "Market"})
    await clock.advance(1)
    found = await client.get(Unstructured.of("example.com/v1", "Market"), "a")
    assert conditions(found)["Irreconcilable"]["message"] == ("release a exists and is of chart shop; use another name")
    assert manager.errors
    await client.delete(Unstructured.of("example.com/v1", "Market"), "a")
    await clock.advance(1)
    assert await client.get(Unstructured.of("example.com/v1", "Market"), "a", missing=None) is None
    assert await history(client) == [(1, "deployed")]


async def test_the_period_is_that_of_the_annotation(tmp_path: Path, running: Running) -> None:
    manager, client, clock = running
    chart = Chart(make_chart(tmp_path))
    await manager.start(chart.for_kind("Shop", group="example.com", watch_dependents=False))
    await client.create(shop(annotations={PERIOD: "10m"}))
    await clock.advance(1)
    await client.delete(CONFIG_MAP, "a-config")
    await clock.advance(500)
    assert await client.get(CONFIG_MAP, "a-config", missing=None) is None
    await clock.advance(200)
    assert await client.get(CONFIG_MAP, "a-config")


async def test_two_kinds_of_one_chart_do_not_share_a_release(tmp_path: Path, running: Running) -> None:
    manager, client, clock = running
    chart = Chart(make_chart(tmp_path))
    await manager.start(chart.for_kind("Shop", group="example.com"), chart.for_kind("Market", group="example.com"))
    await client.create(shop())
    await clock.advance(1)
    market = Unstructured.of("example.com/v1", "Market")
    await client.create({**shop(), "kind": "Market"})
    await clock.advance(1)
    message = conditions(await client.get(market, "a"))["Irreconcilable"]["message"]
    assert message.startswith("release a belongs to Shop a (uid ")
    assert manager.errors
    await client.delete(market, "a")
    await clock.advance(1)
    assert await client.get(market, "a", missing=None) is None
    assert await history(client) == [(1, "deployed")]
    assert await client.get(CONFIG_MAP, "a-config")
