"""Who made a change, with a controller that writes for real."""

from __future__ import annotations

from typing import Any

from tests.unit.page.observed import Observed, observed

from ostinato.client import MergePatch
from ostinato.controllers import Context, Request, Result
from ostinato.kinds.autoscaling_v2 import HorizontalPodAutoscaler
from ostinato.kinds.core_v1 import ConfigMap
from ostinato.manager import Manager
from ostinato.page.facts import Ref
from ostinato.page.history.chain import chain
from ostinato.plane.controllers.autoscaling import AutoscalerReconciler

FINALIZER = "example.dev/clean"
SOURCE = Ref("v1", "ConfigMap", "default", "a")


def config_map(**metadata: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "default", **metadata}}


class Labels:
    """Sets a label, now and every five seconds; it is there already, so that nothing changes.

    Removes its finalizer when the object is deleted.
    """

    async def reconcile(self, request: Request, ctx: Context) -> Result | None:
        found = await ctx.client.get(ConfigMap, request, missing=None)
        if found is None or request.name != "a":
            return None
        finalizers = [] if found.metadata.deletion_timestamp else list(found.metadata.finalizers)
        patch = {"metadata": {"labels": {"seen": "yes"}, "finalizers": finalizers or None}}
        await ctx.client.patch(ConfigMap, request, MergePatch(patch))
        return Result(requeue_after=5)


def add(manager: Manager) -> None:
    manager.build("labels").watch_for(ConfigMap).complete(Labels())


def authors(page: Observed) -> list[tuple[str, str]]:
    return [(each.shown().verb, each.shown().author) for each in page.history.changes.of_object(SOURCE)]


def test_a_write_that_changed_nothing_does_not_take_the_users_change_nor_a_later_removal() -> None:
    async def test(page: Observed) -> None:
        await page.client.create(config_map(labels={"seen": "yes"}))
        await page.passes(12)
        assert authors(page) == [("create", "a-user")]
        await page.client.delete(ConfigMap, "a")
        await page.passes(2)
        assert authors(page) == [("create", "a-user"), ("delete", "unknown")]

    observed(test, add)


def test_the_removal_of_the_last_finalizer_is_the_controllers_and_the_deletion_the_users() -> None:
    async def test(page: Observed) -> None:
        await page.client.create(config_map(labels={"seen": "yes"}, finalizers=[FINALIZER]))
        await page.passes(2)
        await page.client.delete(ConfigMap, "a")
        await page.passes(2)
        _, requested, removed = page.history.changes.of_object(SOURCE)
        assert requested.controller == ""
        assert removed.controller == "labels"
        run = page.history.runs.get(removed.run)
        assert run is not None
        assert run.key == "default/a"

    observed(test, add)


def test_the_scale_that_the_autoscaler_writes_is_its_own_and_leads_to_the_edit_of_the_autoscaler() -> None:
    template = {
        "metadata": {"labels": {"app": "web"}},
        "spec": {"containers": [{"name": "app", "image": "app:1"}]},
    }
    replica_set = {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {"replicas": 2, "selector": {"matchLabels": {"app": "web"}}, "template": template},
    }
    target = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web"}
    autoscaler = {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "scaler", "namespace": "default"},
        "spec": {"scaleTargetRef": target, "minReplicas": 5, "maxReplicas": 9},
    }

    async def test(page: Observed) -> None:
        await page.client.create(replica_set)
        await page.client.create(autoscaler)
        await page.passes(20)
        changes = page.history.changes
        _, scaled = changes.of_object(Ref("apps/v1", "ReplicaSet", "default", "web"))
        assert scaled.shown().summary == "spec.replicas: 2 → 5"
        assert scaled.controller == "autoscaler"
        steps, (origin,) = chain(scaled, changes, page.history.runs)
        # The first run of an autoscaler waits for its period; the second continues it.
        assert [each.type for each in steps] == ["write", "reconcile", "reconcile", "user"]
        assert origin.write
        assert (origin.who, origin.write.ref.name) == ("a-user", "scaler")

    def add_autoscaler(manager: Manager) -> None:
        manager.build("autoscaler").watch_for(HorizontalPodAutoscaler).complete(AutoscalerReconciler())

    observed(test, add_autoscaler)
