"""The examples of controllers: the sample controller with its original test cases, and the Widget of the tutorial."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ostinato import Client, ObjectMeta
from ostinato.api.owners import is_controlled_by
from ostinato.client import MergePatch
from ostinato.kinds.apps_v1 import Deployment
from ostinato.testing import Cluster, ClusterManager, Events, Eventually, VirtualClock, load

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"

sample = load(EXAMPLES / "sample_controller.py")
widget = load(EXAMPLES / "widget.py")


def foo(name: str = "test", replicas: int | None = 1, deployment_name: str = "") -> Any:
    spec = sample.FooSpec(deployment_name=deployment_name or f"{name}-deployment", replicas=replicas)
    return sample.Foo(metadata=ObjectMeta(name=name), spec=spec)


async def test_creates_deployment(
    manager: ClusterManager, client: Client, eventually: Eventually, events: Events
) -> None:
    await manager.start(sample.foos)
    owner = await client.create(foo())
    made = await eventually(Deployment, "test-deployment")
    assert is_controlled_by(made, owner)
    assert made.spec.replicas == 1
    assert made.spec.template.metadata is not None
    assert made.spec.template.metadata.labels == {"app": "nginx", "controller": "test"}
    found = await eventually(sample.Foo, "test", lambda each: each.status)
    assert found.status == sample.FooStatus(available_replicas=0)
    await events.expect("Synced", regarding=owner, kind="Normal", note="Foo synced successfully")


async def test_do_nothing(clock: VirtualClock, manager: ClusterManager, client: Client) -> None:
    await manager.start(sample.foos)
    await client.create(foo())
    await clock.advance(60)
    deployment = await client.get(Deployment, "test-deployment")
    changed = await client.patch(sample.Foo, "test", MergePatch({"metadata": {"labels": {"nothing": "important"}}}))
    await clock.advance(60)
    assert await client.get(sample.Foo, "test") == changed
    assert await client.get(Deployment, "test-deployment") == deployment


async def test_update_deployment(manager: ClusterManager, client: Client, eventually: Eventually) -> None:
    await manager.start(sample.foos)
    await client.create(foo())
    await eventually(Deployment, "test-deployment")
    await client.patch(sample.Foo, "test", MergePatch({"spec": {"replicas": 2}}))
    await eventually(Deployment, "test-deployment", lambda each: each.spec.replicas == 2)


async def test_not_controlled_by_us(manager: ClusterManager, client: Client, events: Events) -> None:
    await client.create(sample.deployment_for(foo()))
    await manager.start(sample.foos)
    await client.create(foo(replicas=3))
    wanted = 'Resource "test-deployment" already exists and is not managed by Foo'
    await events.expect("ErrResourceExists", kind="Warning", note=wanted)
    left_alone = await client.get(Deployment, "test-deployment")
    assert left_alone.spec.replicas == 1
    assert left_alone.metadata.owner_references == []
    assert "exists and is not controlled by Foo default/test" in str(manager.errors[0])


async def test_a_foo_without_a_name_for_its_deployment_is_not_tried_again(
    clock: VirtualClock, manager: ClusterManager, client: Client
) -> None:
    odd = foo()
    odd.spec.deployment_name = ""
    await manager.start(sample.foos)
    await client.create(odd)
    await clock.advance(60)
    (error,) = manager.errors
    assert "spec.deploymentName must be specified" in str(error)


async def test_the_status_follows_the_deployment(plane: Cluster, manager: ClusterManager, clock: VirtualClock) -> None:
    await manager.start(sample.foos)
    await plane.client.create(foo())
    await plane.eventually(sample.Foo, "test", lambda each: each.status.available_replicas == 1)


def test_the_sample_controller_is_short() -> None:
    assert len((EXAMPLES / "sample_controller.py").read_text().splitlines()) <= 60


async def test_the_widget_of_the_tutorial_makes_its_deployment(
    manager: ClusterManager, client: Client, eventually: Eventually
) -> None:
    await manager.start(widget.widgets)
    spec = widget.WidgetSpec(replicas=3, image="busybox")
    await client.create(widget.Widget(metadata=ObjectMeta(name="a"), spec=spec))
    deployment = await eventually(Deployment, "a", lambda each: each.spec.replicas == 3)
    assert deployment.spec.template.spec is not None
    assert deployment.spec.template.spec.containers[0].image == "busybox"
    await eventually(widget.Widget, "a", lambda each: each.status.available_replicas == 0)
