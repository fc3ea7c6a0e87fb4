"""Namespace deletion: order, finalizers and conditions."""

from __future__ import annotations

from typing import Any

from tests.stage.plane import Stage, on_stage
from tests.unit.plane.controllers.garbage.test_garbage import GADGETS, definition

from ostinato.api.gvk import GroupVersion, GroupVersionResource
from ostinato.api.time import Time
from ostinato.client import MergePatch
from ostinato.kinds.apps_v1 import Deployment
from ostinato.kinds.core_v1 import ConfigMap, Namespace, NamespaceStatus, Pod, Secret, ServiceAccount
from ostinato.plane.controllers.namespaces.conditions import DeletionFindings, update_conditions

NAMESPACE = "namespace-controller"
ACCOUNTS = "serviceaccount-controller"
GARBAGE = "garbage-collector-controller"
NOW = Time.parse("2026-01-01T00:00:00Z")
Json = dict[str, Any]


def made(kind: str, name: str, *finalizers: str, **more: Any) -> Json:
    meta = {"name": name, "namespace": "n", "finalizers": list(finalizers)}
    return {"apiVersion": "v1", "kind": kind, "metadata": meta, **more}


async def begun(stage: Stage) -> None:
    await stage.client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n"}})


async def is_gone(stage: Stage) -> bool:
    return await stage.client.get(Namespace, "n", missing=None) is None


async def conditions(stage: Stage) -> dict[str, tuple[str, str, str]]:
    namespace = await stage.client.get(Namespace, "n")
    return {each.type: (each.status, each.reason or "", each.message or "") for each in namespace.status.conditions}


def test_a_namespace_is_deleted_with_its_content() -> None:
    async def play(stage: Stage) -> None:
        await begun(stage)
        await stage.client.create(made("ConfigMap", "a"))
        await stage.client.create(made("Secret", "b"))
        await stage.client.create(made("ConfigMap", "c") | {"metadata": {"name": "c", "namespace": "default"}})
        await stage.client.delete(Namespace, "n")
        await stage.until(lambda: is_gone(stage), limit=7)
        assert not await stage.client.list(ConfigMap, namespace="n")
        assert not await stage.client.list(Secret, namespace="n")
        assert await stage.client.get(ConfigMap, "c")

    on_stage(play, NAMESPACE)


def test_nothing_is_done_in_the_first_five_seconds() -> None:
    async def play(stage: Stage) -> None:
        await begun(stage)
        await stage.client.create(made("ConfigMap", "a"))
        await stage.client.delete(Namespace, "n")
        await stage.world.clock.sleep(3.9)
        assert await stage.client.list(ConfigMap, namespace="n")

    on_stage(play, NAMESPACE)


def test_without_the_controller_a_namespace_stays() -> None:
    async def play(stage: Stage) -> None:
        await begun(stage)
        await stage.client.create(made("ConfigMap", "a"))
        await stage.client.delete(Namespace, "n")
        await stage.world.clock.sleep(3600)
        assert (await stage.client.get(Namespace, "n")).status.phase == "Terminating"
        assert await stage.client.list(ConfigMap, namespace="n")

    on_stage(play, GARBAGE)


def test_content_with_finalizers_is_reported_and_awaited() -> None:
    async def play(stage: Stage) -> None:
        await begun(stage)
        await stage.client.create(made("ConfigMap", "held", "example.com/hold"))
        await stage.client.create(made("Secret", "free"))
        await stage.client.delete(Namespace, "n")
        await stage.settle(quiet=30)
        assert await conditions(stage) == {
            "NamespaceDeletionDiscoveryFailure": (
                "False",
                "ResourcesDiscovered",
                "All resources successfully discovered",
            ),
            "NamespaceDeletionGroupVersionParsingFailure": (
                "False",
                "ParsedGroupVersions",
                "All legacy kube types successfully parsed",
            ),
            "NamespaceDeletionContentFailure": (
                "False",
                "ContentDeleted",
                "All content successfully deleted, may be waiting on finalization",
            ),
            "NamespaceContentRemaining": (
                "True",
                "SomeResourcesRemain",
                "Some resources are remaining: configmaps. has 1 resource instances",
            ),
            "NamespaceFinalizersRemaining": (
                "True",
                "SomeFinalizersRemain",
                "Some content in the namespace has finalizers remaining: example.com/hold in 1 resource instances",
            ),
        }
        assert not await stage.client.list(Secret, namespace="n")
        before = stage.version
        await stage.world.clock.sleep(600)
        assert stage.version == before
        change = MergePatch({"metadata": {"finalizers": None}})
        await stage.client.patch(ConfigMap, "held", change, namespace="n")
        await stage.until(lambda: is_gone(stage), limit=9)

    on_stage(play, NAMESPACE)


def test_other_content_is_kept_until_the_pods_are_gone() -> None:
    async def play(stage: Stage) -> None:
        await begun(stage)
        await stage.until(lambda: stage.client.list(ServiceAccount, namespace="n"))
        spec = {"containers": [{"name": "a", "image": "a"}], "nodeName": "node"}
        await stage.client.create(made("Pod", "p", spec=spec))
        await stage.client.create(made("ConfigMap", "needed"))
        await stage.client.delete(Namespace, "n")
        await stage.world.clock.sleep(20)
        assert (await stage.client.get(Pod, "p", namespace="n")).metadata.deletion_timestamp is not None
        assert await stage.client.list(ConfigMap, namespace="n")
        assert {each[0] for each in (await conditions(stage)).values()} == {"False"}
        await stage.client.delete(Pod, "p", namespace="n", grace_period=0)
        await stage.until(lambda: is_gone(stage), limit=40)

    on_stage(play, NAMESPACE, ACCOUNTS)


def test_a_pod_that_outlives_its_grace_period_is_reported() -> None:
    async def play(stage: Stage) -> None:
        await begun(stage)
        await stage.until(lambda: stage.client.list(ServiceAccount, namespace="n"))
        spec = {"containers": [{"name": "a", "image": "a"}], "nodeName": "node"}
        await stage.client.create(made("Pod", "p", spec=spec))
        await stage.client.delete(Namespace, "n")
        await stage.world.clock.sleep(120)
        said = "unexpected items still remain in namespace: n for gvr: /v1, Resource=pods"
        assert (await conditions(stage))["NamespaceDeletionContentFailure"] == (
            "True",
            "ContentDeletionFailed",
            f"Failed to delete all resource types, 1 remaining: {said}",
        )

    on_stage(play, NAMESPACE, ACCOUNTS)


def test_custom_resources_are_deleted_too() -> None:
    async def play(stage: Stage) -> None:
        await begun(stage)
        await stage.client.create(definition())
        meta = {"name": "one", "namespace": "n"}
        await stage.client.create({"apiVersion": "example.com/v1", "kind": "Gadget", "metadata": meta})
        await stage.client.delete(Namespace, "n")
        await stage.until(lambda: is_gone(stage), limit=9)
        assert not await stage.client.list(GADGETS, namespace="n")

    on_stage(play, NAMESPACE)


def test_a_namespace_with_another_finalizer_stays_when_it_is_empty() -> None:
    async def play(stage: Stage) -> None:
        spec = {"finalizers": ["kubernetes", "example.com/mine"]}
        await stage.client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n"}, "spec": spec})
        await stage.client.delete(Namespace, "n")
        await stage.settle(quiet=10)
        assert (await stage.client.get(Namespace, "n")).spec.finalizers == ["example.com/mine"]

    on_stage(play, NAMESPACE)


def test_ownership_does_not_matter_in_a_terminating_namespace() -> None:
    async def play(stage: Stage) -> None:
        await begun(stage)
        labels = {"app": "web"}
        template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "a", "image": "a"}]}}
        spec = {"selector": {"matchLabels": labels}, "template": template}
        meta = {"name": "web", "namespace": "n"}
        await stage.client.create({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": meta, "spec": spec})
        await stage.client.delete(Namespace, "n")
        await stage.until(lambda: is_gone(stage), limit=9)
        assert not await stage.client.list(Deployment, namespace="n")

    on_stage(play, NAMESPACE, GARBAGE)


def test_conditions_change_their_transition_time_with_their_status_only() -> None:
    status = NamespaceStatus()
    assert update_conditions(status, DeletionFindings(), NOW)
    assert not update_conditions(status, DeletionFindings(), NOW)
    later, last = Time.parse("2026-01-02T00:00:00Z"), Time.parse("2026-01-03T00:00:00Z")
    found = DeletionFindings(
        undiscovered={GroupVersion("a.b", "v1"): ValueError("no answer")}, errors=[ValueError("x")]
    )
    found.count(GroupVersionResource("a.b", "v1", "things"), [["f"], []])
    assert update_conditions(status, found, later)
    found.count(GroupVersionResource("a.b", "v1", "things"), [["f"]])
    assert update_conditions(status, found, last)
    why = "unable to retrieve the complete list of server APIs: a.b/v1: no answer"
    told = {each.type: (each.status, str(each.last_transition_time), each.message) for each in status.conditions}
    assert told == {
        "NamespaceDeletionDiscoveryFailure": (
            "True",
            str(later),
            f"Discovery failed for some groups, 1 failing: {why}",
        ),
        "NamespaceDeletionGroupVersionParsingFailure": (
            "False",
            str(NOW),
            "All legacy kube types successfully parsed",
        ),
        "NamespaceDeletionContentFailure": (
            "True",
            str(later),
            "Failed to delete all resource types, 1 remaining: x",
        ),
        "NamespaceContentRemaining": (
            "True",
            str(later),
            "Some resources are remaining: things.a.b has 3 resource instances",
        ),
        "NamespaceFinalizersRemaining": (
            "True",
            str(later),
            "Some content in the namespace has finalizers remaining: f in 2 resource instances",
        ),
    }
