"""Controllers of many kinds: kinds that appear are picked up, kinds that go are dropped."""

from __future__ import annotations

from typing import Any

import pytest
from tests.stage.controllers import ControllerStage, staged
from tests.stage.kinds import definition

from ostinato.api.errors import ServiceUnavailable
from ostinato.api.gvk import GroupVersion
from ostinato.api.object import KindInfo
from ostinato.client.discovery.discovery import ApiResource, ApiVersion, Catalogue
from ostinato.client.patching import MergePatch
from ostinato.client.views import Unstructured
from ostinato.controllers import (
    Context,
    ControllerError,
    ControllerFunction,
    KindsOf,
    PermanentError,
    controller,
    daemon,
    timer,
)
from ostinato.controllers.kinds.controllers import _suffix
from ostinato.crd import Access, access_of, event_namespaces
from ostinato.kinds.apiextensions_v1 import CustomResourceDefinition
from ostinato.kinds.core_v1 import ConfigMap

Json = dict[str, Any]

GADGETS = definition("Gadget", "gadgets")


def labelled(crd: Json, **labels: str) -> Json:
    return {**crd, "metadata": {**crd["metadata"], "labels": labels}}


def thing(kind: str, name: str = "a") -> Json:
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": "example.dev/v1", "kind": kind, "metadata": metadata, "spec": {"size": 1}}


class Seen:
    def __init__(self) -> None:
        self.log: list[str] = []

    def made(self, selector: KindsOf, **options: Any) -> ControllerFunction:
        @controller(selector, **options)
        async def audit(thing: Json, ctx: Context) -> None:
            assert ctx.reconcile.gvk is not None
            assert ctx.reconcile.gvk.kind == thing["kind"]
            self.log.append(f"{thing['kind']} {thing['metadata']['name']} {ctx.name}")

        return audit


@staged
async def test_kinds_of_a_group_are_followed_while_the_server_serves_them(stage: ControllerStage) -> None:
    seen = Seen()
    await stage.user.create(thing("Widget"))
    made = seen.made(KindsOf(group="example.dev"))
    async with stage.running(made):
        await stage.settle(5)
        assert seen.log == ["Widget a audit.widgets.example.dev"]
        assert made.has_synced
        await stage.user.create(GADGETS)
        await stage.settle(5)
        await stage.user.create(thing("Gadget"))
        await stage.settle(5)
        assert seen.log[1:] == ["Gadget a audit.gadgets.example.dev"]
        await stage.user.delete(CustomResourceDefinition, "gadgets.example.dev")
        await stage.settle(10)
        gvk = Unstructured.of("example.dev/v1", "Gadget").gvk
        assert stage.informers.all(gvk) == [], "its cache is released"
        await stage.user.create(GADGETS)
        await stage.settle(5)
        await stage.user.create(thing("Gadget", "b"))
        await stage.settle(5)
        assert seen.log[2:] == ["Gadget b audit.gadgets.example.dev"]
        await stage.user.create(thing("Widget", "b"))
        await stage.settle(1)
        assert seen.log[3:] == ["Widget b audit.widgets.example.dev"]
    assert [text for text in stage.log.texts() if "controller failed" in text] == []


@staged
async def test_kinds_are_selected_by_labels_of_their_definition(stage: ControllerStage) -> None:
    seen = Seen()
    await stage.user.create(labelled(GADGETS, team="a"))
    await stage.settle(2)
    await stage.user.create(thing("Gadget"))
    await stage.user.create(thing("Widget"))
    async with stage.running(seen.made(KindsOf(definition_labels="team=a"))):
        await stage.settle(5)
        assert seen.log == ["Gadget a audit.gadgets.example.dev"]
        name = "widgets.example.dev"
        await stage.user.patch(CustomResourceDefinition, name, MergePatch({"metadata": {"labels": {"team": "a"}}}))
        await stage.settle(5)
        assert seen.log[1:] == ["Widget a audit.widgets.example.dev"]
        await stage.user.patch(CustomResourceDefinition, name, MergePatch({"metadata": {"labels": {"team": "b"}}}))
        await stage.settle(5)
        await stage.user.create(thing("Widget", "b"))
        await stage.settle(5)
        assert len(seen.log) == 2, "no longer selected"


@staged
async def test_the_failure_of_one_kind_does_not_stop_the_others(stage: ControllerStage) -> None:
    seen: list[str] = []
    await stage.user.create(GADGETS)
    await stage.settle(2)

    @controller(KindsOf(group="example.dev"), contain_panics=False)
    async def audit(thing: Json, ctx: Context) -> None:
        seen.append(thing["kind"])
        if thing["kind"] == "Gadget" and seen.count("Gadget") == 1:
            raise AssertionError("stops the controller")

    await stage.user.create(thing("Gadget"))
    await stage.user.create(thing("Widget"))
    async with stage.running(audit) as task:
        await stage.settle(20)
        assert not task.done()
        assert sorted(seen) == ["Gadget", "Gadget", "Widget"]
        text = "controller failed, restarting controller=audit.gadgets.example.dev error=stops the controller"
        assert text in stage.log.texts()


@staged
async def test_daemons_and_timers_of_many_kinds(stage: ControllerStage) -> None:
    log: list[str] = []

    @daemon(KindsOf(group="example.dev"))
    async def follow(thing: Json, ctx: Context) -> None:
        log.append(f"+{thing['kind']}")
        try:
            await ctx.sleep(10_000)
        finally:
            log.append(f"-{thing['kind']}")

    @timer(KindsOf(group="example.dev"), every=10, when=lambda each: each["kind"] == "Widget")
    async def tick(thing: Json, ctx: Context) -> None:
        log.append("tick")
        raise PermanentError("once")

    await stage.user.create(GADGETS)
    await stage.settle(2)
    await stage.user.create(thing("Gadget"))
    async with stage.running(follow), stage.running(tick):
        await stage.settle(5)
        assert log == ["+Gadget"]
        await stage.user.create(thing("Widget"))
        await stage.settle(5)
        assert sorted(log) == ["+Gadget", "+Widget", "tick"]
        await stage.user.delete(CustomResourceDefinition, "gadgets.example.dev")
        await stage.settle(5)
        assert log[-1] == "-Gadget"
    assert log[-1] == "-Widget"


@staged
async def test_a_kind_that_takes_long_to_stop_does_not_delay_others_and_is_not_started_twice(
    stage: ControllerStage,
) -> None:
    log: list[str] = []

    @daemon(KindsOf(definition_labels="team=a"))
    async def follow(thing: Json, ctx: Context) -> None:
        kind = thing["kind"]
        log.append(f"+{kind}")
        try:
            await ctx.sleep(10_000)
        finally:
            await ctx.sleep(30 if kind == "Gadget" else 0)
            log.append(f"-{kind}")

    async def label(name: str, team: str) -> None:
        change = MergePatch({"metadata": {"labels": {"team": team}}})
        await stage.user.patch(CustomResourceDefinition, f"{name}.example.dev", change)
        await stage.settle(5)

    await stage.user.create(labelled(GADGETS, team="a"))
    await stage.settle(2)
    await stage.user.create(thing("Gadget"))
    await stage.user.create(thing("Widget"))
    async with stage.running(follow):
        await stage.settle(5)
        await label("gadgets", "b")
        await label("widgets", "a")
        await label("gadgets", "a")
        assert log == ["+Gadget", "+Widget"]
        await stage.settle(30)
        assert log == ["+Gadget", "+Widget", "-Gadget", "+Gadget"]


def test_names_have_a_limit() -> None:
    info = KindInfo(GroupVersion("g" * 200, "v1").kind("Thing"), "things", "thing", namespaced=True)
    for name in ("a", "a" * 100):
        assert len(name + _suffix(info, 128 - len(name))) <= 128
    with pytest.raises(ControllerError, match="is too long a name for a controller of many kinds; use at most 100"):
        Seen().made(KindsOf(group="example.dev"), name="a" * 101)


def catalogue(*kinds: tuple[str, str, str, tuple[str, ...]]) -> Catalogue:
    """Return a catalogue of group version, kind, plural and categories."""
    versions = []
    for version, kind, plural, categories in kinds:
        found = GroupVersion.parse(version)
        info = KindInfo(found.kind(kind), plural, kind.lower(), namespaced=True, categories=categories)
        versions.append(ApiVersion(found, (ApiResource(info, ("get", "list", "watch", "patch")),)))
    return Catalogue(tuple(versions), {GroupVersion("broken.dev", "v1"): ServiceUnavailable.of("x")})


SERVED = catalogue(
    ("v1", "Pod", "pods", ("all",)),
    ("v1", "Event", "events", ()),
    ("apps/v1", "Deployment", "deployments", ("all",)),
    ("a.example.dev/v2", "Thing", "things", ()),
    ("a.example.dev/v1", "Thing", "things", ()),
    ("b.example.dev/v1", "Other", "others", ("all", "mine")),
)


@pytest.mark.parametrize(
    ("selector", "kinds"),
    [
        (KindsOf(group=""), ["v1 Pod"]),
        (KindsOf(group="a.example.dev"), ["a.example.dev/v2 Thing"]),
        (KindsOf(group="*.example.dev"), ["a.example.dev/v2 Thing", "b.example.dev/v1 Other"]),
        (KindsOf(category="mine"), ["b.example.dev/v1 Other"]),
        (KindsOf(category="all", group="apps"), ["apps/v1 Deployment"]),
        (KindsOf(definition_labels="x=y"), ["a.example.dev/v2 Thing"]),
        (KindsOf(definition_labels="x", group="b*"), []),
    ],
)
def test_selectors(selector: KindsOf, kinds: list[str]) -> None:
    found = selector.select(SERVED, {"things.a.example.dev": {"x": "y"}, "others.b.example.dev": {}})
    assert [f"{each.gvk.api_version} {each.gvk.kind}" for each in found] == kinds


def test_a_kind_that_cannot_be_watched_is_not_selected() -> None:
    info = KindInfo(GroupVersion("a.dev", "v1").kind("Review"), "reviews", "review", namespaced=False)
    served = Catalogue((ApiVersion(GroupVersion("a.dev", "v1"), (ApiResource(info, ("create",)),)),))
    assert KindsOf(group="*").select(served, {}) == []


@pytest.mark.parametrize(
    ("selector", "group"),
    [
        (KindsOf(group="example.dev"), "example.dev"),
        (KindsOf(group="*.example.dev"), "*"),
        (KindsOf(category="all"), "*"),
        (KindsOf(category="all", group="apps"), "apps"),
    ],
)
def test_roles_of_many_kinds(selector: KindsOf, group: str) -> None:
    made = Seen().made(selector, owns=[ConfigMap])
    found = access_of(made)
    assert Access(groups=(group,), resources=("*",), verbs=("get", "list", "watch", "patch", "update")) in found
    definitions = ("customresourcedefinitions",)
    assert Access(groups=("apiextensions.k8s.io",), resources=definitions, verbs=("get", "list", "watch")) in found
    assert any(each.resources == ("configmaps",) and "create" in each.verbs for each in found)
    assert event_namespaces([made]) == {""}
    assert made.name == "audit"


def test_a_selector_without_a_condition_is_an_error() -> None:
    with pytest.raises(ValueError, match=r"KindsOf\(\) selects nothing; give group="):
        KindsOf()


def test_a_mistake_is_reported_at_the_definition() -> None:
    with pytest.raises(TypeError, match="takes the context first; swap the parameters"):

        @controller(KindsOf(group="example.dev"))
        async def audit(ctx: Context, thing: Json) -> None: ...
