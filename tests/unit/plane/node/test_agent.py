"""The node agent with a fake runtime: starts, hooks, probes, exits, rejections, static Pods."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from tests.unit.plane.node.fake import FakeContainer, NodeStage, container, on_node, pod

from ostinato.api.gvk import NamespacedName
from ostinato.api.meta import ObjectMeta
from ostinato.api.quantity import Quantity
from ostinato.client import MergePatch, StrategicMergePatch
from ostinato.kinds.core_v1 import (
    ConfigMap,
    ConfigMapVolumeSource,
    ContainerPort,
    ContainerResizePolicy,
    ContainerRestartRule,
    ContainerRestartRuleOnExitCodes,
    EmptyDirVolumeSource,
    EnvVar,
    ExecAction,
    HostPathVolumeSource,
    ImageVolumeSource,
    Lifecycle,
    LifecycleHandler,
    Node,
    Pod,
    PodStatus,
    Probe,
    ResourceRequirements,
    SleepAction,
    Volume,
    VolumeMount,
)
from ostinato.plane.node.agent import NodeAgent
from ostinato.plane.node.containers.resize import ResizeError
from ostinato.plane.node.runtimes import ExecError, Mount, StartError
from ostinato.plane.node.volumes import volume_manager


def probe(*command: str, **more: Any) -> Probe:
    return Probe(exec=ExecAction(command=list(command)), period_seconds=1, **more)


def ready(found: Pod) -> str:
    return next(each.status for each in found.status.conditions if each.type == "Ready")


def test_a_started_pod_has_events_and_a_status(tmp_path: Path) -> None:
    async def play(node: NodeStage) -> None:
        await node.client.create(pod())
        await node.wait(2)
        found = await node.get()
        assert (found.status.phase, found.status.pod_ip, found.status.host_ip) == ("Running", "10.0.0.9", "192.0.2.1")
        assert await node.events() == [
            ("Pulled", "there"),
            ("Created", "Container created"),
            ("Started", "Container started"),
        ]
        launch = node.runtime.of("c").launch
        assert launch.log == tmp_path / "logs" / f"default_p_{found.metadata.uid}" / "c" / "0.log"

    on_node(play, tmp_path)


def test_a_failed_start_is_retried(tmp_path: Path) -> None:
    async def play(node: NodeStage) -> None:
        node.runtime.refuse = StartError("CreateContainerError", "no command specified")
        await node.client.create(pod())
        await node.wait(5)
        status = await node.status()
        assert status.state is not None
        assert status.state.waiting is not None
        assert (status.state.waiting.reason, status.state.waiting.message) == (
            "CreateContainerError",
            "no command specified",
        )
        assert ("Failed", "Error: no command specified") in await node.events()
        node.runtime.refuse = None
        await node.wait(10)
        assert (await node.get()).status.phase == "Running"

    on_node(play, tmp_path)


def test_an_unexpected_error_of_the_runtime_is_logged_and_retried(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def play(node: NodeStage) -> None:
        node.runtime.refuse = ValueError("broken")
        await node.client.create(pod())
        await node.wait(5)
        assert "operation failed, retrying pod=default/p" in caplog.text
        assert len(caplog.records) == 1
        node.runtime.refuse = None
        await node.wait(20)
        assert (await node.get()).status.phase == "Running"

    on_node(play, tmp_path)


def test_a_command_that_cannot_be_executed_terminates_the_container(tmp_path: Path) -> None:
    async def play(node: NodeStage) -> None:
        node.runtime.on_start = lambda started: started.end(128, "StartError", "exec: not found")
        await node.client.create(pod(restart_policy="Never"))
        await node.wait(2)
        found = await node.get()
        assert found.status.phase == "Failed"
        state = found.status.container_statuses[0].state
        assert state is not None
        assert state.terminated is not None
        assert (state.terminated.reason, state.terminated.exit_code) == ("StartError", 128)
        assert ("Failed", "Error: exec: not found") in await node.events()

    on_node(play, tmp_path)


def test_readiness_follows_its_probe(tmp_path: Path) -> None:
    async def play(node: NodeStage) -> None:
        node.runtime.answers["up?",] = (1, b"not yet\n")
        await node.client.create(pod(containers=[container(readiness_probe=probe("up?", failure_threshold=3))]))
        await node.wait(3)
        assert ready(await node.get()) == "False"
        assert (await node.status()).started
        assert ("Unhealthy", "Readiness probe failed: not yet\n") in await node.events()
        node.runtime.answers["up?",] = (0, b"")
        await node.wait(2)
        assert ready(await node.get()) == "True"
        node.runtime.answers["up?",] = (1, b"")
        await node.wait(1)
        assert ready(await node.get()) == "True"  # once is not enough
        await node.wait(3)
        assert ready(await node.get()) == "False"

    on_node(play, tmp_path)


def test_a_probe_that_hangs_fails_after_its_time(tmp_path: Path) -> None:
    async def play(node: NodeStage) -> None:
        node.runtime.answers["hang", "on"] = 1000.0
        asked = probe("hang", "on", timeout_seconds=2)
        other = container("d", readiness_probe=probe("fine"))
        await node.client.create(pod(containers=[container(readiness_probe=asked), other]))
        await node.wait(5)
        text = 'Readiness probe failed: command timed out: "hang on" timed out after 2s'
        assert ("Unhealthy", text) in await node.events()
        assert (await node.status("d")).ready  # its neighbour is asked all the same
        assert not (await node.status("c")).ready

    on_node(play, tmp_path)


def test_a_probe_error_does_not_change_the_result(tmp_path: Path) -> None:
    async def play(node: NodeStage) -> None:
        node.runtime.answers["ask",] = ExecError("no such program")
        await node.client.create(pod(containers=[container(liveness_probe=probe("ask", failure_threshold=1))]))
        await node.wait(10)
        assert (await node.status()).restart_count == 0
        text = "Liveness probe errored and resulted in unknown state: no such program"
        assert ("Unhealthy", text) in await node.events()

    on_node(play, tmp_path)


def test_a_failed_liveness_probe_restarts_the_container(tmp_path: Path) -> None:
    async def play(node: NodeStage) -> None:
        node.runtime.answers["alive?",] = (1, b"ill")
        asked = probe("alive?", failure_threshold=2, termination_grace_period_seconds=7)
        await node.client.create(pod(containers=[container(liveness_probe=asked)]))
        await node.wait(2.5)
        node.runtime.answers["alive?",] = (0, b"")
        await node.wait(3)
        assert (await node.status()).restart_count == 1
        assert ("Killing", "Container c failed liveness probe, will be restarted") in await node.events()
        assert node.runtime.started[0].stopped_with == [7.0]

    on_node(play, tmp_path)


def test_a_failed_liveness_probe_ends_a_pod_that_never_restarts(tmp_path: Path) -> None:
    async def play(node: NodeStage) -> None:
        node.runtime.answers["alive?",] = (1, b"")
        asked = probe("alive?", failure_threshold=1)
        await node.client.create(pod(restart_policy="Never", containers=[container(liveness_probe=asked)]))
        await node.wait(5)
        assert (await node.get()).status.phase == "Failed"
        assert ("Killing", "Stopping container c") in await node.events()

    on_node(play, tmp_path)


def test_other_probes_wait_for_the_startup_probe_which_then_stops(tmp_path: Path) -> None:
    async def play(node: NodeStage) -> None:
        node.runtime.answers["started?",] = (1, b"")
        asked = container(startup_probe=probe("started?", failure_threshold=100), liveness_probe=probe("alive?"))
        await node.client.create(pod(containers=[asked]))
        await node.wait(5)
        assert ("c", ("alive?",)) not in node.runtime.commands
        assert not (await node.status()).started
        node.runtime.answers["started?",] = (0, b"")
        await node.wait(3)
        assert (await node.status()).started
        assert ("c", ("alive?",)) in node.runtime.commands
        before = node.runtime.commands.count(("c", ("started?",)))
        await node.wait(5)
        assert node.runtime.commands.count(("c", ("started?",))) == before

    on_node(play, tmp_path)


def test_a_container_is_creating_while_its_post_start_hook_runs(tmp_path: Path) -> None:
    async def play(node: NodeStage) -> None:
        node.runtime.answers["hook",] = 5.0
        first = container(lifecycle=Lifecycle(post_start=LifecycleHandler(exec=ExecAction(command=["hook"]))))
        await node.client.create(pod(containers=[first, container("d")]))
        await node.wait(2)
        found = await node.get()
        assert found.status.phase == "Pending"
        assert [each.launch.container.name for each in node.runtime.started] == ["c"]
        await node.wait(5)
        assert (await node.get()).status.phase == "Running"

    on_node(play, tmp_path)


def test_a_failed_post_start_hook_kills_the_container(tmp_path: Path) -> None:
    async def play(node: NodeStage) -> None:
        node.runtime.answers["hook",] = (3, b"oh no")
        first = container(lifecycle=Lifecycle(post_start=LifecycleHandler(exec=ExecAction(command=["hook"]))))
        await node.client.create(pod(restart_policy="Never", containers=[first]))
        await node.wait(2)
        assert (await node.get()).status.phase == "Failed"
        events = await node.events()
        assert ("FailedPostStartHook", "PostStartHook failed") in events
        assert ("Killing", "FailedPostStartHook") in events

    on_node(play, tmp_path)


@pytest.mark.parametrize(
    ("hook", "answer", "left", "fails"),
    [
        (LifecycleHandler(sleep=SleepAction(seconds=4)), (0, b""), 6.0, False),
        (LifecycleHandler(exec=ExecAction(command=["hook"])), (4, b""), 10.0, True),
        (LifecycleHandler(exec=ExecAction(command=["hook"])), 600.0, 2.0, True),
    ],
)
def test_the_pre_stop_hook_counts_towards_the_grace_period(
    tmp_path: Path, hook: LifecycleHandler, answer: tuple[int, bytes] | float, left: float, fails: bool
) -> None:
    async def play(node: NodeStage) -> None:
        node.runtime.answers["hook",] = answer
        last = container(lifecycle=Lifecycle(pre_stop=hook))
        await node.client.create(pod(containers=[last], termination_grace_period_seconds=10))
        await node.wait(2)
        await node.client.delete(Pod, "p")
        await node.wait(20)
        assert node.runtime.of("c").stopped_with == [pytest.approx(left, abs=0.1)]
        assert (("FailedPreStopHook", "PreStopHook failed") in await node.events()) == fails
        assert await node.client.get(Pod, "p", missing=None) is None

    on_node(play, tmp_path)


def test_termination_messages_are_reported(tmp_path: Path) -> None:
    async def play(node: NodeStage) -> None:
        def die(started: FakeContainer) -> None:
            assert started.launch.message is not None
            started.launch.message.write_text("x" * 5000)
            started.end(1)

        node.runtime.on_start = die
        await node.client.create(pod(restart_policy="Never"))
        await node.wait(2)
        state = (await node.status()).state
        assert state is not None
        assert state.terminated is not None
        assert state.terminated.message == "x" * 4096

    on_node(play, tmp_path)


def test_an_ephemeral_container_starts_in_a_running_pod(tmp_path: Path) -> None:
    async def play(node: NodeStage) -> None:
        await node.client.create(pod())
        await node.wait(2)
        look = {"spec": {"ephemeralContainers": [{"name": "look", "image": "i", "command": ["look"]}]}}
        await node.client.patch(Pod, "p", StrategicMergePatch(look), subresource="ephemeralcontainers")
        await node.wait(2)
        node.runtime.of("look").end(2)
        await node.wait(30)
        status = await node.status("look")
        assert status.state is not None
        assert status.state.terminated is not None
        assert status.state.terminated.exit_code == 2
        assert status.restart_count == 0
        assert (await node.get()).status.phase == "Running"

    on_node(play, tmp_path)


def test_a_changed_image_replaces_the_container_regardless_of_its_policy(tmp_path: Path) -> None:
    async def play(node: NodeStage) -> None:
        await node.client.create(pod(restart_policy="Never"))
        await node.wait(2)
        change = {"spec": {"containers": [{"name": "c", "image": "other"}]}}
        await node.client.patch(Pod, "p", StrategicMergePatch(change))
        await node.wait(3)
        status = await node.status()
        assert (status.image, status.restart_count, status.ready) == ("other", 1, True)
        assert ("Killing", "Container c definition changed, will be restarted") in await node.events()
        assert [each.launch.container.image for each in node.runtime.started] == ["i", "other"]

    on_node(play, tmp_path)


def test_a_replaced_container_stays_ready_until_its_successor_has_started(tmp_path: Path) -> None:
    async def play(node: NodeStage) -> None:
        await node.client.create(pod())
        await node.wait(2)
        node.runtime.pull_takes = 60.0
        change = {"spec": {"containers": [{"name": "c", "image": "other"}]}}
        await node.client.patch(Pod, "p", StrategicMergePatch(change))
        await node.wait(30)
        assert node.runtime.of("c").exit is not None
        status = await node.status()
        assert (status.restart_count, status.ready) == (0, True)
        conditions = {each.type: each.status for each in (await node.get()).status.conditions}
        assert (conditions["Ready"], conditions["ContainersReady"]) == ("True", "True")

    on_node(play, tmp_path)


def test_a_replaced_container_whose_successor_cannot_start_waits(tmp_path: Path) -> None:
    async def play(node: NodeStage) -> None:
        await node.client.create(pod())
        await node.wait(2)
        node.runtime.refuse = StartError("CreateContainerError", "no command specified")
        change = {"spec": {"containers": [{"name": "c", "image": "other"}]}}
        await node.client.patch(Pod, "p", StrategicMergePatch(change))
        await node.wait(5)
        status = await node.status()
        assert status.state is not None
        assert status.state.waiting is not None
        assert (status.state.waiting.reason, status.ready) == ("CreateContainerError", False)

    on_node(play, tmp_path)


def test_a_pod_is_resized_in_place(tmp_path: Path) -> None:
    async def play(node: NodeStage) -> None:
        given = ResourceRequirements(requests={"cpu": Quantity("10m")}, limits={"cpu": Quantity("1")})
        await node.client.create(pod(containers=[container(resources=given)]))
        await node.wait(2)
        change = {"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "20m"}}}]}}
        await node.client.patch(Pod, "p", StrategicMergePatch(change), subresource="resize")
        await node.wait(2)
        status = await node.status()
        assert status.allocated_resources == {"cpu": Quantity("20m")}
        assert status.restart_count == 0
        summary = (
            '{"containers":[{"name":"c","resources":{"limits":{"cpu":"1"},"requests":{"cpu":"20m"}}}],"generation":2}'
        )
        events = await node.events()
        assert ("ResizeStarted", f"Pod resize started: {summary}") in events
        assert ("ResizeCompleted", f"Pod resize completed: {summary}") in events
        assert [(each.resources, attempt) for each, attempt in node.runtime.resized] == [(status.resources, 0)]

    on_node(play, tmp_path)


def test_admission_uses_the_current_labels_of_the_node(tmp_path: Path) -> None:
    async def play(node: NodeStage) -> None:
        await node.client.patch(Node, "node-1", MergePatch({"metadata": {"labels": {"colour": "blue"}}}))
        await node.client.create(pod("after", node_selector={"colour": "blue"}))
        await node.wait(2)
        assert (await node.get("after")).status.phase == "Running"
        await node.client.patch(Node, "node-1", MergePatch({"metadata": {"labels": {"colour": "green"}}}))
        await node.client.create(pod("late", node_selector={"colour": "blue"}))
        await node.wait(2)
        status = (await node.get("late")).status
        assert (status.phase, status.reason) == ("Failed", "NodeAffinity")

    on_node(play, tmp_path)


def test_a_generation_is_not_observed_without_its_resources_or_a_condition(tmp_path: Path) -> None:
    """A client that waits for the generation and for the end of the resize must not read the old resources."""

    async def play(node: NodeStage) -> None:
        given = ResourceRequirements(requests={"cpu": Quantity("10m")}, limits={"cpu": Quantity("1")})
        await node.client.create(pod(containers=[container(resources=given)]))
        await node.wait(2)
        node.runtime.resize_takes = 5.0
        change = {"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "20m"}}}]}}
        await node.client.patch(Pod, "p", StrategicMergePatch(change), subresource="resize")
        for _ in range(12):
            await node.wait(0.5)
            found = await node.get()
            resources = found.status.container_statuses[0].resources
            resizing = any(each.type == "PodResizeInProgress" for each in found.status.conditions)
            assert resources is not None
            if found.status.observed_generation == 2:
                assert resizing == (resources.requests["cpu"] == Quantity("10m"))
        assert not resizing

    on_node(play, tmp_path)


def test_a_failed_resize_is_reported_and_tried_again(tmp_path: Path) -> None:
    async def play(node: NodeStage) -> None:
        given = ResourceRequirements(requests={"cpu": Quantity("10m")}, limits={"cpu": Quantity("1")})
        await node.client.create(pod(containers=[container(resources=given)]))
        await node.wait(2)
        node.runtime.refuse_resize = ResizeError("busy")
        change = {"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "20m"}}}]}}
        await node.client.patch(Pod, "p", StrategicMergePatch(change), subresource="resize")
        await node.wait(2)
        status = await node.status()
        assert status.resources == given
        assert status.allocated_resources == {"cpu": Quantity("20m")}
        [message] = [text for reason, text in await node.events() if reason == "ResizeError"]
        assert message.startswith('Pod resize error: {"containers":')
        assert '"error":"Error resizing container c: busy"' in message
        condition = {each.type: each for each in (await node.get()).status.conditions}["PodResizeInProgress"]
        assert (condition.status, condition.reason) == ("True", "Error")
        assert condition.message == "Error resizing container c: busy"
        node.runtime.refuse_resize = None
        await node.wait(11)
        assert "PodResizeInProgress" not in {each.type for each in (await node.get()).status.conditions}
        assert len(node.runtime.resized) == 1
        resources = (await node.status()).resources
        assert resources is not None
        assert resources.requests == {"cpu": Quantity("20m")}

    on_node(play, tmp_path)


def test_a_resize_restarts_a_container_whose_policy_says_so(tmp_path: Path) -> None:
    async def play(node: NodeStage) -> None:
        given = ResourceRequirements(
            requests={"cpu": Quantity("10m"), "memory": Quantity("10Mi")}, limits={"memory": Quantity("20Mi")}
        )
        policy = [ContainerResizePolicy(resource_name="memory", restart_policy="RestartContainer")]
        await node.client.create(pod(containers=[container(resources=given, resize_policy=policy)]))
        await node.wait(2)
        for change, restarts in (({"cpu": "20m"}, 0), ({"memory": "12Mi"}, 1)):
            patch = {"spec": {"containers": [{"name": "c", "resources": {"requests": change}}]}}
            await node.client.patch(Pod, "p", StrategicMergePatch(patch), subresource="resize")
            await node.wait(3)
            assert (await node.status()).restart_count == restarts
        assert ("Killing", "Container c resize requires restart") in await node.events()
        assert len(node.runtime.resized) == 1
        last = node.runtime.started[-1].launch.container.resources
        assert last is not None
        assert last.requests == {"cpu": Quantity("20m"), "memory": Quantity("12Mi")}

    on_node(play, tmp_path)


def test_a_volume_of_an_image_is_mounted_by_the_runtime(tmp_path: Path) -> None:
    async def play(node: NodeStage) -> None:
        volume = Volume(name="models", image=ImageVolumeSource(reference="models:1", pull_policy="IfNotPresent"))
        mount = VolumeMount(name="models", mount_path="/models", sub_path="small")
        await node.client.create(pod(volumes=[volume], containers=[container(volume_mounts=[mount])]))
        await node.wait(2)
        expected = Mount(Path(), "/models", read_only=True, sub_path="small", image="models:1")
        assert node.runtime.started[0].launch.mounts == [expected]

    on_node(play, tmp_path)


def test_a_restart_rule_can_restart_all_containers(tmp_path: Path) -> None:
    async def play(node: NodeStage) -> None:
        codes = ContainerRestartRuleOnExitCodes(operator="In", values=[9])
        rule = ContainerRestartRule(action="RestartAllContainers", exit_codes=codes)
        falls = container("d", restart_policy="Never", restart_policy_rules=[rule])
        made = pod(restart_policy="Never", init_containers=[container("i")], containers=[container(), falls])
        await node.client.create(made)
        await node.wait(1)
        node.runtime.of("i").end(0)
        await node.wait(1)
        node.runtime.of("d").end(9)
        await node.wait(1)
        assert [each.launch.container.name for each in node.runtime.started] == ["i", "c", "d", "i"]
        node.runtime.of("i").end(0)
        await node.wait(2)
        for name in ("i", "c", "d"):
            status = await node.status(name)
            assert status.restart_count == 1
            assert status.last_state is not None
            assert status.last_state.terminated is not None
            assert status.last_state.terminated.reason == "RestartingAllContainers"
        found = await node.get()
        assert found.status.phase == "Running"
        assert ("AllContainersRestarting", "False") in [(each.type, each.status) for each in found.status.conditions]
        assert ("Killing", "killing") in await node.events()

    on_node(play, tmp_path)


def test_a_missing_volume_is_retried(tmp_path: Path) -> None:
    async def play(node: NodeStage) -> None:
        volume = Volume(name="v", config_map=ConfigMapVolumeSource(name="settings"))
        mounted = container(volume_mounts=[VolumeMount(name="v", mount_path="/v")])
        await node.client.create(pod(volumes=[volume], containers=[mounted]))
        await node.client.create(pod("neighbour"))
        await node.wait(10)
        text = 'MountVolume.SetUp failed for volume "v" : configmap "settings" not found'
        assert ("FailedMount", text) in await node.events()
        assert (await node.get()).status.phase == "Pending"
        assert (await node.get("neighbour")).status.phase == "Running"
        await node.client.create(ConfigMap(metadata=ObjectMeta(name="settings"), data={"colour": "red"}))
        await node.wait(25)
        assert (await node.get()).status.phase == "Running"
        (mount,) = node.runtime.of("c").launch.mounts
        assert (mount.target, mount.read_only) == ("/v", True)
        assert (mount.source / "colour").read_text() == "red"
        await node.client.patch(ConfigMap, "settings", MergePatch({"data": {"colour": "blue"}}))
        await node.wait(20)
        assert (mount.source / "colour").read_text() == "blue"

    on_node(play, tmp_path)


@pytest.mark.parametrize("part", ["../up", "a/../../up", "/etc"])
def test_a_sub_path_out_of_its_volume_is_rejected(tmp_path: Path, part: str) -> None:
    async def play(node: NodeStage) -> None:
        volume = Volume(name="v", empty_dir=EmptyDirVolumeSource())
        # The server refuses such a path where it can see it; here it comes out of a variable.
        mounts = [VolumeMount(name="v", mount_path="/v", sub_path_expr="$(WHERE)")]
        asked = container(volume_mounts=mounts, env=[EnvVar(name="WHERE", value=part)])
        made = await node.client.create(pod(volumes=[volume], containers=[asked]))
        await node.wait(3)
        status = await node.status()
        assert status.state is not None
        assert status.state.waiting is not None
        assert status.state.waiting.reason == "CreateContainerConfigError"
        assert part in (status.state.waiting.message or "")
        assert not (tmp_path / "node" / "pods" / made.metadata.uid / "up").exists()

    on_node(play, tmp_path)


def test_a_pod_that_exceeds_its_empty_dir_limit_is_evicted(tmp_path: Path) -> None:
    async def play(node: NodeStage) -> None:
        volume = Volume(name="v", empty_dir=EmptyDirVolumeSource(size_limit=Quantity("1Mi")))
        mounted = container(volume_mounts=[VolumeMount(name="v", mount_path="/v")])
        await node.client.create(pod(volumes=[volume], containers=[mounted]))
        await node.client.create(pod("neighbour"))
        await node.wait(20)
        assert (await node.get()).status.phase == "Running"
        (mount,) = node.runtime.started[0].launch.mounts
        (mount.source / "much").write_bytes(b"x" * 2_000_000)
        await node.wait(20)
        found = await node.get()
        assert (found.status.phase, found.status.reason) == ("Failed", "Evicted")
        assert found.status.message == 'Usage of EmptyDir volume "v" exceeds the limit "1Mi". '
        assert not mount.source.exists()
        assert (await node.get("neighbour")).status.phase == "Running"

    on_node(play, tmp_path)


def test_a_pod_with_a_large_volume_is_evicted_under_disk_pressure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(volume_manager, "_LARGE", 1_000_000)

    async def play(node: NodeStage) -> None:
        volume = Volume(name="v", empty_dir=EmptyDirVolumeSource())
        mounted = container(volume_mounts=[VolumeMount(name="v", mount_path="/v")])
        for name in ("p", "modest"):
            await node.client.create(pod(name, volumes=[volume], containers=[mounted]))
            await node.wait(1)
        (mount,) = node.runtime.started[0].launch.mounts
        (mount.source / "much").write_bytes(b"x" * 2_000_000)
        await node.wait(40)
        assert (await node.get()).status.phase == "Running"
        monkeypatch.setattr(volume_manager, "_MINIMUM_FREE", 1.0)
        await node.wait(20)
        found = await node.get()
        assert (found.status.reason, found.status.message) == (
            "Evicted",
            "The node was low on resource: ephemeral-storage. ",
        )
        assert (await node.get("modest")).status.phase == "Running"

    on_node(play, tmp_path)


def test_a_host_path_of_another_type_is_not_mounted(tmp_path: Path) -> None:
    async def play(node: NodeStage) -> None:
        source = HostPathVolumeSource(path=str(tmp_path / "absent"), type="Directory")
        await node.client.create(pod(volumes=[Volume(name="v", host_path=source)]))
        await node.wait(3)
        why = f"hostPath type check failed: {tmp_path}/absent is not a directory"
        assert ("FailedMount", f'MountVolume.SetUp failed for volume "v" : {why}') in await node.events()

    on_node(play, tmp_path)


@pytest.mark.parametrize(
    ("spec", "reason", "message"),
    [
        (
            {"node_selector": {"disk": "slow"}},
            "NodeAffinity",
            "Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector",
        ),
        (
            {"containers": [container(resources=ResourceRequirements(requests={"cpu": Quantity("5")}))]},
            "OutOfcpu",
            "Node didn't have enough resource: cpu, requested: 5000, used: 0, capacity: 4000",
        ),
        (
            {"containers": [container(ports=[ContainerPort(container_port=80, host_port=8080)])]},
            "NodePorts",
            "Predicate NodePorts failed: node(s) didn't have free ports for the requested pod ports",
        ),
    ],
)
def test_a_pod_that_the_node_does_not_admit_is_rejected(
    tmp_path: Path, spec: dict[str, Any], reason: str, message: str
) -> None:
    async def play(node: NodeStage) -> None:
        taken = container(ports=[ContainerPort(container_port=80, host_port=8080)])
        await node.client.create(pod("other", containers=[taken]))
        await node.wait(2)
        await node.client.create(pod(**spec))
        await node.wait(2)
        status = (await node.get()).status
        assert (status.phase, status.reason, status.message) == ("Failed", reason, f"Pod was rejected: {message}")
        assert not status.container_statuses
        assert await node.events() == [(reason, message)]
        await node.client.delete(Pod, "p")
        await node.wait(2)
        assert await node.client.get(Pod, "p", missing=None) is None

    on_node(play, tmp_path)


def test_a_pod_deleted_during_init_has_failed(tmp_path: Path) -> None:
    async def play(node: NodeStage) -> None:
        seen: list[Pod] = []
        made = pod(init_containers=[container("i"), container("later")])
        made.metadata.finalizers = ["example.com/hold"]
        await node.client.create(made)
        await node.wait(2)
        await node.client.delete(Pod, "p")
        await node.wait(3)
        seen.append(await node.get())
        assert seen[0].status.phase == "Failed"
        reasons = {each.type: each.reason for each in seen[0].status.conditions}
        assert (reasons["Ready"], reasons["Initialized"]) == ("ContainersNotReady", "ContainersNotInitialized")
        (main,) = seen[0].status.container_statuses
        assert main.state is not None
        assert main.state.waiting is not None

    on_node(play, tmp_path)


def test_a_pod_deleted_while_the_agent_writes_its_status_terminates(tmp_path: Path) -> None:
    """The agent's own write may be newer than a deletion that it has not seen."""

    async def play(node: NodeStage) -> None:
        names = [f"p{n}" for n in range(20)]
        for name in names:
            made = pod()
            made.metadata.name = name
            await node.client.create(made)
        await node.wait(2)
        gate = {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}
        for name in names:  # as a preemption: the condition makes the agent write the status
            patch = StrategicMergePatch({"status": {"conditions": [gate]}})
            await node.client.patch(Pod, name, patch, subresource="status")
            await node.client.delete(Pod, name)
        await node.wait(40)
        assert await node.client.list(Pod) == []

    on_node(play, tmp_path)


def test_logs_and_volumes_are_removed_with_their_pod(tmp_path: Path) -> None:
    async def play(node: NodeStage) -> None:
        volume = Volume(name="v", empty_dir=EmptyDirVolumeSource())
        made = await node.client.create(pod(volumes=[volume]))
        await node.wait(2)
        launch = node.runtime.of("c").launch
        assert launch.log is not None
        launch.log.parent.mkdir(parents=True)
        launch.log.write_text("line")
        home = tmp_path / "node" / "pods" / made.metadata.uid
        assert (home / "volumes" / "v").is_dir()
        await node.client.delete(Pod, "p")
        await node.wait(5)
        assert not home.exists()
        assert not launch.log.exists()

    on_node(play, tmp_path)


MANIFEST = """
apiVersion: v1
kind: Pod
metadata: {name: s}
spec: {containers: [{name: c, image: i, command: [%s]}]}
"""


def test_a_static_pod_has_a_mirror_and_is_removed_with_its_manifest(tmp_path: Path) -> None:
    manifest = tmp_path / "node" / "manifests" / "s.yaml"

    async def play(node: NodeStage) -> None:
        manifest.parent.mkdir(parents=True)
        manifest.write_text(MANIFEST % "run")
        (manifest.parent / "wrong.yaml").write_text("kind: Secret")
        await node.wait(25)
        found = await node.get("s-node-1")
        assert (found.status.phase, ready(found)) == ("Running", "True")
        assert found.metadata.annotations["kubernetes.io/config.source"] == "file"
        assert [each.kind for each in found.metadata.owner_references] == ["Node"]
        await node.client.delete(Pod, "s-node-1", grace_period=0)
        await node.wait(2)
        again = await node.get("s-node-1")
        assert again.metadata.uid != found.metadata.uid
        assert again.status.container_statuses[0].container_id == found.status.container_statuses[0].container_id
        assert len(node.runtime.started) == 1
        manifest.write_text(MANIFEST % "other")
        await node.wait(25)
        assert [list(each.launch.command) for each in node.runtime.started] == [["run"], ["other"]]
        assert (await node.get("s-node-1")).status.phase == "Running"
        manifest.unlink()
        await node.wait(25)
        assert await node.client.get(Pod, "s-node-1", missing=None) is None
        assert node.runtime.started[-1].exit is not None

    on_node(play, tmp_path)


def test_latest_returns_the_present_status_whatever_the_cache_has_seen() -> None:
    """The API server may have answered a client with a status before the agent knows that it was written."""

    def seen(version: str, uid: str = "u") -> Pod:
        metadata = ObjectMeta(name="p", namespace="default", uid=uid, resource_version=version)
        return msgspec.structs.replace(pod(), metadata=metadata)

    agent = NodeAgent({}, lambda _: "", lambda _: pytest.fail("no request is sent"))
    running = PodStatus(phase="Running")
    worker: Any = SimpleNamespace(pod=seen("10"), is_compacted=False, status=lambda: running)
    agent._workers[NamespacedName("default", "p")] = worker
    for version, known in (("9", "10"), ("10", "10"), ("11", "11")):
        found = agent.latest(seen(version))
        assert (found.metadata.resource_version, found.status) == (known, running)
    cached = seen("9", uid="another")
    assert agent.latest(cached) is cached
    worker.is_compacted = True
    cached = seen("9")
    assert agent.latest(cached) is cached, "a compacted worker holds no spec"
