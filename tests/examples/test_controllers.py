"""The examples of controllers: the sample controller with its original test cases, and the Widget of the tutorial."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from tests.stage.controllers import ControllerStage, staged_with

from ostinato.api.meta import ObjectMeta
from ostinato.api.owners import is_controlled_by
from ostinato.cli.program.loading import find, load
from ostinato.crd import crd_of
from ostinato.kinds.apps_v1 import Deployment
from ostinato.manager.hosting import Host

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def example(name: str) -> Any:
    return load(find(str(EXAMPLES / f"{name}.py")), Host())  # as `ostinato run` would


sample = example("sample_controller")
widget = example("widget")


@asynccontextmanager
async def controlling(stage: ControllerStage, runnable: Any) -> AsyncIterator[asyncio.Task[None]]:
    async with stage.running(runnable) as task:
        await stage.settle()
        yield task


def foo(name: str = "test", replicas: int | None = 1, deployment_name: str = "") -> Any:
    spec = sample.FooSpec(deployment_name=deployment_name or f"{name}-deployment", replicas=replicas)
    return sample.Foo(metadata=ObjectMeta(name=name, namespace="default"), spec=spec)


@staged_with(crd_of(sample.Foo))
async def test_creates_deployment(stage: ControllerStage) -> None:
    owner = await stage.user.create(foo())
    async with controlling(stage, sample.foos):
        made = await stage.user.get(Deployment, "test-deployment")
        assert is_controlled_by(made, owner)
        assert made.spec.replicas == 1
        assert made.spec.template.metadata is not None
        assert made.spec.template.metadata.labels == {"app": "nginx", "controller": "test"}
        found = await stage.user.get(sample.Foo, "test")
        assert found.status == sample.FooStatus(available_replicas=0)
        assert ("Normal", "Synced", "Foo synced successfully") in stage.recorder.events


@staged_with(crd_of(sample.Foo))
async def test_do_nothing(stage: ControllerStage) -> None:
    await stage.user.create(foo())
    async with controlling(stage, sample.foos):
        before = len(stage.transport.writes())
        changed = await stage.user.get(sample.Foo, "test")
        changed.metadata.labels = {"nothing": "important"}
        await stage.user.update(changed)
        await stage.settle()
        assert len(stage.transport.writes()) == before


@staged_with(crd_of(sample.Foo))
async def test_update_deployment(stage: ControllerStage) -> None:
    await stage.user.create(foo())
    async with controlling(stage, sample.foos):
        changed = await stage.user.get(sample.Foo, "test")
        changed.spec.replicas = 2
        await stage.user.update(changed)
        await stage.settle()
        assert (await stage.user.get(Deployment, "test-deployment")).spec.replicas == 2


@staged_with(crd_of(sample.Foo))
async def test_not_controlled_by_us(stage: ControllerStage) -> None:
    theirs = sample.deployment_for(foo())
    theirs.metadata.namespace = "default"
    await stage.user.create(theirs)
    await stage.user.create(foo(replicas=3))
    async with controlling(stage, sample.foos):
        left_alone = await stage.user.get(Deployment, "test-deployment")
        assert left_alone.spec.replicas == 1
        assert left_alone.metadata.owner_references == []
        wanted = 'Resource "test-deployment" already exists and is not managed by Foo'
        assert ("Warning", "ErrResourceExists", wanted) in stage.recorder.events
        assert "exists and is not controlled by Foo default/test" in stage.log.texts()[0]


@staged_with(crd_of(sample.Foo))
async def test_a_foo_without_a_name_for_its_deployment_is_not_tried_again(stage: ControllerStage) -> None:
    odd = foo()
    odd.spec.deployment_name = ""
    await stage.user.create(odd)
    async with controlling(stage, sample.foos):
        await stage.settle(60)
        (text,) = stage.log.texts()
        assert "spec.deploymentName must be specified" in text


@staged_with(crd_of(sample.Foo))
async def test_the_status_follows_the_deployment(stage: ControllerStage) -> None:
    await stage.user.create(foo())
    async with controlling(stage, sample.foos):
        made = await stage.user.get(Deployment, "test-deployment")
        assert made.status is not None
        made.status.replicas = made.status.available_replicas = made.status.ready_replicas = 1
        await stage.user.update(made, subresource="status")
        await stage.settle()
        assert (await stage.user.get(sample.Foo, "test")).status.available_replicas == 1


def test_the_sample_controller_is_short() -> None:
    assert len((EXAMPLES / "sample_controller.py").read_text().splitlines()) <= 60


@staged_with(crd_of(widget.Widget))
async def test_the_widget_of_the_tutorial_makes_its_deployment(stage: ControllerStage) -> None:
    made = widget.Widget(
        metadata=ObjectMeta(name="a", namespace="default"), spec=widget.WidgetSpec(replicas=3, image="busybox")
    )
    await stage.user.create(made)
    async with controlling(stage, widget.widgets):
        deployment = await stage.user.get(Deployment, "a")
        assert deployment.spec.replicas == 3
        assert deployment.spec.template.spec is not None
        assert deployment.spec.template.spec.containers[0].image == "busybox"
        assert (await stage.user.get(widget.Widget, "a")).status.available_replicas == 0
        assert stage.log.texts() == []
