"""Hooks of charts: order, waiting, delete policies, failures."""

from __future__ import annotations

from pathlib import Path

from tests.unit.frontends.charts.stage import (
    CONFIG_MAP,
    JOB,
    SHOP,
    complete_job,
    conditions,
    history,
    hook,
    make_chart,
    records,
    shop,
)

from ostinato.client import Client, MergePatch, Unstructured
from ostinato.frontends.charts import Chart
from ostinato.testing import ClusterManager, VirtualClock


async def jobs(client: Client) -> list[str]:
    return sorted(each["metadata"]["name"] for each in await client.list(JOB, namespace="default"))


async def test_hooks_run_in_the_order_of_weights_around_the_objects(
    tmp_path: Path, manager: ClusterManager, client: Client, clock: VirtualClock
) -> None:
    templates = {
        "a.yaml": hook("late", "pre-install,pre-upgrade", weight=5),
        "b.yaml": hook("prior", "pre-install", weight=-5, policy="hook-succeeded"),
        "c.yaml": hook("after", "post-install", policy="before-hook-creation,hook-succeeded"),
        "d.yaml": hook("never", "test"),
    }
    await manager.start(Chart(make_chart(tmp_path, templates)).for_kind("Shop", group="example.com"))
    made = await client.create(shop())
    await clock.advance(2)
    assert await jobs(client) == ["a-prior"]
    assert await client.get(CONFIG_MAP, "a-config", missing=None) is None
    assert await history(client) == [(1, "pending-install")]
    (owner,) = (await client.get(JOB, "a-prior"))["metadata"]["ownerReferences"]
    assert owner["uid"] == made["metadata"]["uid"]
    await complete_job(client, "a-prior")
    await clock.advance(2)
    assert await jobs(client) == ["a-late", "a-prior"]  # deleted when all have succeeded
    await complete_job(client, "a-late")
    await clock.advance(3)
    assert await jobs(client) == ["a-after", "a-late"]
    assert await client.get(CONFIG_MAP, "a-config")
    await complete_job(client, "a-after")
    await clock.advance(3)
    assert await jobs(client) == ["a-late"]
    (record,) = await records(client)
    assert {each.name: each.last_run.get("phase") for each in record.hooks or ()} == {
        "a-prior": "Succeeded",
        "a-late": "Succeeded",
        "a-after": "Succeeded",
        "a-never": None,
    }
    late = (await client.get(JOB, "a-late"))["metadata"]["uid"]
    await client.patch(SHOP, "a", MergePatch({"spec": {"motto": "new"}}))
    await clock.advance(3)
    assert (await client.get(JOB, "a-late"))["metadata"]["uid"] != late  # before-hook-creation is the default
    await complete_job(client, "a-late")
    await clock.advance(3)
    assert await history(client) == [(1, "superseded"), (2, "deployed")]


async def test_a_failed_hook_fails_the_installation_and_is_kept_to_look_at(
    tmp_path: Path, manager: ClusterManager, client: Client, clock: VirtualClock
) -> None:
    templates = {"a.yaml": hook("check", "pre-install"), "b.yaml": hook("gone", "post-install", policy="hook-failed")}
    chart = Chart(make_chart(tmp_path, templates))
    await manager.start(chart.for_kind("Shop", group="example.com", hook_timeout=60))
    await client.create(shop())
    await clock.advance(2)
    await complete_job(client, "a-check", succeeded=False)
    await clock.advance(1.5)
    message = conditions(await client.get(SHOP, "a"))["ReleaseFailed"]["message"]
    assert message.startswith("failed to install release: pre-install hook shop/templates/a.yaml: Job default/a-check")
    assert manager.errors
    await clock.advance(5)  # it is tried again, with a new Job
    await complete_job(client, "a-check")
    await clock.advance(70)  # the second hook never completes
    assert "has not completed after 60 s" in conditions(await client.get(SHOP, "a"))["ReleaseFailed"]["message"]
    assert "a-gone" not in await jobs(client)
    assert await client.get(CONFIG_MAP, "a-config", missing=None) is None


async def test_delete_hooks_run_around_the_deletion(
    tmp_path: Path, manager: ClusterManager, client: Client, clock: VirtualClock
) -> None:
    templates = {"a.yaml": hook("backup", "pre-delete"), "b.yaml": hook("bye", "post-delete")}
    await manager.start(Chart(make_chart(tmp_path, templates)).for_kind("Shop", group="example.com"))
    await client.create(shop())
    await clock.advance(2)
    await client.delete(SHOP, "a")
    await clock.advance(2)
    assert await jobs(client) == ["a-backup"]
    assert await client.get(CONFIG_MAP, "a-config")
    await complete_job(client, "a-backup")
    await clock.advance(2)
    assert await jobs(client) == ["a-backup", "a-bye"]
    assert await client.get(CONFIG_MAP, "a-config", missing=None) is None
    assert await client.get(SHOP, "a")
    await complete_job(client, "a-bye")
    await clock.advance(2)
    assert await client.get(SHOP, "a", missing=None) is None
    assert await history(client) == []


async def test_hooks_do_not_hold_a_namespace_that_is_being_deleted(
    tmp_path: Path, manager: ClusterManager, client: Client, clock: VirtualClock
) -> None:
    await client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "doomed"}})
    doomed = client.in_namespace("doomed")
    chart = Chart(make_chart(tmp_path, {"a.yaml": hook("backup", "pre-delete"), "b.yaml": hook("bye", "post-delete")}))
    await manager.start(chart.for_kind("Shop", group="example.com"))
    await doomed.create(shop())
    await clock.advance(2)
    await client.delete(Unstructured.of("v1", "Namespace"), "doomed")
    await doomed.delete(SHOP, "a")
    await clock.advance(3)
    assert await doomed.get(SHOP, "a", missing=None) is None


async def test_definitions_of_crds_are_created_first_and_never_changed(
    tmp_path: Path, manager: ClusterManager, client: Client, clock: VirtualClock
) -> None:
    definition = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: carts.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {kind: Cart, plural: carts, singular: cart}
  versions:
    - name: v1
      served: true
      storage: true
      schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
"""
    cart = "apiVersion: example.com/v1\nkind: Cart\nmetadata: {name: '{{ .Release.Name }}'}\n"
    chart = make_chart(tmp_path, {"cart.yaml": cart}, crds__cart_yaml=definition)
    (chart / "crds" / "cart_yaml").rename(chart / "crds" / "cart.yaml")
    await manager.start(Chart(chart).for_kind("Shop", group="example.com"))
    await client.create(shop())
    await clock.advance(5)
    assert await client.get(Unstructured.of("example.com/v1", "Cart"), "a")
    await client.delete(SHOP, "a")
    await clock.advance(5)
    crd = Unstructured.of("apiextensions.k8s.io/v1", "CustomResourceDefinition")
    assert await client.get(crd, "carts.example.com")  # Helm keeps them
