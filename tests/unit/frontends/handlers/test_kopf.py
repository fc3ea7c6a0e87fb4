"""Operators written for kopf, with another import: three in the manner of its examples, and its helpers."""

from __future__ import annotations

from typing import Any

import pytest
from tests.stage.handlers import EXAMPLE, definition, example

import ostinato.kopf as kopf
from ostinato import Client, ObjectMeta
from ostinato.client import MergePatch
from ostinato.frontends.handlers.operator import Handlers
from ostinato.kinds.core_v1 import ConfigMap
from ostinato.testing import Cluster, VirtualClock
from ostinato.testing.events import Events


async def test_an_operator_with_children(cluster: Cluster, client: Client, clock: VirtualClock) -> None:
    await cluster.install(definition())
    handlers = Handlers("children")

    @kopf.on.create("examples", registry=handlers)
    def create_fn(spec: kopf.Spec, ctx: Any, **_: Any) -> Any:
        child = {"apiVersion": "v1", "kind": "ConfigMap", "data": {"field": spec.get("field", "default")}}
        kopf.adopt(child, strict=True)
        made = ctx.client.create(child)
        return {"children": [made["metadata"]["uid"]]}

    await cluster.manager(rbac=False).start(handlers)
    parent = example(field="value")
    parent["metadata"]["labels"] = {"app": "web"}
    await client.create(parent)
    await clock.advance(1)
    found, child = await client.get(EXAMPLE, "one"), await client.get(ConfigMap, "one")
    assert found["status"]["create_fn"] == {"children": [child.metadata.uid]}
    assert child.data == {"field": "value"}
    assert child.metadata.labels == {"app": "web"}
    (owner,) = child.metadata.owner_references
    assert (owner.kind, owner.uid, owner.controller) == ("Example", found["metadata"]["uid"], True)


async def test_an_operator_whose_handlers_fail(cluster: Cluster, client: Client, clock: VirtualClock) -> None:
    await cluster.install(definition())
    handlers = Handlers("failing")
    calls: list[Any] = []

    @kopf.on.create("examples", registry=handlers)
    def at_once(**_: Any) -> None:
        calls.append("at_once")
        raise kopf.PermanentError("for good")

    @kopf.on.create("examples", registry=handlers)
    def in_the_end(retry: int, **_: Any) -> None:
        calls.append(("in_the_end", retry))
        if retry < 3:
            raise kopf.TemporaryError("wait", delay=1.0)

    @kopf.on.create("examples", registry=handlers, retries=3, backoff=1.0)
    def never(**_: Any) -> None:
        calls.append("never")
        raise RuntimeError("no")

    @kopf.on.create("examples", registry=handlers, errors=kopf.ErrorsMode.PERMANENT, backoff=1.0)
    def strict(**_: Any) -> None:
        calls.append("strict")
        raise RuntimeError("no")

    manager = await cluster.manager().start(handlers)
    await client.create(example())
    await clock.advance(0.5)
    assert calls == ["at_once", ("in_the_end", 0), "never", "strict"]
    await clock.advance(10)
    assert calls[4:] == [("in_the_end", 1), "never", ("in_the_end", 2), "never", ("in_the_end", 3)]
    assert manager.errors
    assert kopf.TemporaryError("x").delay == 60


async def test_an_operator_with_all_handlers_and_filters(cluster: Cluster, client: Client, clock: VirtualClock) -> None:
    await cluster.install(definition())
    calls: list[Any] = []

    def operator() -> Handlers:
        handlers = Handlers("all")
        for name, options in {
            "label": {"labels": {"tier": "web"}},
            "present": {"labels": {"tier": kopf.PRESENT}},
            "absent": {"annotations": {"none": kopf.ABSENT}},
            "callback": {"labels": {"tier": lambda value, spec, **_: value == "web" and "field" in spec}},
            "when": {"when": kopf.not_(lambda **_: True)},
            "value": {"field": "spec.field", "value": "a"},
        }.items():

            @kopf.on.create("examples", registry=handlers, id=name, **options)
            def created(name: str = name, **_: Any) -> None: ...

            @kopf.on.create("examples", registry=handlers, id=f"{name}-2", param=name, **options)
            def noted(param: str, **_: Any) -> None:
                calls.append(param)

        @kopf.on.resume("examples", registry=handlers)
        def resumed(**_: Any) -> None:
            calls.append("resumed")

        @kopf.on.update("examples", registry=handlers, field="spec.field", old="a", new="b")
        def changed(old: Any, new: Any, diff: kopf.Diff, **_: Any) -> None:
            calls.append((old, new, [item.op == kopf.DiffOperation.CHANGE for item in diff]))

        @kopf.on.field("examples", registry=handlers, field="spec.field")
        def field(old: Any, new: Any, **_: Any) -> None:
            calls.append((old, new))

        @kopf.on.delete("examples", registry=handlers)
        def deleted(reason: str, **_: Any) -> None:
            calls.append(reason == kopf.Reason.DELETE)

        return handlers

    manager = await cluster.manager().start(operator())
    web = example(field="a")
    web["metadata"]["labels"] = {"tier": "web"}
    await client.create(web)
    await clock.advance(1)
    assert calls == ["label", "present", "absent", "callback", "value", (None, "a")]
    calls.clear()
    await client.patch(EXAMPLE, "one", MergePatch({"spec": {"field": "b"}}))
    await clock.advance(1)
    assert calls == [("a", "b", [True]), ("a", "b")]
    await manager.end()
    calls.clear()
    await cluster.manager().start(operator())
    await clock.advance(1)
    await client.delete(EXAMPLE, "one")
    await clock.advance(1)
    assert calls == ["resumed", True]


def test_a_module_that_imports_kopf_uses_its_finalizer() -> None:
    @kopf.on.delete("examples")
    def gone(**_: Any) -> None: ...

    @kopf.daemon("examples")
    def daemon(**_: Any) -> None: ...

    variables = globals()
    try:
        found = variables["__handlers__"]
        assert [each.id for each in found.handlers] == ["gone", "daemon"]
        assert found.make()._shared.finalizer == "kopf.zalando.org/KopfFinalizerMarker"
    finally:
        del variables["__handlers__"]


def test_names_without_a_counterpart_can_be_used_and_unknown_ones_are_reported() -> None:
    settings = kopf.OperatorSettings()
    settings.admission.server = kopf.WebhookServer(port=1234)
    settings.persistence.progress_storage = kopf.AnnotationsProgressStorage(prefix="example.dev")
    settings.report_ignored()
    assert kopf.RawEvent is Any
    assert kopf.lifecycles.asap is None
    with pytest.raises(AttributeError, match=r"ostinato\.kopf has no 'nothing'"):
        print(kopf.nothing)


async def test_children_and_events(
    cluster: Cluster, client: Client, clock: VirtualClock, events: Events, manager: Any
) -> None:
    await cluster.install(definition())
    handlers = Handlers("events")

    @kopf.on.create("examples", registry=handlers)
    def create(body: kopf.Body, **_: Any) -> None:
        kopf.info(body, reason="Fine", message="well done")
        kopf.warn(body, reason="Odd", message="look here")
        try:
            raise ValueError("oops")
        except ValueError:
            kopf.exception(body, reason="Bad", message="failed:")

    await manager.start(handlers)
    await client.create(example())
    await clock.advance(1)
    assert [(each.kind, each.reason, each.note) for each in await events.list(regarding="one")] == [
        ("Normal", "Fine", "well done"),
        ("Warning", "Odd", "look here"),
        ("Warning", "Bad", "failed: oops"),
    ]
    body = {**example(), "metadata": {"name": "one", "namespace": "ns", "uid": "u", "labels": {"a": "b"}}}
    child: dict[str, Any] = {"kind": "Pod", "spec": {"template": {}}}
    kopf.adopt([child], owner=body, nested="spec.template")
    assert child["metadata"]["generateName"] == "one-"
    assert child["metadata"]["namespace"] == "ns"
    assert child["spec"]["template"]["metadata"]["labels"] == {"a": "b"}
    kopf.label(child, {"a": "c", "d": "e"})
    assert child["metadata"]["labels"] == {"a": "b", "d": "e"}
    kopf.label(child, {"a": "c"}, forced=True)
    assert child["metadata"]["labels"]["a"] == "c"
    kopf.remove_owner_reference(child, body)
    assert child["metadata"]["ownerReferences"] == []
    with pytest.raises(LookupError, match="pass owner="):
        kopf.adopt(child)
    with pytest.raises(TypeError, match=r"use ctx\.apply"):
        kopf.adopt(ConfigMap(metadata=ObjectMeta(name="x")), body)
