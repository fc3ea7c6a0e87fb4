"""The node agent with a runtime whose sandbox, image pull or recovery fails."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path

import pytest
from tests.unit.plane.node.fake import FakeContainer, NodeStage, on_node, pod

from ostinato.api.meta import ObjectMeta
from ostinato.kinds.core_v1 import Container, ContainerStateWaiting, Pod
from ostinato.kinds.node_v1 import RuntimeClass
from ostinato.plane.node.runtimes import EventRecorder, PullError, SandboxError


async def waiting(node: NodeStage) -> ContainerStateWaiting:
    state = (await node.status()).state
    assert state is not None
    assert state.waiting is not None
    return state.waiting


def test_a_failed_sandbox_is_retried(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def play(node: NodeStage) -> None:
        given = node.runtime.addresses

        async def refuse(pod: Pod, handler: str = "") -> list[str]:
            raise SandboxError("Failed to create pod sandbox: no network")

        monkeypatch.setattr(node.runtime, "addresses", refuse)
        await node.client.create(pod())
        await node.wait(5)
        assert (await waiting(node)).reason == "ContainerCreating"
        found = {each.type: each.status for each in (await node.get()).status.conditions}
        assert found["PodReadyToStartContainers"] == "False"
        assert ("FailedCreatePodSandBox", "Failed to create pod sandbox: no network") in await node.events()
        monkeypatch.setattr(node.runtime, "addresses", given)
        await node.wait(20)
        assert (await node.get()).status.phase == "Running"

    on_node(play, tmp_path)


def test_a_sandbox_has_the_handler_of_the_runtime_class(tmp_path: Path) -> None:
    async def play(node: NodeStage) -> None:
        await node.client.create(RuntimeClass(metadata=ObjectMeta(name="strict"), handler="gvisor"))
        await node.client.create(pod(runtime_class_name="strict"))
        await node.wait(2)
        assert node.runtime.handlers == ["gvisor"]
        assert (await node.get()).status.phase == "Running"

    on_node(play, tmp_path)


def test_a_pod_waits_for_its_deleted_runtime_class(tmp_path: Path) -> None:
    async def play(node: NodeStage) -> None:
        await node.client.create(RuntimeClass(metadata=ObjectMeta(name="strict"), handler="gvisor"))
        await node.client.create(pod(runtime_class_name="strict"))
        await node.client.delete(RuntimeClass, "strict")  # before the agent has seen the Pod
        await node.wait(2)
        assert node.runtime.handlers == []
        events = dict(await node.events())
        assert 'runtimeclasses.node.k8s.io "strict" not found' in events["FailedCreatePodSandBox"]

    on_node(play, tmp_path)


def test_a_failed_pull_is_retried_after_the_runtimes_delay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def play(node: NodeStage) -> None:
        pulls: list[float] = []

        async def pull(pod: Pod, container: Container, record_event: EventRecorder) -> None:
            pulls.append(node.clock.monotonic())
            if len(pulls) == 1:
                raise PullError("ErrImagePull", "no registry", 2.0)
            if len(pulls) == 2:
                raise PullError("ImagePullBackOff", "Back-off", 40.0)

        monkeypatch.setattr(node.runtime, "pull", pull)
        await node.client.create(pod())
        await node.wait(1)
        assert ((await waiting(node)).reason, (await waiting(node)).message) == ("ErrImagePull", "no registry")
        await node.wait(10)
        assert (await waiting(node)).reason == "ImagePullBackOff"
        events = await node.events()
        assert ("Failed", "Error: ErrImagePull") in events
        assert ("Failed", "Error: ImagePullBackOff") in events
        await node.wait(40)
        assert (await node.get()).status.phase == "Running"
        assert [round(later - earlier) for earlier, later in pairwise(pulls)] == [2, 40]

    on_node(play, tmp_path)


def test_containers_are_recovered_before_any_is_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def play(node: NodeStage) -> None:
        given = node.runtime.recover

        async def refuse(pod: Pod) -> Mapping[str, FakeContainer]:
            raise SandboxError("nobody answers")

        monkeypatch.setattr(node.runtime, "recover", refuse)
        await node.client.create(pod())
        await node.wait(10)
        assert node.runtime.started == []
        monkeypatch.setattr(node.runtime, "recover", given)
        await node.wait(30)
        assert len(node.runtime.started) == 1

    on_node(play, tmp_path)
