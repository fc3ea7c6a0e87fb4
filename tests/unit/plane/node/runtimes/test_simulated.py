"""Simulated nodes: Pods that are bound to them go through their stages, and their status says so."""

from __future__ import annotations

from typing import Any

import pytest
from tests.stage.plane import Stage, on_stage

from ostinato.api.meta import ObjectMeta
from ostinato.client import MergePatch, StrategicMergePatch
from ostinato.client.transport.protocol import Request as Asked
from ostinato.client.transport.protocol import Response, Transport
from ostinato.controllers import Context, Request, Result
from ostinato.kinds.coordination_v1 import Lease
from ostinato.kinds.core_v1 import Container, Node, Pod, PodReadinessGate, PodSpec
from ostinato.plane.node import fleet
from ostinato.plane.node.agent import NodeAgent
from ostinato.plane.node.runtimes.script import Script, ScriptError, parse
from ostinato.world import Clock


def pod(name: str = "p", behaviour: str = "", **spec: object) -> Pod:
    annotations = {"script.ostinato.dev/behaviour": behaviour} if behaviour else {}
    given = {"node_name": "node-1", "containers": [Container(name="c", image="i")], **spec}
    return Pod(metadata=ObjectMeta(name=name, annotations=annotations), spec=PodSpec(**given))  # type: ignore[arg-type]


def conditions(found: Pod) -> dict[str, tuple[str, str]]:
    return {each.type: (each.status, each.reason or "") for each in found.status.conditions}


async def begin(stage: Stage, nodes: int = 1) -> None:
    stage.run(lambda manager: fleet.add_to(manager, nodes, "simulated"), field_manager="kubelet")
    await stage.settle()


async def get(stage: Stage, name: str = "p") -> Pod:
    return await stage.client.get(Pod, name)


def test_nodes_join_with_a_lease_and_get_ready() -> None:
    async def play(stage: Stage) -> None:
        await begin(stage, 3)
        nodes = await stage.client.list(Node)
        assert [node.metadata.name for node in nodes] == ["node-1", "node-2", "node-3"]
        assert all(("Ready", "True") in [(each.type, each.status) for each in node.status.conditions] for node in nodes)
        lease = await stage.client.get(Lease, "node-2", namespace="kube-node-lease")
        assert lease.spec.holder_identity == "node-2"
        before = lease.spec.renew_time
        await stage.world.clock.sleep(11)
        lease = await stage.client.get(Lease, "node-2", namespace="kube-node-lease")
        assert before is not None
        assert lease.spec.renew_time is not None
        assert lease.spec.renew_time > before

    on_stage(play)


def test_a_deleted_node_comes_back() -> None:
    async def play(stage: Stage) -> None:
        await begin(stage)
        await stage.client.delete(Lease, "node-1", namespace="kube-node-lease")
        await stage.client.delete(Node, "node-1")
        await stage.world.clock.sleep(25)
        assert (await stage.client.get(Node, "node-1")).status.conditions

    on_stage(play)


def test_a_node_marked_unknown_reports_ready_again() -> None:
    async def play(stage: Stage) -> None:
        await begin(stage)
        await stage.client.create(pod())
        await stage.world.clock.sleep(5)
        unknown = {"conditions": [{"type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown"}]}
        not_ready = {"conditions": [{"type": "Ready", "status": "False"}]}
        await stage.client.patch(Node, "node-1", StrategicMergePatch({"status": unknown}), subresource="status")
        await stage.client.patch(Pod, "p", StrategicMergePatch({"status": not_ready}), subresource="status")
        await stage.world.clock.sleep(1)
        assert conditions(await get(stage))["Ready"] == ("True", "")
        await stage.world.clock.sleep(10)
        node = await stage.client.get(Node, "node-1")
        assert [(each.status, each.reason) for each in node.status.conditions if each.type == "Ready"] == [
            ("True", "KubeletReady")
        ]

    on_stage(play)


def test_the_agents_own_writes_do_not_trigger_a_sync(monkeypatch: pytest.MonkeyPatch) -> None:
    runs: list[str] = []
    reconcile = NodeAgent.reconcile

    async def counted(agent: NodeAgent, request: Request, ctx: Context) -> Result | None:
        runs.append(request.name)
        return await reconcile(agent, request, ctx)

    monkeypatch.setattr(NodeAgent, "reconcile", counted)

    async def play(stage: Stage) -> None:
        await begin(stage)
        await stage.client.create(pod())
        await stage.world.clock.sleep(5)
        assert conditions(await get(stage))["Ready"] == ("True", "")
        assert len(runs) == 1, "when it came: its container ran immediately"
        await stage.client.delete(Pod, "p")
        await stage.world.clock.sleep(5)
        assert await stage.client.get(Pod, "p", missing=None) is None
        assert len(runs) == 2, "when its deletion was requested"

    on_stage(play)


class Slow:
    """A transport that takes a second more for each request."""

    def __init__(self, inner: Transport, clock: Clock) -> None:
        self._inner = inner
        self._clock = clock

    async def request(self, request: Asked) -> Response:
        await self._clock.sleep(1)
        return await self._inner.request(request)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


def test_leases_are_renewed_in_time_though_the_server_is_slow() -> None:
    async def play(stage: Stage) -> None:
        connect = stage.connect
        stage.connect = lambda purpose: Slow(connect(purpose), stage.world.clock)
        await begin(stage, 64)
        await stage.world.clock.sleep(60)
        now = stage.world.clock.now()
        leases = await stage.client.list(Lease, namespace="kube-node-lease")
        assert max((now - each.spec.renew_time).total_seconds() for each in leases if each.spec.renew_time) < 15

    on_stage(play)


def test_a_changed_address_replaces_the_old_one() -> None:
    async def play(stage: Stage) -> None:
        await stage.client.create(pod())
        before = {"status": {"hostIP": "192.0.2.9", "hostIPs": [{"ip": "192.0.2.9"}], "phase": "Pending"}}
        await stage.client.patch(Pod, "p", MergePatch(before), subresource="status")
        await begin(stage)
        found = (await get(stage)).status
        assert [each.ip for each in found.host_ips] == [found.host_ip]
        assert found.host_ip != "192.0.2.9"

    on_stage(play)


def test_a_pod_runs_and_is_ready() -> None:
    async def play(stage: Stage) -> None:
        await begin(stage)
        await stage.client.create(pod())
        await stage.settle()
        found = await get(stage)
        assert found.status.phase == "Running"
        assert conditions(found) == {
            "PodReadyToStartContainers": ("True", ""),
            "Initialized": ("True", ""),
            "Ready": ("True", ""),
            "ContainersReady": ("True", ""),
            "PodScheduled": ("True", ""),
        }
        assert found.status.pod_ip
        assert found.status.host_ip == "172.16.0.1"
        (container,) = found.status.container_statuses
        assert container.ready
        assert container.started
        assert container.restart_count == 0

    on_stage(play)


def test_an_unbound_pod_is_not_run() -> None:
    async def play(stage: Stage) -> None:
        await begin(stage)
        await stage.client.create(pod(node_name=None))
        await stage.settle()
        assert (await get(stage)).status.phase == "Pending"
        assert not (await get(stage)).status.container_statuses

    on_stage(play)


def test_a_pod_takes_one_status_write_to_run_and_none_when_idle() -> None:
    async def play(stage: Stage) -> None:
        await begin(stage)
        before = stage.version
        await stage.client.create(pod())
        await stage.world.clock.sleep(5)
        assert stage.version - before == 2

    on_stage(play)


@pytest.mark.parametrize(
    ("behaviour", "phase"), [("succeed", "Succeeded"), ("fail", "Failed"), ("fail:7", "Failed"), ("hold", "Pending")]
)
def test_pods_end_as_their_script_says(behaviour: str, phase: str) -> None:
    async def play(stage: Stage) -> None:
        await begin(stage)
        await stage.client.create(pod(behaviour=behaviour, restart_policy="Never"))
        await stage.settle()
        found = await get(stage)
        assert found.status.phase == phase
        if behaviour == "fail:7":
            state = found.status.container_statuses[0].state
            assert state is not None
            assert state.terminated is not None
            assert (state.terminated.exit_code, state.terminated.reason) == (7, "Error")
            assert conditions(found)["Ready"] == ("False", "PodFailed")

    on_stage(play)


def test_slow_containers_get_ready_later() -> None:
    async def play(stage: Stage) -> None:
        await begin(stage)
        await stage.client.create(pod(behaviour="ready:30s"))
        await stage.world.clock.sleep(5)
        found = await get(stage)
        assert found.status.phase == "Running"
        assert conditions(found)["Ready"] == ("False", "ContainersNotReady")
        await stage.world.clock.sleep(30)
        assert conditions(await get(stage))["Ready"] == ("True", "")

    on_stage(play)


def test_a_container_that_fails_is_started_again_with_backoff() -> None:
    async def play(stage: Stage) -> None:
        await begin(stage)
        began = stage.world.clock.monotonic()
        await stage.client.create(pod(behaviour="fail:3"))
        waits: list[str] = []

        async def third() -> bool:
            status = next(iter((await get(stage)).status.container_statuses), None)
            if status is not None and status.state is not None and status.state.waiting is not None:
                message = status.state.waiting.message or ""
                if message.partition(" restarting")[0] not in waits:
                    waits.append(message.partition(" restarting")[0])
            return status is not None and status.restart_count == 3

        await stage.until(third)
        assert waits == ["back-off 10s", "back-off 20s"]
        assert 30 < stage.world.clock.monotonic() - began < 35
        found = await get(stage)
        assert found.status.phase == "Running"
        last = found.status.container_statuses[0].last_state
        assert last is not None
        assert last.terminated is not None
        assert last.terminated.exit_code == 3

    on_stage(play)


def test_init_containers_come_first_and_sidecars_stay() -> None:
    async def play(stage: Stage) -> None:
        await begin(stage)
        first = Container(name="first", image="i")
        side = Container(name="side", image="i", restart_policy="Always")
        await stage.client.create(pod(init_containers=[side, first], behaviour="finish:5s", restart_policy="Never"))
        await stage.world.clock.sleep(3)
        found = await get(stage)
        assert found.status.phase == "Running"
        assert conditions(found)["Initialized"] == ("True", "")
        assert [(each.name, each.ready) for each in found.status.init_container_statuses] == [
            ("side", True),
            ("first", True),
        ]
        await stage.world.clock.sleep(4)
        found = await get(stage)
        assert found.status.phase == "Succeeded"
        state = found.status.init_container_statuses[0].state
        assert state is not None
        assert state.terminated is not None  # the sidecar ended when the others had

    on_stage(play)


def test_a_deleted_pod_is_terminated_and_removed() -> None:
    async def play(stage: Stage) -> None:
        await begin(stage)
        await stage.client.create(pod())
        await stage.settle()
        await stage.client.delete(Pod, "p")
        await stage.settle()
        assert await stage.client.get(Pod, "p", missing=None) is None

    on_stage(play)


def test_a_deletion_takes_three_writes() -> None:
    async def play(stage: Stage) -> None:
        await begin(stage)
        await stage.client.create(pod())
        await stage.settle()
        before = stage.version
        await stage.client.delete(Pod, "p")
        await stage.world.clock.sleep(2)
        assert stage.version - before == 3, "the deletionTimestamp, the grace period of 0, the removal"

    on_stage(play)


def test_a_terminated_pod_with_a_finalizer_has_its_last_status() -> None:
    async def play(stage: Stage) -> None:
        await begin(stage)
        held = pod()
        held.metadata.finalizers = ["example.dev/hold"]
        await stage.client.create(held)
        await stage.settle()
        await stage.client.delete(Pod, "p")
        await stage.settle()
        found = await get(stage)
        assert found.status.phase == "Failed"
        state = found.status.container_statuses[0].state
        assert state is not None
        assert state.terminated is not None
        assert state.terminated.exit_code == 143

    on_stage(play)


def test_a_pod_that_lingers_takes_its_grace_period() -> None:
    async def play(stage: Stage) -> None:
        await begin(stage)
        await stage.client.create(pod(behaviour="linger"))
        await stage.settle()
        await stage.client.delete(Pod, "p")
        await stage.world.clock.sleep(29)
        assert await stage.client.get(Pod, "p", missing=None) is not None
        await stage.world.clock.sleep(3)
        assert await stage.client.get(Pod, "p", missing=None) is None

    on_stage(play)


def test_a_pod_that_is_replaced_under_its_name_is_another() -> None:
    async def play(stage: Stage) -> None:
        await begin(stage)
        await stage.client.create(pod())
        await stage.settle()
        before = await get(stage)
        await stage.client.delete(Pod, "p", grace_period=0)
        await stage.client.create(pod())
        await stage.settle()
        after = await get(stage)
        assert after.status.phase == "Running"
        assert after.status.container_statuses[0].container_id != before.status.container_statuses[0].container_id

    on_stage(play)


def test_an_active_deadline_ends_a_pod() -> None:
    async def play(stage: Stage) -> None:
        await begin(stage)
        await stage.client.create(pod(active_deadline_seconds=20))
        await stage.world.clock.sleep(25)
        found = await get(stage)
        assert (found.status.phase, found.status.reason) == ("Failed", "DeadlineExceeded")

    on_stage(play)


def test_readiness_gates_are_waited_for() -> None:
    async def play(stage: Stage) -> None:
        await begin(stage)
        await stage.client.create(pod(readiness_gates=[PodReadinessGate(condition_type="example.com/fed")]))
        await stage.settle()
        assert conditions(await get(stage))["Ready"] == ("False", "ReadinessGatesNotReady")
        own = {"type": "example.com/fed", "status": "True"}
        found = await get(stage)
        said = [{"type": each.type, "status": each.status} for each in found.status.conditions]
        await stage.client.patch(Pod, "p", MergePatch({"status": {"conditions": [*said, own]}}), subresource="status")
        await stage.settle()
        assert conditions(await get(stage))["Ready"] == ("True", "")
        assert conditions(await get(stage))["example.com/fed"] == ("True", "")

    on_stage(play)


def test_restarted_nodes_recover_their_pods() -> None:
    async def play(stage: Stage) -> None:
        await begin(stage)
        await stage.client.create(pod())
        await stage.settle()
        before = await get(stage)
        await stage.stop_managers()
        await begin(stage)
        await stage.settle()
        assert (await get(stage)).status == before.status
        await stage.client.delete(Pod, "p")
        await stage.settle()
        assert await stage.client.get(Pod, "p", missing=None) is None

    on_stage(play)


def test_an_invalid_script_is_reported() -> None:
    async def play(stage: Stage) -> None:
        await begin(stage)
        await stage.client.create(pod(behaviour="explode"))
        await stage.settle()
        state = (await get(stage)).status.container_statuses[0].state
        assert state is not None
        assert state.waiting is not None
        assert state.waiting.reason == "CreateContainerConfigError"
        assert "unknown word 'explode'" in (state.waiting.message or "")

    on_stage(play)


@pytest.mark.parametrize(
    ("text", "script"),
    [
        ("", Script()),
        ("never-ready", Script(ready_after=None)),
        ("slow, fail:3", Script(ready_after=2.0, ends_after=0.4, code=3)),
        ("ready-then-fail-after-5s", Script(ends_after=5.0, code=1)),
        ("start:1s,ready:500ms,finish:1m", Script(starts_after=1.0, ready_after=0.5, ends_after=60.0)),
    ],
)
def test_scripts_are_words_separated_by_commas(text: str, script: Script) -> None:
    assert parse(text) == script


@pytest.mark.parametrize("text", ["fail:300", "fail:x", "start:soon", "ready-then-fail-after-x", "explode"])
def test_unknown_script_words_are_rejected(text: str) -> None:
    with pytest.raises(ScriptError):
        parse(text)
