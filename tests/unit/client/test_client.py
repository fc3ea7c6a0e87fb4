"""Writing through a client: create, update, patch, apply, delete, and what each of them keeps and refuses."""

from __future__ import annotations

import copy
from typing import Any

import msgspec
import pytest
from tests.stage.client import Stage, staged
from tests.stage.kinds import WIDGETS, Json, Widget, WidgetSpec, WidgetStatus, config_map

from ostinato.api.errors import AlreadyExists, BadRequest, Conflict, Invalid, NotFound
from ostinato.api.gvk import NamespacedName
from ostinato.api.meta import ObjectMeta
from ostinato.api.object import kind_of
from ostinato.client import (
    JsonPatch,
    MergePatch,
    MetadataOf,
    NoSuchKind,
    PartialObjectMetadata,
    StrategicMergePatch,
    Unstructured,
)
from ostinato.client.options import CreateOptions, DeletionOptions, ReadOptions, WriteOptions
from ostinato.client.patching import difference
from ostinato.kinds.apps_v1 import Deployment
from ostinato.kinds.core_v1 import ConfigMap, Node, Pod, ServiceAccount

WIDGET_KIND = Unstructured.of("example.dev/v1", "Widget")
DEPLOYMENT: Json = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "web", "labels": {"app": "web"}},
    "spec": {
        "selector": {"matchLabels": {"app": "web"}},
        "strategy": {"type": "Recreate"},
        "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "a", "image": "a:1"}, {"name": "b", "image": "b:1"}]},
        },
    },
}


# Create


@staged
async def test_create_returns_the_stored_object_and_does_not_change_its_argument(stage: Stage) -> None:
    given = config_map("a", key="value")
    created = await stage.client.create(given)
    assert created.metadata.uid
    assert given == config_map("a", key="value")


@staged
async def test_create_lets_the_server_find_a_name(stage: Stage) -> None:
    created = await stage.client.create(ConfigMap(metadata=ObjectMeta(generate_name="a-")))
    assert created.metadata.name.startswith("a-")
    assert len(created.metadata.name) > 2


@staged
async def test_create_of_an_existing_object_raises(stage: Stage) -> None:
    await stage.client.create(config_map("a"))
    with pytest.raises(AlreadyExists, match='configmaps "a" already exists'):
        await stage.client.create(config_map("a"))


@staged
async def test_create_takes_dicts_and_gives_dicts(stage: Stage) -> None:
    given = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"key": "value"}}
    before = copy.deepcopy(given)
    created = await stage.client.create(given)
    assert created["metadata"]["namespace"] == "default"
    assert given == before


@pytest.mark.parametrize("wrong", [{}, {"kind": "ConfigMap"}, {"apiVersion": "v1"}])
def test_a_dict_needs_api_version_and_kind(wrong: Json) -> None:
    @staged
    async def play(stage: Stage) -> None:
        with pytest.raises(ValueError, match="apiVersion and kind are required"):
            await stage.client.create(wrong)

    play()


@staged
async def test_create_of_a_kind_without_a_resource_is_rejected(stage: Stage) -> None:
    with pytest.raises(ValueError, match="Scale: the kind has no resource of its own"):
        await stage.client.create({"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "a"}})


@staged
async def test_create_in_a_namespace_that_is_not_there_names_the_namespace(stage: Stage) -> None:
    with pytest.raises(NotFound, match='namespaces "nope" not found') as caught:
        await stage.client.create(ConfigMap(metadata=ObjectMeta(name="a", namespace="nope")))
    assert not isinstance(caught.value, NoSuchKind)


@staged
async def test_a_dry_run_stores_nothing(stage: Stage) -> None:
    created = await stage.client.create(config_map("a"), dry_run=True)
    assert created.metadata.uid
    assert await stage.client.get(ConfigMap, "a", missing=None) is None


@staged
async def test_strict_validation_refuses_unknown_fields(stage: Stage) -> None:
    odd = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "dada": {}}
    with pytest.raises(BadRequest, match="unknown field"):
        await stage.client.create(odd, field_validation="Strict")
    with pytest.raises(BadRequest, match="unknown field"):
        await stage.new_client(field_validation="Strict").create(odd)
    await stage.client.create(odd, field_validation="Warn")
    assert stage.warnings == ['unknown field "dada"']


@staged
async def test_the_field_manager_defaults_to_the_clients(stage: Stage) -> None:
    ours = await stage.client.create(config_map("a", key="value"))
    theirs = await stage.client.create(config_map("b", key="value"), field_manager="other")
    assert [each.metadata.managed_fields[0].manager for each in (ours, theirs)] == ["test", "other"]


@staged
async def test_create_has_no_subresource(stage: Stage) -> None:
    with pytest.raises(TypeError, match="unknown option 'subresource'"):
        await stage.client.create(config_map("a"), subresource="status")  # type: ignore[call-arg]


# Update


@staged
async def test_update_keeps_fields_unknown_to_the_class(stage: Stage) -> None:
    await stage.client.create(WIDGETS)
    raw = {"apiVersion": "example.dev/v1", "kind": "Widget", "metadata": {"name": "a"}}
    await stage.client.create({**raw, "spec": {"replicas": 1, "colour": "red"}, "extra": [1, 2]})
    widget = await stage.client.get(Widget, "a")
    widget.spec.replicas = 3
    await stage.client.update(widget)
    found = await stage.client.get(WIDGET_KIND, "a")
    assert found["spec"] == {"replicas": 3, "colour": "red"}
    assert found["extra"] == [1, 2]


@staged
async def test_update_of_a_state_that_has_passed_is_a_conflict(stage: Stage) -> None:
    first = await stage.client.create(config_map("a"))
    second = copy.deepcopy(first)
    first.data["x"] = "1"
    await stage.client.update(first)
    second.data["x"] = "2"
    with pytest.raises(Conflict, match="the object has been modified"):
        await stage.client.update(second)


@staged
async def test_retry_on_conflict_reads_again(stage: Stage) -> None:
    await stage.client.create(config_map("a"))
    tries = 0

    async def change() -> str:
        nonlocal tries
        tries += 1
        found = await stage.client.get(ConfigMap, "a")
        if tries < 4:  # somebody is faster
            await stage.client.patch(ConfigMap, "a", MergePatch({"data": {"other": str(tries)}}))
        found.data["ours"] = "yes"
        return (await stage.client.update(found)).data["other"]

    assert await stage.client.retry_on_conflict(change) == "3"


@staged
async def test_update_can_write_the_status_subresource(stage: Stage) -> None:
    await stage.client.create(WIDGETS)
    widget = await stage.client.create(Widget(metadata=ObjectMeta(name="a"), spec=WidgetSpec(replicas=1)))
    widget.spec.replicas = 9
    widget.status = WidgetStatus(ready=1)
    updated = await stage.client.update(widget, subresource="status")
    assert (updated.spec.replicas, updated.status) == (1, WidgetStatus(ready=1))
    read = await stage.client.get(Widget, "a", subresource="status")
    assert read.status == WidgetStatus(ready=1)


@staged
async def test_an_object_with_metadata_only_cannot_be_created_updated_or_applied(stage: Stage) -> None:
    await stage.client.create(config_map("a", key="value"))
    found = await stage.client.get(MetadataOf(ConfigMap), "a")
    for write in (stage.client.update, stage.client.create, stage.client.apply):
        with pytest.raises(
            TypeError, match=r"ConfigMap default/a: \w+\(\) of an object of which only the metadata was read"
        ):
            await write(found)


# Patch


@staged
async def test_the_three_kinds_of_patches(stage: Stage) -> None:
    await stage.client.create(DEPLOYMENT)
    image = {"spec": {"template": {"spec": {"containers": [{"name": "b", "image": "b:2"}]}}}}
    patched = await stage.client.patch(Deployment, "web", StrategicMergePatch(image))
    assert [each.image for each in patched.spec.template.spec.containers] == ["a:1", "b:2"]
    patched = await stage.client.patch(Deployment, "web", MergePatch({"metadata": {"labels": {"app": None, "x": "y"}}}))
    assert patched.metadata.labels == {"x": "y"}
    operation = {"op": "replace", "path": "/metadata/labels/x", "value": "z"}
    patched = await stage.client.patch(Deployment, NamespacedName("default", "web"), JsonPatch([operation]))
    assert patched.metadata.labels == {"x": "z"}


@staged
async def test_a_patch_returns_the_object_in_its_view(stage: Stage) -> None:
    await stage.client.create(config_map("a", key="value"))
    change = MergePatch({"metadata": {"labels": {"x": "y"}}})
    found = await stage.client.patch(MetadataOf(ConfigMap), "a", change)
    assert isinstance(found, PartialObjectMetadata)
    assert found.metadata.labels == {"x": "y"}
    raw = await stage.client.patch(Unstructured.of("v1", "ConfigMap"), "a", change, namespace="default")
    assert raw["data"] == {"key": "value"}


@staged
async def test_changes_of_a_built_in_object_are_sent_as_a_strategic_merge_patch(stage: Stage) -> None:
    await stage.client.create(DEPLOYMENT)
    found = await stage.client.get(Deployment, "web")
    await stage.client.patch(Deployment, "web", MergePatch({"spec": {"replicas": 4}}))  # somebody else, elsewhere
    found.spec.template.spec.containers[1].image = "b:2"
    patched = await stage.client.patch(found)
    assert patched.spec.replicas == 4
    assert [each.image for each in patched.spec.template.spec.containers] == ["a:1", "b:2"]
    sent = stage.transport.requests[-1]
    assert dict(sent.headers)["Content-Type"] == "application/strategic-merge-patch+json"


@staged
async def test_changes_of_a_custom_object_are_sent_as_a_merge_patch(stage: Stage) -> None:
    await stage.client.create(WIDGETS)
    widget = await stage.client.create(Widget(metadata=ObjectMeta(name="a"), spec=WidgetSpec(replicas=1)))
    widget.spec.image = "x"
    await stage.client.patch(widget)
    sent = stage.transport.requests[-1]
    assert dict(sent.headers)["Content-Type"] == "application/merge-patch+json"
    assert sent.body == b'{"spec":{"image":"x"}}'


@staged
async def test_nothing_changed_is_nothing_sent(stage: Stage) -> None:
    await stage.client.create(DEPLOYMENT)
    found = await stage.client.get(Deployment, "web")
    stage.transport.requests.clear()
    assert await stage.client.patch(found, optimistic_lock=True) is found
    assert stage.transport.requests == []


@staged
async def test_an_optimistic_lock_makes_another_write_a_conflict(stage: Stage) -> None:
    found = await stage.client.create(config_map("a", x="1"))
    found.data["x"] = "2"
    await stage.client.patch(ConfigMap, "a", MergePatch({"data": {"y": "1"}}))
    with pytest.raises(Conflict):
        await stage.client.patch(found, optimistic_lock=True)
    assert (await stage.client.patch(found)).data == {"x": "2", "y": "1"}


@staged
async def test_the_change_of_a_dict_needs_its_original(stage: Stage) -> None:
    original = await stage.client.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}})
    changed = {**original, "data": {"x": "1"}}
    with pytest.raises(ValueError, match="its changes are unknown"):
        await stage.client.patch(changed)
    assert (await stage.client.patch(changed, original=original))["data"] == {"x": "1"}


def test_an_optimistic_lock_needs_a_version() -> None:
    with pytest.raises(ValueError, match="optimistic_lock requires a resourceVersion"):
        difference(config_map("a", x="1"), config_map("a"), optimistic_lock=True)


def test_an_object_that_was_made_here_has_no_change() -> None:
    with pytest.raises(ValueError, match=r"ConfigMap default/a: .* its changes are unknown"):
        difference(config_map("a"))


@staged
async def test_metadata_that_was_read_alone_can_be_patched(stage: Stage) -> None:
    await stage.client.create(config_map("a", key="value"))
    found = await stage.client.get(MetadataOf(ConfigMap), "a")
    found.metadata.labels["x"] = "y"
    patched = await stage.client.patch(found)
    assert patched.metadata.labels == {"x": "y"}
    assert (await stage.client.get(ConfigMap, "a")).data == {"key": "value"}


@staged
async def test_a_patch_of_the_status_leaves_the_rest(stage: Stage) -> None:
    await stage.client.create(WIDGETS)
    widget = await stage.client.create(Widget(metadata=ObjectMeta(name="a"), spec=WidgetSpec(replicas=1)))
    widget.spec.replicas = 9
    widget.status = WidgetStatus(ready=1)
    patched = await stage.client.patch(widget, subresource="status")
    assert (patched.spec.replicas, patched.status) == (1, WidgetStatus(ready=1))


@staged
async def test_an_update_or_patch_of_the_rest_leaves_the_status(stage: Stage) -> None:
    await stage.client.create(WIDGETS)
    widget = await stage.client.create(
        Widget(metadata=ObjectMeta(name="a"), spec=WidgetSpec(replicas=1), status=WidgetStatus(ready=7))
    )
    assert not widget.status
    widget.spec.replicas, widget.status = 2, WidgetStatus(ready=7)
    updated = await stage.client.update(widget)
    assert (updated.spec.replicas, updated.status) == (2, None)
    updated.spec.replicas, updated.status = 3, WidgetStatus(ready=7)
    patched = await stage.client.patch(updated)
    assert (patched.spec.replicas, patched.status) == (3, None)


@staged
async def test_the_result_of_a_write_has_its_kind(stage: Stage) -> None:
    await stage.client.create(WIDGETS)
    given = {"apiVersion": "example.dev/v1", "kind": "Widget", "metadata": {"name": "a"}, "spec": {"replicas": 1}}
    change = MergePatch({"metadata": {"labels": {"x": "y"}}})
    answers = [await stage.client.create(given)]
    answers.append(await stage.client.update({**answers[-1], "spec": {"replicas": 2}}))
    answers.append(await stage.client.update({**answers[-1], "status": {"ready": 1}}, subresource="status"))
    answers.append(await stage.client.patch(WIDGET_KIND, "a", change))
    answers.append(
        await stage.client.patch(WIDGET_KIND, "a", MergePatch({"status": {"ready": 2}}), subresource="status")
    )
    answers.append(await stage.client.apply(given, force=True))
    assert [(each["apiVersion"], each["kind"]) for each in answers] == [("example.dev/v1", "Widget")] * 6
    metadata = await stage.client.patch(MetadataOf(Widget), "a", change)
    assert kind_of(metadata).gvk == kind_of(Widget).gvk


# Apply


@staged
async def test_apply_creates_then_owns_and_gives_up(stage: Stage) -> None:
    applied = await stage.client.apply(config_map("a", x="1", y="1"))
    assert applied.data == {"x": "1", "y": "1"}
    applied = await stage.client.apply(config_map("a", x="2"))
    assert applied.data == {"x": "2"}
    entry = applied.metadata.managed_fields[0]
    assert (entry.manager, entry.operation) == ("test", "Apply")


@staged
async def test_a_conflict_of_appliers_names_field_and_manager_and_force_wins(stage: Stage) -> None:
    await stage.client.apply(config_map("a", x="1"))
    with pytest.raises(Conflict, match=r'conflict with "test": \.data\.x'):
        await stage.client.apply(config_map("a", x="2"), field_manager="other")
    forced = await stage.client.apply(config_map("a", x="2"), field_manager="other", force=True)
    assert forced.data == {"x": "2"}


@staged
async def test_apply_takes_dicts_and_the_status(stage: Stage) -> None:
    await stage.client.create(WIDGETS)
    raw: Json = {"apiVersion": "example.dev/v1", "kind": "Widget", "metadata": {"name": "a"}}
    await stage.client.apply({**raw, "spec": {"replicas": 1}})
    applied = await stage.client.apply({**raw, "status": {"ready": 1}}, subresource="status")
    assert (applied["spec"], applied["status"]) == ({"replicas": 1}, {"ready": 1})


@staged
async def test_apply_needs_a_field_manager(stage: Stage) -> None:
    with pytest.raises(ValueError, match="ConfigMap default/a: apply\\(\\) requires a field_manager"):
        await stage.new_client(field_manager="").apply(config_map("a"))


@staged
async def test_an_object_that_was_read_cannot_be_applied(stage: Stage) -> None:
    typed = await stage.client.create(config_map("a", x="1"))
    untyped = await stage.client.get(Unstructured.of("v1", "ConfigMap"), "a")
    for read in (typed, untyped):
        with pytest.raises(ValueError, match=r"ConfigMap default/a: .* read from the server"):
            await stage.client.apply(read)


# Delete


@staged
async def test_delete_by_name_and_by_object(stage: Stage) -> None:
    await stage.client.create(config_map("a"))
    second = await stage.client.create(config_map("b"))
    await stage.client.delete(ConfigMap, "a")
    await stage.client.delete(second)
    assert await stage.client.list(ConfigMap, namespace="default") == []


@staged
async def test_delete_of_a_missing_object_raises_unless_missing_ok(stage: Stage) -> None:
    with pytest.raises(NotFound):
        await stage.client.delete(ConfigMap, "a")
    await stage.client.delete(ConfigMap, "a", missing_ok=True)
    with pytest.raises(NoSuchKind):
        await stage.client.delete(Widget, "a", missing_ok=True)


@staged
async def test_an_object_is_not_mistaken_for_its_namesake(stage: Stage) -> None:
    first = await stage.client.create(config_map("a"))
    await stage.client.delete(first)
    await stage.client.create(config_map("a"))
    with pytest.raises(Conflict, match="the UID in the precondition"):
        await stage.client.delete(first)
    await stage.client.delete(ConfigMap, "a")


@staged
async def test_preconditions_and_propagation_of_a_deletion(stage: Stage) -> None:
    made = await stage.client.create(config_map("a"))
    with pytest.raises(Conflict):
        await stage.client.delete(ConfigMap, "a", resource_version="1")
    await stage.client.delete(ConfigMap, "a", dry_run=True, propagation="Background")
    await stage.client.delete(ConfigMap, "a", propagation="Foreground", uid=made.metadata.uid)
    left = await stage.client.get(ConfigMap, "a")
    assert left.metadata.finalizers == ["foregroundDeletion"]


@staged
async def test_the_grace_period_of_a_deletion(stage: Stage) -> None:
    await stage.client.create(ServiceAccount(metadata=ObjectMeta(name="default")))
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}}
    await stage.client.create({**pod, "spec": {"nodeName": "n", "containers": [{"name": "a", "image": "a"}]}})
    await stage.client.delete(Pod, "a", grace_period=7)
    assert (await stage.client.get(Pod, "a")).metadata.deletion_grace_period_seconds == 7


@staged
async def test_delete_all_of_a_selection(stage: Stage) -> None:
    for name in ("a", "b", "c"):
        made = config_map(name)
        made.metadata.labels = {"app": "x" if name != "c" else "y"}
        await stage.client.create(made)
    await stage.client.delete_all_of(ConfigMap, namespace="default", labels="app=x")
    assert [each.metadata.name for each in await stage.client.list(ConfigMap, namespace="default")] == ["c"]


@staged
async def test_delete_all_of_needs_a_namespace_where_there_are_any(stage: Stage) -> None:
    with pytest.raises(ValueError, match="ConfigMap: delete_all_of\\(\\) requires a namespace"):
        await stage.client.delete_all_of(ConfigMap)
    await stage.client.create(Node(metadata=ObjectMeta(name="n")))
    await stage.client.delete_all_of(Node)
    assert await stage.client.list(Node) == []


@staged
async def test_refusals_name_the_object(stage: Stage) -> None:
    with pytest.raises(Invalid, match=r'ConfigMap "UPPER" is invalid: metadata\.name'):
        await stage.client.create(config_map("UPPER"))


@pytest.mark.parametrize("options", [CreateOptions, WriteOptions, ReadOptions, DeletionOptions])
def test_every_option_is_described(options: Any) -> None:
    described = options.__doc__ + (CreateOptions.__doc__ or "" if options is WriteOptions else "")
    assert [name for name in options.__annotations__ if f"`{name}`" not in described] == []


def test_patches_are_values() -> None:
    assert MergePatch({"a": 1}) == MergePatch({"a": 1})
    assert msgspec.json.decode(JsonPatch([{"op": "remove", "path": "/a"}]).body()) == [{"op": "remove", "path": "/a"}]


@staged
async def test_a_patch_must_have_a_type(stage: Stage) -> None:
    with pytest.raises(TypeError, match=r"not a patch; pass its type, e\.g\. MergePatch"):
        await stage.client.patch(ConfigMap, "a", {"data": {"k": "1"}})  # type: ignore[call-overload]
