"""Applying objects in the name of an owner, and pruning."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.stage.controllers import ControllerStage, staged, staged_with
from tests.stage.kinds import Widget, config_map, definition, widget

from ostinato.api.errors import Conflict
from ostinato.api.gvk import NamespacedName
from ostinato.api.meta import LabelSelector, ObjectMeta
from ostinato.api.owners import AlreadyOwned, OwnerError, controller_of, is_controlled_by
from ostinato.cache.own_writes.expectations import StaleCache, Written
from ostinato.cache.store.indexes import by_owner
from ostinato.client import Unstructured
from ostinato.client.views import view_of
from ostinato.controllers import Context, ForeignObject, Reconcile, controller
from ostinato.controllers.objects import applying
from ostinato.controllers.objects.applying import Applier, contains
from ostinato.controllers.reasons import Why
from ostinato.kinds.apps_v1 import Deployment, DeploymentSpec
from ostinato.kinds.core_v1 import ConfigMap, Container, Namespace, PodSpec, PodTemplateSpec, Secret


async def context(stage: ControllerStage, *watched: Any, name: str = "widgets") -> Context:
    """A context outside of a controller, with caches of some kinds."""
    for kind in watched:
        stage.informers.of(kind).add_index(by_owner())
    stage.informers.start()
    await stage.informers.synced(10)
    reconcile = Reconcile(
        id="1",
        controller=name,
        request=NamespacedName("default", "a"),
        gvk=None,
        why=Why((), None),
        attempt=1,
    )
    views = [view_of(kind) for kind in watched]
    return Context(reconcile, stage.dependencies, Applier(stage.client, name), views)


def deployment(name: str = "a", replicas: int = 1) -> Deployment:
    return Deployment(
        metadata=ObjectMeta(name=name),
        spec=DeploymentSpec(
            replicas=replicas,
            selector=LabelSelector(match_labels={"app": name}),
            template=PodTemplateSpec(
                metadata=ObjectMeta(labels={"app": name}),
                spec=PodSpec(containers=[Container(name="main", image="nginx", args=["a", "b"])]),
            ),
        ),
    )


@staged
async def test_an_object_is_made_with_its_owner_and_in_its_namespace(stage: ControllerStage) -> None:
    ctx = await context(stage, ConfigMap)
    owner = await stage.user.create(widget("a"))
    wanted = ConfigMap(metadata=ObjectMeta(name="a"), data={"k": "v"})
    made = await ctx.apply(wanted, owner=owner)
    assert is_controlled_by(made, owner)
    assert made.metadata.namespace == "default"
    assert wanted.metadata.owner_references == []
    managers = {each.manager: each.operation for each in (await stage.user.get(ConfigMap, "a")).metadata.managed_fields}
    assert managers == {"widgets": "Apply"}


@staged
async def test_dicts_are_applied_too(stage: ControllerStage) -> None:
    ctx = await context(stage)
    owner = await stage.user.create(widget("a"))
    wanted = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"k": "v"}}
    made = await ctx.apply(wanted, owner=owner)
    assert made["metadata"]["namespace"] == "default"
    reference = controller_of(made)
    assert reference is not None
    assert reference.name == "a"
    assert "namespace" not in wanted["metadata"]


@staged
async def test_without_an_owner_the_object_stands_alone(stage: ControllerStage) -> None:
    ctx = await context(stage, ConfigMap)
    made = await ctx.apply(config_map("a", k="v"))
    assert made.metadata.owner_references == []


@staged
async def test_a_cluster_scoped_child_gets_no_namespace_from_its_owner(stage: ControllerStage) -> None:
    ctx = await context(stage)
    owner = await stage.user.create(widget("a"))
    with pytest.raises(OwnerError, match="cluster-scoped resource must not have a namespace-scoped owner"):
        await ctx.apply(Namespace(metadata=ObjectMeta(name="n")), owner=owner)


@staged
async def test_the_same_is_not_sent_twice_whatever_the_status_does(stage: ControllerStage) -> None:
    ctx = await context(stage, Deployment)
    owner = await stage.user.create(widget("a"))
    await ctx.apply(deployment(), owner=owner)
    sent = len(stage.transport.writes())
    for replicas in range(3):
        found = await stage.user.get(Deployment, "a")
        assert found.status is not None
        found.status.replicas = replicas + 1
        await stage.user.update(found, subresource="status")
        await stage.settle()
        again = await ctx.apply(deployment(), owner=owner)
        assert again.status is not None
        assert again.status.replicas == replicas + 1
    assert len(stage.transport.writes()) == sent


@staged
async def test_an_object_applied_by_one_owner_is_refused_to_another_before_any_event(
    stage: ControllerStage,
) -> None:
    ctx = await context(stage, ConfigMap)
    one, other = await stage.user.create(widget("one")), await stage.user.create(widget("other"))
    await ctx.apply(config_map("a", k="v"), owner=one)
    await stage.settle()
    sent = len(stage.transport.writes())
    with pytest.raises(AlreadyOwned):
        await ctx.apply(config_map("a", k="v"), owner=other)
    assert (await ctx.apply(config_map("a", k="v"), owner=one)).data == {"k": "v"}
    assert len(stage.transport.writes()) == sent


@staged
async def test_the_object_that_is_given_stays_as_it_is(stage: ControllerStage) -> None:
    ctx = await context(stage, ConfigMap)
    owner = await stage.user.create(widget("a"))
    given = ConfigMap(metadata=ObjectMeta(name="a", labels={"x": "y"}), data={"k": "v"})
    plain = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "b"}, "data": {"k": "v"}}
    await ctx.apply(given, owner=owner)
    await ctx.apply(plain, owner=owner)
    assert given == ConfigMap(metadata=ObjectMeta(name="a", labels={"x": "y"}), data={"k": "v"})
    assert plain == {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "b"}, "data": {"k": "v"}}


@staged
async def test_changes_by_other_writers_are_reverted(stage: ControllerStage) -> None:
    ctx = await context(stage, Deployment, ConfigMap)
    owner = await stage.user.create(widget("a"))
    await ctx.apply(deployment(replicas=2), owner=owner)
    await ctx.apply(config_map("a", k="v"), owner=owner)
    found = await stage.user.get(Deployment, "a")
    found.spec.replicas = 9
    found.metadata.labels = {"x": "y"}
    await stage.user.update(found)
    other = await stage.user.get(ConfigMap, "a")
    other.data = {"k": "changed", "more": "x"}
    await stage.user.update(other)
    await stage.settle()
    again = await ctx.apply(deployment(replicas=2), owner=owner)
    assert again.spec.replicas == 2
    assert again.metadata.labels == {"x": "y"}
    changed = await ctx.apply(config_map("a", k="v"), owner=owner)
    assert changed.data == {"k": "v", "more": "x"}


@staged
async def test_fields_added_by_others_are_kept_without_a_request(stage: ControllerStage) -> None:
    ctx = await context(stage, ConfigMap)
    await ctx.apply(config_map("a", k="v"))
    found = await stage.user.get(ConfigMap, "a")
    found.data["more"] = "x"
    await stage.user.update(found)
    await stage.settle()
    sent = len(stage.transport.writes())
    assert (await ctx.apply(config_map("a", k="v"))).data == {"k": "v", "more": "x"}
    assert len(stage.transport.writes()) == sent


@staged
async def test_a_field_that_is_wanted_no_longer_is_given_up(stage: ControllerStage) -> None:
    ctx = await context(stage, ConfigMap)
    await ctx.apply(config_map("a", k="v", old="x"))
    assert (await ctx.apply(config_map("a", k="v"))).data == {"k": "v"}


@staged
async def test_a_recreated_object_is_applied_again(stage: ControllerStage) -> None:
    ctx = await context(stage, ConfigMap)
    await ctx.apply(config_map("a", k="v"))
    await stage.user.delete(ConfigMap, "a")
    await stage.user.create(config_map("a", k="v"))
    await stage.settle()
    sent = len(stage.transport.writes())
    await ctx.apply(config_map("a", k="v"))
    assert len(stage.transport.writes()) == sent + 1


def test_digests_of_deleted_objects_are_dropped_and_others_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(applying, "_MIN_SWEEP", 10)

    @staged
    async def play(stage: ControllerStage) -> None:
        ctx = await context(stage, ConfigMap)
        await ctx.apply(config_map("stays"))
        for number in range(100):
            await ctx.apply(config_map(f"goes-{number}"))
            await ctx.client.delete(ConfigMap, f"goes-{number}")
            await ctx.client.fresh(ConfigMap)
        assert len(ctx._applier._applied) <= 11
        stage.transport.requests.clear()
        await ctx.apply(config_map("stays"))
        assert stage.transport.writes() == []

    play()


@staged
async def test_unwatched_kinds_are_applied_each_time(stage: ControllerStage) -> None:
    ctx = await context(stage)
    await ctx.apply(config_map("a", k="v"))
    await ctx.apply(config_map("a", k="v"))
    assert len(stage.transport.writes()) == 2


# Whose it is


@staged
async def test_an_object_that_the_owner_does_not_manage_is_refused(stage: ControllerStage) -> None:
    for watched in ((), (ConfigMap,)):
        ctx = await context(stage, *watched)
        owner = await stage.user.create(widget(f"w{len(watched)}"))
        await stage.user.apply(config_map("theirs", k="v"), force=True)
        await stage.settle()
        with pytest.raises(ForeignObject) as caught:
            await ctx.apply(config_map("theirs", k="mine"), owner=owner)
        assert str(caught.value) == (
            f"ConfigMap default/theirs exists and is not controlled by Widget default/w{len(watched)}; "
            "apply it with adopt=True, delete it, or use another name"
        )


@staged
async def test_an_object_that_is_to_be_adopted_is(stage: ControllerStage) -> None:
    ctx = await context(stage, ConfigMap)
    owner = await stage.user.create(widget("a"))
    await stage.user.create(config_map("theirs", k="v"))
    await stage.settle()
    made = await ctx.apply(config_map("theirs", k="mine"), owner=owner, adopt=True)
    assert is_controlled_by(made, owner)
    assert made.data == {"k": "mine"}


@staged
async def test_an_object_of_another_owner_is_refused(stage: ControllerStage) -> None:
    for watched in ((), (ConfigMap,)):
        ctx = await context(stage, *watched)
        name = f"x{len(watched)}"
        first = await stage.user.create(widget(f"{name}-first"))
        second = await stage.user.create(widget(f"{name}-second"))
        await ctx.apply(config_map(name), owner=first)
        with pytest.raises(AlreadyOwned, match=f"already owned by another Widget controller {name}-first"):
            await ctx.apply(config_map(name), owner=second)
        assert is_controlled_by(await ctx.apply(config_map(name), owner=first), first)


@staged
async def test_dependents_of_a_deleted_owner_with_the_same_name_are_awaited_without_an_error(
    stage: ControllerStage,
) -> None:
    @controller(Widget, owns=[ConfigMap])
    async def widgets(each: Widget, ctx: Context) -> None:
        await ctx.apply(config_map(each.metadata.name), owner=each)

    await stage.user.create(widget("a"))
    async with stage.running(widgets):
        await stage.settle()
        await stage.user.delete(Widget, "a")
        second = await stage.user.create(widget("a"))
        await stage.settle(1)
        assert stage.log.texts() == []
        await stage.settle(60)  # nobody collects garbage here, and that is worth a word, but no traceback
        assert (
            "object still owned by a deleted owner, requeued controller=widgets object='Widget default/a' attempt=11 "
            "error=ConfigMap default/a is controlled by a deleted Widget a (uid "
        ) in stage.log.texts()[0]
        assert not any(record.exc_info for record in stage.log.records)
        await stage.user.delete(ConfigMap, "a")
        await stage.settle()
        assert is_controlled_by(await stage.user.get(ConfigMap, "a"), second)


@staged
async def test_a_refused_owner_is_reported_with_the_line_of_the_user(stage: ControllerStage) -> None:
    @controller(Widget, owns=[ConfigMap])
    async def widgets(each: Widget, ctx: Context) -> None:
        await ctx.apply(config_map("shared"), owner=each)

    for name in "ab":
        await stage.user.create(widget(name))
    async with stage.running(widgets):
        await stage.settle()
    assert "AlreadyOwned: ConfigMap default/shared is already owned by another Widget" in stage.log.texts()[0]
    (trace,) = [record.exc_info[2] for record in stage.log.records if record.exc_info]
    assert trace is not None
    assert trace.tb_frame.f_code.co_name == "widgets"
    assert trace.tb_next is None


@staged
async def test_fields_of_other_managers_are_taken_over_unless_force_is_off(stage: ControllerStage) -> None:
    ctx = await context(stage, ConfigMap)
    await stage.user.apply(config_map("a", k="theirs"))
    with pytest.raises(Conflict):
        await ctx.apply(config_map("a", k="mine"), force=False)
    assert (await ctx.apply(config_map("a", k="mine"))).data == {"k": "mine"}


# Sets


@staged
async def test_a_set_is_applied_and_other_owned_objects_are_deleted(stage: ControllerStage) -> None:
    ctx = await context(stage, ConfigMap, Secret)
    owner = await stage.user.create(widget("a"))
    other = await stage.user.create(widget("b"))
    await ctx.apply_set([config_map("one"), config_map("two")], owner=owner)
    secret = Secret(metadata=ObjectMeta(name="secret"))
    await ctx.apply(secret, owner=owner)
    await ctx.apply(config_map("others"), owner=other)
    await stage.user.create(config_map("nobodys"))
    await ctx.apply_set([config_map("two"), config_map("three")], owner=owner)
    names = sorted(each.metadata.name for each in await stage.user.list(ConfigMap, namespace="default"))
    assert names == ["nobodys", "others", "three", "two"]
    assert await stage.user.get(Secret, "secret", missing=None) is None


@staged
async def test_pruning_does_not_wait_for_writes_in_another_namespace(stage: ControllerStage) -> None:
    ctx = await context(stage, ConfigMap)
    owner = await stage.user.create(widget("a"))
    (informer,) = stage.informers.all(view_of(ConfigMap).gvk)
    (feed,) = informer.feeds
    feed.expectations.expect(Written(NamespacedName("elsewhere", "x"), "999999"))  # and it does not come
    await ctx.apply_set([config_map("one")], owner=owner)
    feed.expectations.expect(Written(NamespacedName("default", "x"), "999999"))
    with pytest.raises(StaleCache):
        await ctx.apply_set([config_map("one")], owner=owner)


@staged
async def test_kinds_that_are_not_watched_are_pruned_when_they_are_named(stage: ControllerStage) -> None:
    ctx = await context(stage)
    owner = await stage.user.create(widget("a"))
    await ctx.apply(config_map("one"), owner=owner)
    await ctx.apply(config_map("two"), owner=owner)
    await ctx.prune(owner, keep=[config_map("two")], kinds=[ConfigMap])
    names = [each.metadata.name for each in await stage.user.list(ConfigMap, namespace="default")]
    assert names == ["two"]


@staged_with(definition("Top", "tops", "Cluster"))
async def test_an_object_that_names_no_namespace_is_looked_for_where_it_will_be(stage: ControllerStage) -> None:
    ctx = await context(stage, ConfigMap)
    owner = await stage.user.create({"apiVersion": "example.dev/v1", "kind": "Top", "metadata": {"name": "a"}})
    await stage.user.create(config_map("theirs"))
    await stage.settle()
    for _ in range(2):
        await ctx.apply(ConfigMap(metadata=ObjectMeta(name="own"), data={"a": "b"}), owner=owner)
        await ctx.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "free"}})
    assert len(stage.transport.writes()) == 2, "what was applied before is known"
    with pytest.raises(ForeignObject):
        await ctx.apply(ConfigMap(metadata=ObjectMeta(name="theirs")), owner=owner)


@staged_with(definition("Top", "tops", "Cluster"))
async def test_an_object_of_the_same_name_in_another_namespace_is_pruned(stage: ControllerStage) -> None:
    ctx = await context(stage, ConfigMap)
    await stage.user.create(Namespace(metadata=ObjectMeta(name="other")))
    owner = await stage.user.create({"apiVersion": "example.dev/v1", "kind": "Top", "metadata": {"name": "a"}})
    here, there = config_map("one"), config_map("one")
    there.metadata.namespace = "other"
    await ctx.apply_set([here, there], owner=owner)
    await ctx.apply_set([here], owner=owner)
    assert [each.metadata.namespace for each in await stage.user.list(ConfigMap, fields="metadata.name=one")] == [
        "default"
    ]
    nowhere = ConfigMap(metadata=ObjectMeta(name="one"))
    await ctx.prune(owner, keep=[nowhere], kinds=[ConfigMap])
    assert await stage.user.get(ConfigMap, "one", missing=None) is not None, "it may be the one that was meant"


@staged
async def test_a_kind_that_is_watched_without_an_index_of_owners_is_pruned(stage: ControllerStage) -> None:
    stage.informers.of(ConfigMap)
    stage.informers.start()
    ctx = await context(stage)
    owner = await stage.user.create(widget("a"))
    await ctx.apply(config_map("one"), owner=owner)
    await ctx.prune(owner, kinds=[Unstructured.of("v1", "ConfigMap")])
    assert await stage.user.get(ConfigMap, "one", missing=None) is None


@staged
async def test_terminating_objects_are_not_deleted_again(stage: ControllerStage) -> None:
    ctx = await context(stage, ConfigMap)
    owner = await stage.user.create(widget("a"))
    kept = config_map("one")
    kept.metadata.finalizers = ["example.dev/hold"]
    await ctx.apply(kept, owner=owner)
    await ctx.prune(owner)
    await stage.settle()
    sent = len(stage.transport.writes())
    await ctx.prune(owner)
    assert len(stage.transport.writes()) == sent


# Adoption


@staged
async def test_an_orphan_is_adopted_and_released(stage: ControllerStage) -> None:
    ctx = await context(stage)
    owner = await stage.user.create(widget("a"))
    orphan = await stage.user.create(config_map("x"))
    adopted = await ctx.adopt(orphan, owner)
    assert is_controlled_by(adopted, owner)
    assert orphan.metadata.owner_references == []
    assert await ctx.adopt(adopted, owner) is adopted
    released = await ctx.release(adopted, owner)
    assert released.metadata.owner_references == []
    assert await ctx.release(released, owner) is released


@staged
async def test_of_two_concurrent_adoptions_the_second_gets_a_conflict(stage: ControllerStage) -> None:
    ctx = await context(stage)
    first = await stage.user.create(widget("a"))
    second = await stage.user.create(widget("b"))
    orphan = await stage.user.create(config_map("x"))
    await ctx.adopt(orphan, first)
    with pytest.raises(Conflict):
        await ctx.adopt(orphan, second)
    with pytest.raises(AlreadyOwned):
        await ctx.adopt(await stage.user.get(ConfigMap, "x"), second)


@staged
async def test_terminating_objects_neither_adopt_nor_are_adopted(stage: ControllerStage) -> None:
    ctx = await context(stage)
    owner = widget("a")
    owner.metadata.finalizers = ["example.dev/hold"]
    owner = await stage.user.create(owner)
    await stage.user.delete(Widget, "a")
    owner = await stage.user.get(Widget, "a")
    orphan = await stage.user.create(config_map("x"))
    with pytest.raises(OwnerError, match="cannot be adopted by Widget default/a: Widget default/a is being deleted"):
        await ctx.adopt(orphan, owner)


# What is contained in what


@pytest.mark.parametrize(
    ("actual", "wanted", "answer"),
    [
        ({"a": 1, "b": 2}, {"a": 1}, True),
        ({"a": 1}, {"a": 1, "b": None}, False),
        ({"a": [1, 2]}, {"a": [1]}, False),
        ({"a": [{"x": 1, "y": 2}]}, {"a": [{"x": 1}]}, True),
        ({"a": "x"}, {"a": {"b": 1}}, False),
        ({"a": {}}, {"a": []}, False),
        ({"a": True}, {"a": 1}, False),
        ({"a": 1.0}, {"a": 1}, True),
        ({}, {}, True),
        ("x", "x", True),
    ],
)
def test_all_that_is_wanted_is_there(actual: Any, wanted: Any, answer: bool) -> None:
    assert contains(actual, wanted) is answer


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner, max_size=3),
    max_leaves=8,
)


@given(JSON)
def test_everything_contains_itself(value: Any) -> None:
    assert contains(value, value)


@given(st.dictionaries(st.text(max_size=2), JSON, max_size=3), st.text(min_size=3, max_size=4), JSON)
def test_more_fields_do_no_harm(value: dict[str, Any], name: str, more: Any) -> None:
    assert contains({**value, name: more}, value)
    assert not contains(value, {**value, name: more})
