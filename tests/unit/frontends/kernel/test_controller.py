"""The sync controller: parents, children, related objects, finalizing, and kinds that come and go."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.stage.controllers import ControllerStage, staged, staged_with
from tests.stage.kinds import definition, widget
from tests.unit.frontends.kernel.applier.sets import CONFIG_MAP, ROLE, WIDGET, cluster_role, config_map, namespace

from ostinato.api.gvk import GroupVersionKind
from ostinato.client import MergePatch, Unstructured
from ostinato.controllers import ControllerError, ControllerOptions
from ostinato.frontends.kernel.controller import SyncController, SyncOptions
from ostinato.frontends.kernel.related import Selection
from ostinato.frontends.kernel.sync import DeciderError, Ready, SyncEvent, SyncRequest, SyncResult
from ostinato.kinds.core_v1 import ConfigMap

Json = dict[str, Any]
GADGET = GroupVersionKind("example.dev", "v1", "Gadget")


class Decides:
    """A decider that keeps its requests and calls a function."""

    def __init__(self, function: Callable[[SyncRequest], SyncResult]) -> None:
        self.requests: list[SyncRequest] = []
        self._function = function

    async def __call__(self, request: SyncRequest) -> SyncResult:
        self.requests.append(request)
        return self._function(request)

    @property
    def last(self) -> SyncRequest:
        return self.requests[-1]


def syncing(function: Callable[[SyncRequest], SyncResult], **options: Any) -> tuple[SyncController, Decides]:
    decider = Decides(function)
    return SyncController("syncs", Unstructured(WIDGET), decider, SyncOptions(**options)), decider


def children(*desired: Json, **more: Any) -> Callable[[SyncRequest], SyncResult]:
    return lambda _: SyncResult(children=[*desired], **more)


async def parent(stage: ControllerStage) -> Json:
    return await stage.user.get(Unstructured(WIDGET), "a")


@staged
async def test_children_status_and_events_are_written_and_then_nothing_happens(stage: ControllerStage) -> None:
    ready = Ready(ready=True, reason="AllUp")
    syncs, decider = syncing(
        children(config_map("x", key="1"), status={"phase": "Up"}, ready=ready, events=[SyncEvent("Synced", "done")])
    )
    await stage.user.create(widget("a"))
    async with stage.running(syncs):
        await stage.settle(5)
        calls, writes = len(decider.requests), stage.transport.writes()
        assert {kind: list(found) for kind, found in decider.last.children.items()} == {"ConfigMap.v1": ["default/x"]}
        assert decider.last.children["ConfigMap.v1"]["default/x"]["data"] == {"key": "1"}
        assert decider.last.parent is not None
        found = await parent(stage)
        assert found["status"]["phase"] == "Up"
        assert found["status"]["observedGeneration"] == 1
        (condition,) = found["status"]["conditions"]
        assert (condition["type"], condition["status"], condition["reason"]) == ("Ready", "True", "AllUp")
        assert stage.recorder.events[0] == ("Normal", "Synced", "done")
        await stage.settle(60)
        assert len(decider.requests) == calls <= 4
        assert stage.transport.writes() == writes


@staged
async def test_a_changed_or_deleted_child_is_repaired_also_in_another_namespace(stage: ControllerStage) -> None:
    syncs, _ = syncing(children(config_map("x", key="1"), config_map("y", "other", key="1")))
    await stage.user.create(widget("a"))
    await stage.user.create(namespace("other"))
    async with stage.running(syncs):
        await stage.settle(5)
        await stage.user.delete(ConfigMap, "x")
        await stage.user.patch(ConfigMap, "y", MergePatch({"data": {"key": "2"}}), namespace="other")
        await stage.settle(5)
        assert (await stage.user.get(ConfigMap, "x")).data == {"key": "1"}
        assert (await stage.user.get(ConfigMap, "y", namespace="other")).data == {"key": "1"}


@staged
async def test_children_that_the_garbage_collector_cannot_reach_are_deleted_with_their_parent(
    stage: ControllerStage,
) -> None:
    syncs, decider = syncing(children(config_map("y", "other"), cluster_role("r"), config_map("x")))
    await stage.user.create(widget("a"))
    await stage.user.create(namespace("other"))
    async with stage.running(syncs):
        await stage.settle(5)
        assert (await parent(stage))["metadata"]["finalizers"] == ["ostinato.dev/syncs"]
        await stage.user.delete(Unstructured(WIDGET), "a")
        await stage.settle(5)
        assert await stage.user.get(Unstructured(WIDGET), "a", missing=None) is None
        assert await stage.user.get(ConfigMap, "y", namespace="other", missing=None) is None
        assert await stage.user.get(Unstructured(ROLE), "r", missing=None) is None
        assert not any(each.finalizing for each in decider.requests)
        assert syncs.watched == frozenset()
        assert stage.informers.all(CONFIG_MAP) == []


@staged
async def test_with_a_finalizer_the_decider_cleans_up_until_it_is_done(stage: ControllerStage) -> None:
    def decide(request: SyncRequest) -> SyncResult:
        if not request.finalizing:
            return SyncResult(children=[config_map("x"), config_map("y", "other")])
        return SyncResult(children=[], finalized=not request.children["ConfigMap.v1"])

    syncs, decider = syncing(decide, finalizer="example.dev/clean", children=(CONFIG_MAP,), learn_kinds=False)
    await stage.user.create(widget("a"))
    await stage.user.create(namespace("other"))
    async with stage.running(syncs):
        await stage.settle(5)
        found = await parent(stage)
        assert found["metadata"]["finalizers"] == ["example.dev/clean"]
        assert "annotations" not in found["metadata"]
        await stage.user.delete(Unstructured(WIDGET), "a")
        await stage.settle(5)
        assert [each.finalizing for each in decider.requests][-2:] == [True, True]
        assert await stage.user.get(Unstructured(WIDGET), "a", missing=None) is None
        assert await stage.user.list(ConfigMap, namespace="other") == []


@staged
async def test_a_parent_that_is_no_longer_selected_is_finalized(stage: ControllerStage) -> None:
    def decide(request: SyncRequest) -> SyncResult:
        return SyncResult(children=[] if request.finalizing else [config_map("x")], finalized=request.finalizing)

    syncs, decider = syncing(
        decide, finalizer="example.dev/clean", selects=lambda each: "off" not in each["metadata"].get("labels", {})
    )
    await stage.user.create(widget("a"))
    async with stage.running(syncs):
        await stage.settle(5)
        assert await stage.user.get(ConfigMap, "x")
        await stage.user.patch(Unstructured(WIDGET), "a", MergePatch({"metadata": {"labels": {"off": "1"}}}))
        await stage.settle(5)
        assert "finalizers" not in (await parent(stage))["metadata"]
        assert await stage.user.get(ConfigMap, "x", missing=None) is None
        calls = len(decider.requests)
        await stage.user.patch(Unstructured(WIDGET), "a", MergePatch({"metadata": {"labels": {"more": "1"}}}))
        await stage.settle(5)
        assert len(decider.requests) == calls


@staged
async def test_a_failed_child_is_reported_after_the_status_is_written(stage: ControllerStage) -> None:
    await stage.user.create(config_map("taken", "default"))
    syncs, decider = syncing(children(config_map("taken"), config_map("x"), status={"phase": "Broken"}))
    await stage.user.create(widget("a"))
    async with stage.running(syncs):
        await stage.settle(2)
        assert (await parent(stage))["status"]["phase"] == "Broken"
        assert await stage.user.get(ConfigMap, "x")
        assert "ConfigMap default/taken exists and is not controlled by" in stage.log.texts()[0]
        assert decider.last.attempt > 1


@staged
async def test_an_error_of_the_decider_says_when_to_try_again(stage: ControllerStage) -> None:
    errors = [DeciderError("not now", retry_after=30.0), DeciderError("never", permanent=True)]

    def decide(_: SyncRequest) -> SyncResult:
        raise errors[min(len(decider.requests), 2) - 1]

    syncs, decider = syncing(decide)
    await stage.user.create(widget("a"))
    async with stage.running(syncs):
        await stage.settle(29)
        assert len(decider.requests) == 1
        await stage.settle(2)
        assert len(decider.requests) == 2
        await stage.settle(3600)
        assert len(decider.requests) == 2


@staged
async def test_a_resync_is_done_after_the_given_time(stage: ControllerStage) -> None:
    syncs, decider = syncing(lambda _: SyncResult(resync_after=10))
    await stage.user.create(widget("a"))
    async with stage.running(syncs):
        await stage.settle(55)
        assert len(decider.requests) == 6


@staged
async def test_children_none_leaves_them_alone(stage: ControllerStage) -> None:
    answers = [[config_map("x")], None]
    syncs, decider = syncing(lambda _: SyncResult(children=answers[0] if len(decider.requests) == 1 else None))
    await stage.user.create(widget("a"))
    async with stage.running(syncs):
        await stage.settle(5)
        assert len(decider.requests) > 1
        assert await stage.user.get(ConfigMap, "x")


@staged
async def test_labels_and_annotations_of_the_parent_are_set_and_removed(stage: ControllerStage) -> None:
    syncs, _ = syncing(lambda _: SyncResult(labels={"a": "1", "b": None}, annotations={"c": "2"}))
    made = widget("a")
    made.metadata.labels = {"b": "0", "mine": "x"}
    await stage.user.create(made)
    async with stage.running(syncs):
        await stage.settle(5)
        found = (await parent(stage))["metadata"]
        assert found["labels"] == {"a": "1", "mine": "x"}
        assert found["annotations"] == {"c": "2"}


@staged
async def test_related_objects_are_given_and_their_changes_cause_a_sync(stage: ControllerStage) -> None:
    async def related(_: Json) -> list[Selection]:
        return [
            Selection(gvk=CONFIG_MAP, namespace="default", labels={"matchLabels": {"app": "a"}}),
            Selection(gvk=CONFIG_MAP, names=("named",), namespace_labels={"matchLabels": {"team": "b"}}),
        ]

    syncs, decider = syncing(lambda _: SyncResult(), related=related)
    await stage.user.create(widget("a"))
    await stage.user.create(namespace("other"))
    labelled = config_map("x", "default")
    labelled["metadata"]["labels"] = {"app": "a"}
    await stage.user.create(labelled)
    await stage.user.create(config_map("named", "other"))

    def keys() -> list[str]:
        return list(decider.last.related["ConfigMap.v1"])

    async with stage.running(syncs):
        await stage.settle(5)
        assert keys() == ["default/x"]
        calls = len(decider.requests)
        await stage.user.create(config_map("unrelated", "default"))
        await stage.settle(5)
        assert len(decider.requests) == calls
        await stage.user.patch(
            Unstructured.of("v1", "Namespace"), "other", MergePatch({"metadata": {"labels": {"team": "b"}}})
        )
        await stage.settle(5)
        assert keys() == ["default/x", "other/named"]
        await stage.user.delete(ConfigMap, "x")
        await stage.settle(5)
        assert keys() == ["other/named"]


@staged
async def test_a_child_of_a_kind_that_is_defined_later_is_created_then(stage: ControllerStage) -> None:
    gadget = {"apiVersion": "example.dev/v1", "kind": "Gadget", "metadata": {"name": "g"}}
    syncs, _ = syncing(children(gadget, config_map("x")))
    await stage.user.create(widget("a"))
    async with stage.running(syncs):
        await stage.settle(5)
        assert await stage.user.get(ConfigMap, "x")
        await stage.user.create(definition("Gadget", "gadgets"))
        await stage.settle(10)
        assert await stage.user.get(Unstructured(GADGET), "g")


@staged
async def test_a_kind_that_is_defined_again_with_another_scope_is_watched_again(stage: ControllerStage) -> None:
    gadget = {"apiVersion": "example.dev/v1", "kind": "Gadget", "metadata": {"name": "g"}, "spec": {"size": 1}}
    syncs, _ = syncing(children(gadget))
    await stage.user.create(definition("Gadget", "gadgets"))
    await stage.settle(2)
    await stage.user.create(widget("a"))
    async with stage.running(syncs):
        await stage.settle(5)
        assert (await stage.user.get(Unstructured(GADGET), "g"))["metadata"]["namespace"] == "default"
        await stage.user.delete(
            Unstructured.of("apiextensions.k8s.io/v1", "CustomResourceDefinition"), "gadgets.example.dev"
        )
        await stage.settle(20)
        await stage.user.create(definition("Gadget", "gadgets", scope="Cluster"))
        await stage.settle(20)
        fresh = stage.unrecorded_client()
        found = await fresh.get(Unstructured(GADGET), "g")
        assert "namespace" not in found["metadata"]
        await fresh.patch(Unstructured(GADGET), "g", MergePatch({"spec": {"size": 2}}))
        await stage.settle(5)
        assert (await fresh.get(Unstructured(GADGET), "g"))["spec"] == {"size": 1}


BARE = definition()
BARE["spec"]["versions"][0]["subresources"] = {}


@staged_with(BARE)
async def test_a_parent_without_the_status_subresource_gets_its_status_and_no_hot_loop(stage: ControllerStage) -> None:
    syncs, decider = syncing(
        lambda _: SyncResult(status={"phase": "Up"}, ready=Ready(ready=True, reason="AllUp")),
        controller=ControllerOptions(hot_loop_guard=False),
    )
    await stage.user.create(widget("a"))
    async with stage.running(syncs):
        await stage.settle(60)
        status = (await parent(stage))["status"]
        assert status["phase"] == "Up"
        assert "observedGeneration" not in status
        assert len(decider.requests) <= 3


PRUNED = definition()
PRUNED["spec"]["versions"][0]["schema"]["openAPIV3Schema"] = {
    "type": "object",
    "properties": {
        "spec": {"type": "object"},
        "status": {"type": "object", "properties": {"phase": {"type": "string"}}},
    },
}


@staged_with(PRUNED)
async def test_fields_that_the_server_prunes_from_the_status_are_not_written_again_and_again(
    stage: ControllerStage,
) -> None:
    syncs, decider = syncing(lambda _: SyncResult(status={"phase": "Up", "unknown": 1}, resync_after=10))
    await stage.user.create(widget("a"))
    async with stage.running(syncs):
        await stage.settle(5)
        writes = stage.transport.writes()
        await stage.settle(60)
        assert len(decider.requests) > 5
        assert (await parent(stage))["status"] == {"phase": "Up"}
        assert stage.transport.writes() == writes


@staged
async def test_the_request_can_be_completed_and_operations_are_performed_first(stage: ControllerStage) -> None:
    order: list[str] = []

    async def collect(request: SyncRequest) -> SyncRequest:
        request.snapshots["all"] = [1]
        return request

    async def act(_: SyncRequest, result: SyncResult) -> None:
        order.append(f"{result.operations} {await stage.user.get(ConfigMap, 'x', missing=None) is None}")

    syncs, decider = syncing(children(config_map("x"), operations=[{"op": 1}]), collect=collect, act=act)
    await stage.user.create(widget("a"))
    async with stage.running(syncs):
        await stage.settle(5)
    assert decider.last.snapshots == {"all": [1]}
    assert order[0] == "[{'op': 1}] True"


@staged
async def test_a_restarted_controller_deletes_what_its_predecessor_created(stage: ControllerStage) -> None:
    await stage.user.create(widget("a"))
    await stage.user.create(namespace("other"))
    first, _ = syncing(children(config_map("y", "other"), cluster_role("r")))
    async with stage.running(first):
        await stage.settle(5)
    second, _ = syncing(children(config_map("x")))
    async with stage.running(second):
        await stage.settle(5)
    assert await stage.user.get(Unstructured(ROLE), "r", missing=None) is None
    assert await stage.user.get(ConfigMap, "y", namespace="other", missing=None) is None
    assert (await parent(stage))["metadata"]["annotations"] == {"kinds.ostinato.dev/syncs": "ConfigMap.v1"}


@staged
async def test_a_controller_can_run_again_but_not_twice_at_once(stage: ControllerStage) -> None:
    syncs, decider = syncing(children(config_map("x")))
    await stage.user.create(widget("a"))
    for _ in range(2):
        calls = len(decider.requests)
        async with stage.running(syncs):
            await stage.settle(2)
            assert len(decider.requests) > calls
            with pytest.raises(ControllerError, match="runs already; was it added twice"):
                await syncs.run(stage.dependencies)


@staged
async def test_two_controllers_of_a_parent_leave_the_children_of_each_other(stage: ControllerStage) -> None:
    first, _ = syncing(children(config_map("x")))
    second = SyncController("others", Unstructured(WIDGET), Decides(children(config_map("y"))))
    await stage.user.create(widget("a"))
    async with stage.running(first), stage.running(second):
        await stage.settle(10)
        uids = [(await stage.user.get(ConfigMap, name)).metadata.uid for name in "xy"]
        await stage.settle(30)
        assert [(await stage.user.get(ConfigMap, name)).metadata.uid for name in "xy"] == uids
