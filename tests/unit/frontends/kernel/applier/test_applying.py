"""Applying a set: marks, order, foreign objects, no needless requests, and deletion of what is no longer desired."""

from __future__ import annotations

from typing import Any

import pytest
from tests.stage.controllers import ControllerStage, staged, staged_with
from tests.stage.kinds import definition, widget
from tests.unit.frontends.kernel.applier.sets import (
    CONFIG_MAP,
    FINALIZER,
    ROLE,
    SECRET,
    WIDGET,
    actions,
    cluster_role,
    config_map,
    errors,
    held,
    marked,
    namespace,
    sets,
)

from ostinato.api.owners import controller_of
from ostinato.client import MergePatch, Unstructured
from ostinato.frontends.kernel.applier import AnnotatedKinds, SetApplier, SetError, StaticKinds
from ostinato.frontends.kernel.applier.kinds import annotation_name
from ostinato.kinds.core_v1 import ConfigMap


@staged
async def test_an_object_gets_the_namespace_of_its_owner_and_a_controller_reference(stage: ControllerStage) -> None:
    made = await sets(stage)
    outcome = await made.apply(config_map("x", key="1"))
    assert actions(outcome) == ["create ConfigMap default/x"]
    found = await stage.user.get(ConfigMap, "x")
    owner = await made.owner()
    reference = controller_of(found)
    assert reference is not None
    assert reference.uid == owner["metadata"]["uid"]
    assert found.metadata.labels == {}
    assert owner["metadata"]["annotations"] == {"kinds.ostinato.dev/sets": "ConfigMap.v1"}
    assert "finalizers" not in owner["metadata"]


@staged
async def test_an_object_that_references_cannot_reach_is_marked_and_its_owner_gets_a_finalizer(
    stage: ControllerStage,
) -> None:
    made = await sets(stage)
    outcome = await made.apply(config_map("x", "other"), cluster_role("r"))
    assert outcome.is_complete
    owner = await made.owner()
    assert owner["metadata"]["finalizers"] == [FINALIZER]
    for found in (
        await stage.user.get(ConfigMap, "x", namespace="other"),
        await stage.user.get(Unstructured(ROLE), "r"),
    ):
        metadata: Any = found["metadata"] if isinstance(found, dict) else found.metadata
        labels = metadata["labels"] if isinstance(metadata, dict) else metadata.labels
        annotations = metadata["annotations"] if isinstance(metadata, dict) else metadata.annotations
        assert labels == {"ostinato.dev/owner-uid": owner["metadata"]["uid"]}
        assert annotations == {"ostinato.dev/owner": "Widget.example.dev/default/a"}
        assert controller_of(found) is None


@staged
async def test_marks_of_an_object_that_was_copied_from_another_are_replaced(stage: ControllerStage) -> None:
    made = await sets(stage)
    copied = config_map("x")
    copied["metadata"] |= {"labels": {"ostinato.dev/owner-uid": "of-another", "mine": "1"}}
    copied["metadata"] |= {"annotations": {"ostinato.dev/owner": "Widget.example.dev/default/b"}}
    assert (await made.apply(copied)).is_complete
    found = await stage.user.get(ConfigMap, "x")
    assert (found.metadata.labels, found.metadata.annotations) == ({"mine": "1"}, {})


@staged
async def test_without_a_finalizer_an_object_in_another_namespace_is_an_error(stage: ControllerStage) -> None:
    made = await sets(stage, finalizer="")
    outcome = await made.apply(config_map("x", "other"), config_map("y"))
    assert [each.split(";")[0] for each in errors(outcome)] == [
        (
            "ConfigMap other/x: cannot have an owner reference to Widget default/a, "
            "and nothing would delete it with its owner"
        )
    ]
    assert await marked(stage) == ["ConfigMap default/y"]


@staged
async def test_objects_are_applied_in_install_order_and_deleted_in_reverse(stage: ControllerStage) -> None:
    made = await sets(stage)
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}}
    outcome = await made.apply(config_map("x"), cluster_role("r"), secret, config_map("n", "new"), namespace("new"))
    order = ["Namespace new", "Secret default/s", "ConfigMap default/x", "ConfigMap new/n", "ClusterRole r"]
    assert actions(outcome) == [f"create {each}" for each in order]
    outcome = await made.apply()
    assert [each.removeprefix("delete ") for each in actions(outcome)] == [
        "ClusterRole r",
        "ConfigMap new/n",
        "ConfigMap default/x",
        "Secret default/s",
        "Namespace new",
    ]


@staged
async def test_what_is_no_longer_desired_is_deleted_also_if_its_kind_is_not_desired(stage: ControllerStage) -> None:
    made = await sets(stage)
    await made.apply(config_map("x"), config_map("y"), config_map("z", "other"), cluster_role("r"))
    outcome = await made.apply(config_map("y"))
    assert actions(outcome)[0] == "none ConfigMap default/y"
    assert await marked(stage) == ["ConfigMap default/y"]
    await made.apply(config_map("y"))
    owner = await made.owner()
    assert owner["metadata"]["annotations"] == {"kinds.ostinato.dev/sets": "ConfigMap.v1"}


@staged
async def test_objects_of_others_are_not_deleted(stage: ControllerStage) -> None:
    made = await sets(stage)
    await stage.user.create(widget("b"))
    await made.apply(config_map("x"), config_map("z", "other"))
    await made.apply(config_map("y"), owner=await made.owner("b"))
    await stage.user.create(config_map("free", "default"))
    await made.apply()
    await made.apply(config_map("y"), owner=await made.owner("b"))
    assert await marked(stage) == ["ConfigMap default/y"]
    assert await stage.user.get(ConfigMap, "free")


@staged
async def test_a_set_that_is_up_to_date_causes_no_write(stage: ControllerStage) -> None:
    made = await sets(stage, CONFIG_MAP, ROLE)
    desired = (config_map("x", key="1"), config_map("z", "other"), cluster_role("r"))
    await made.apply(*desired)
    before = stage.transport.writes()
    outcome = await made.apply(*desired)
    assert stage.transport.writes() == before
    assert actions(outcome) == ["none ConfigMap default/x", "none ConfigMap other/z", "none ClusterRole r"]


@staged
async def test_a_change_by_others_is_reverted(stage: ControllerStage) -> None:
    made = await sets(stage, CONFIG_MAP)
    await made.apply(config_map("x", key="1"))
    await stage.user.patch(ConfigMap, "x", MergePatch({"data": {"key": "2", "theirs": "3"}}))
    await stage.settle()
    outcome = await made.apply(config_map("x", key="1"))
    assert actions(outcome) == ["update ConfigMap default/x"]
    assert (await stage.user.get(ConfigMap, "x")).data == {"key": "1", "theirs": "3"}


@staged
async def test_an_existing_object_is_not_taken_over_unless_adopted(stage: ControllerStage) -> None:
    made = await sets(stage)
    for where in ("default", "other"):
        await stage.user.create(config_map("x", where, key="theirs"))
    desired = (config_map("x", key="1"), config_map("x", "other", key="1"), config_map("y"))
    outcome = await made.apply(*desired)
    assert [each.split(";")[0] for each in errors(outcome)] == [
        "ConfigMap default/x: ConfigMap default/x exists and is not controlled by Widget default/a",
        "ConfigMap other/x: ConfigMap other/x exists and is not controlled by Widget default/a",
    ]
    assert (await stage.user.get(ConfigMap, "x")).data == {"key": "theirs"}
    assert await marked(stage) == ["ConfigMap default/y"]
    with pytest.raises(SetError, match=r"ConfigMap default/x exists .*and 1 more"):
        outcome.raise_errors()
    outcome = await made.apply(*desired, adopt=True)
    assert errors(outcome) == []
    assert len(await marked(stage)) == 3


@staged
async def test_an_object_of_another_set_is_never_adopted(stage: ControllerStage) -> None:
    made = await sets(stage)
    await stage.user.create(widget("b"))
    other = await made.owner("b")
    await made.apply(config_map("x"), config_map("z", "other"), owner=other)
    outcome = await made.apply(config_map("x"), config_map("z", "other"), adopt=True)
    assert [type(each.error).__name__ for each in outcome.errors] == ["AlreadyOwned", "ForeignObject"]


@staged
async def test_an_object_of_a_deleted_owner_of_the_same_name_is_waited_for(stage: ControllerStage) -> None:
    made = await sets(stage)
    await made.apply(config_map("x"))
    await stage.user.delete(Unstructured(WIDGET), "a")
    await stage.user.create(widget("a"))
    outcome = await made.apply(config_map("x"))
    assert [type(each.error).__name__ for each in outcome.errors] == ["StillOwned"]


@staged
async def test_a_failed_object_does_not_stop_the_others_and_nothing_is_deleted(stage: ControllerStage) -> None:
    made = await sets(stage)
    await made.apply(config_map("old"))
    bad = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "Not A Name"}}
    outcome = await made.apply(config_map("x"), bad, config_map("y"))
    assert len(outcome.errors) == 1
    assert await marked(stage) == ["ConfigMap default/old", "ConfigMap default/x", "ConfigMap default/y"]


BAD: list[tuple[Any, str]] = [
    (7, "object number 1: expected an object, got int"),
    ({}, "object number 1: apiVersion: required"),
    ({"apiVersion": "v1"}, "object number 1: kind: required"),
    ({"apiVersion": "v1", "kind": "ConfigMap"}, "object number 1: metadata: required"),
    ({"apiVersion": "v1", "kind": "ConfigMap", "metadata": []}, "object number 1: metadata: required"),
    (
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "a-"}},
        "object number 1: ConfigMap: metadata.name: required; generateName would create another object each time",
    ),
    (
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x", "labels": ["a"]}},
        "object number 1: ConfigMap x: metadata.labels: expected a map",
    ),
    (
        {"apiVersion": "a/b/c", "kind": "ConfigMap", "metadata": {"name": "x"}},
        "object number 1: unexpected GroupVersion string: a/b/c",
    ),
    (
        {"apiVersion": "no.dev/v1", "kind": "Nothing", "metadata": {"name": "x"}},
        'Nothing x: no matches for kind "Nothing" in version "no.dev/v1"',
    ),
]


@staged
async def test_a_malformed_object_is_named(stage: ControllerStage) -> None:
    made = await sets(stage)
    for bad, message in BAD:
        assert errors(await made.apply(bad, config_map("fine"))) == [message]
    assert await marked(stage) == ["ConfigMap default/fine"]


@staged
async def test_an_object_given_twice_is_an_error(stage: ControllerStage) -> None:
    made = await sets(stage)
    outcome = await made.apply(config_map("x", key="1"), config_map("x", "default", key="2"))
    assert errors(outcome) == ["ConfigMap default/x: given twice; remove one, or rename it"]


@staged
async def test_a_namespace_on_a_cluster_scoped_object_is_ignored(stage: ControllerStage) -> None:
    made = await sets(stage)
    role = cluster_role("r")
    role["metadata"]["namespace"] = "default"
    assert (await made.apply(role)).is_complete


@staged_with(definition(scope="Cluster"))
async def test_everything_is_reachable_from_a_cluster_scoped_owner(stage: ControllerStage) -> None:
    await stage.user.create({"apiVersion": "example.dev/v1", "kind": "Widget", "metadata": {"name": "a"}})
    made = await sets(stage, finalizer="")
    outcome = await made.apply(config_map("x", "default"), cluster_role("r"), config_map("y", "kube-system"))
    assert outcome.is_complete
    outcome = await made.apply(cluster_role("r"))
    assert await marked(stage) == ["ClusterRole r"]


@staged
async def test_a_custom_resource_waits_for_the_definition_of_the_same_set(stage: ControllerStage) -> None:
    made = await sets(stage)
    gadgets = definition("Gadget", "gadgets")
    gadget = {"apiVersion": "example.dev/v1", "kind": "Gadget", "metadata": {"name": "g"}}
    outcome = await made.apply(gadget, gadgets)
    assert errors(outcome) == []
    assert held(outcome) == ["Gadget g: its CustomResourceDefinition is not established yet"]
    assert not outcome.is_complete
    await stage.settle(5)
    outcome = await made.apply(gadget, gadgets)
    assert outcome.is_complete


@staged
async def test_an_object_being_deleted_is_not_changed_and_created_again_when_it_is_gone(stage: ControllerStage) -> None:
    made = await sets(stage)
    blocked = config_map("x", key="1")
    blocked["metadata"]["finalizers"] = ["example.dev/block"]
    await made.apply(blocked)
    await stage.user.delete(ConfigMap, "x")
    outcome = await made.apply(config_map("x", key="2"))
    assert held(outcome) == ["ConfigMap default/x: being deleted; created again when it is gone"]
    assert (await stage.user.get(ConfigMap, "x")).data == {"key": "1"}
    await stage.user.patch(ConfigMap, "x", MergePatch({"metadata": {"finalizers": None}}))
    assert actions(await made.apply(config_map("x", key="2"))) == ["create ConfigMap default/x"]


@staged
async def test_the_kind_of_an_object_that_is_being_deleted_stays_recorded(stage: ControllerStage) -> None:
    made = await sets(stage)
    blocked = config_map("x")
    blocked["metadata"]["finalizers"] = ["example.dev/block"]
    await made.apply(blocked)
    outcome = await made.apply()
    assert held(outcome) == ["ConfigMap default/x: being deleted"]
    deletions = len([each for each in stage.transport.writes() if each.startswith("DELETE")])
    assert actions(await made.apply()) == []
    assert len([each for each in stage.transport.writes() if each.startswith("DELETE")]) == deletions == 1
    assert (await made.owner())["metadata"]["annotations"] == {"kinds.ostinato.dev/sets": "ConfigMap.v1"}
    await stage.user.patch(ConfigMap, "x", MergePatch({"metadata": {"finalizers": None}}))
    assert (await made.apply()).is_complete
    assert "annotations" not in (await made.owner())["metadata"]


@staged
async def test_two_controllers_share_an_owner(stage: ControllerStage) -> None:
    one = await sets(stage, manager="one", shared_owner=True)
    two = await sets(stage, manager="two", shared_owner=True)
    await one.apply(config_map("x"))
    outcome = await two.apply(config_map("y"), config_map("x"))
    (message,) = errors(outcome)
    assert message.startswith("ConfigMap default/x: belongs to one, for the same owner; use another name, or")
    assert message.endswith("set its annotation ostinato.dev/controller=two")
    await one.apply()
    assert await marked(stage) == ["ConfigMap default/y"]
    assert await two.applier.members(await two.owner(), [CONFIG_MAP, SECRET]) == {
        "ConfigMap.v1": {"default/y": await stage.user.get(Unstructured(CONFIG_MAP), "y")},
        "Secret.v1": {},
    }


@staged
async def test_a_declared_kind_is_not_stored_and_another_is_an_error(stage: ControllerStage) -> None:
    made = await sets(stage)
    applier, kinds = SetApplier(made.client, "sets"), StaticKinds([CONFIG_MAP])
    await applier.apply(await made.owner(), [config_map("x")], kinds=kinds)
    assert "annotations" not in (await made.owner())["metadata"]
    with pytest.raises(ValueError, match=r"Secret.v1: not a declared kind of children"):
        await applier.apply(
            await made.owner(), [{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}}], kinds=kinds
        )


@staged
async def test_a_damaged_record_of_kinds_is_reported_and_the_rest_is_used(stage: ControllerStage) -> None:
    made = await sets(stage)
    damaged = {"metadata": {"annotations": {"kinds.ostinato.dev/sets": "ConfigMap.v1,,nonsense, Secret.v1"}}}
    assert made.kinds.known(damaged) == {CONFIG_MAP, SECRET}


@staged
async def test_finalize_deletes_everything_and_then_removes_the_finalizer(stage: ControllerStage) -> None:
    made = await sets(stage, CONFIG_MAP)
    blocked = config_map("x", "other")
    blocked["metadata"]["finalizers"] = ["example.dev/block"]
    await made.apply(blocked, cluster_role("r"), config_map("y"))
    await stage.user.delete(Unstructured(WIDGET), "a")
    assert await made.finalize() == ["ConfigMap other/x"]
    assert (await made.owner())["metadata"]["finalizers"] == [FINALIZER]
    await stage.user.patch(ConfigMap, "x", MergePatch({"metadata": {"finalizers": None}}), namespace="other")
    await stage.settle()
    assert await made.finalize() == []
    assert await stage.user.get(Unstructured(WIDGET), "a", missing=None) is None


@staged
async def test_finalize_can_wait_for_each_kind_in_order(stage: ControllerStage) -> None:
    made = await sets(stage)
    blocked = cluster_role("r")
    blocked["metadata"]["finalizers"] = ["example.dev/block"]
    await made.apply(blocked, config_map("y"))
    assert await made.finalize(wait=True) == ["ConfigMap default/y", "ClusterRole r"]
    assert await marked(stage) == ["ClusterRole r", "ConfigMap default/y"]
    await stage.user.patch(Unstructured(ROLE), "r", MergePatch({"metadata": {"finalizers": None}}))
    assert await made.finalize(wait=True) == []
    assert await marked(stage) == []


@staged
async def test_nothing_unreachable_is_created_for_an_owner_being_deleted(stage: ControllerStage) -> None:
    made = await sets(stage)
    await stage.user.patch(Unstructured(WIDGET), "a", MergePatch({"metadata": {"finalizers": ["example.dev/block"]}}))
    await stage.user.delete(Unstructured(WIDGET), "a")
    with pytest.raises(ValueError, match="is being deleted; nothing is created for it"):
        await made.apply(config_map("x", "other"))


@pytest.mark.parametrize(("manager", "name"), [("a.b-c", "a.b-c"), ("x/y z", "x_y_z"), ("ä", "controller")])
def test_an_annotation_can_be_named_after_any_field_manager(manager: str, name: str) -> None:
    assert annotation_name(manager) == name


@staged
async def test_two_field_managers_have_records_of_their_own(stage: ControllerStage) -> None:
    made = await sets(stage)
    await made.apply(config_map("x"))
    assert AnnotatedKinds(made.client, "others").known(await made.owner()) == frozenset()


@staged
async def test_an_object_of_the_owner_without_a_controller_can_be_adopted(stage: ControllerStage) -> None:
    alone = await sets(stage)
    await alone.apply(config_map("x"))
    shared = await sets(stage, shared_owner=True)
    assert len((await shared.apply(config_map("x"))).errors) == 1
    assert (await shared.apply(config_map("x"), adopt=True)).is_complete
    assert (await shared.apply(config_map("x"))).is_complete
