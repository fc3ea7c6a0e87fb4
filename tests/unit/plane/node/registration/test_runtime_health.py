"""The Ready condition of a node whose container runtime fails, in virtual time."""

from __future__ import annotations

from tests.stage.plane import Stage, on_stage

from ostinato.kinds.core_v1 import Node
from ostinato.plane.node.node_clients import node_clients
from ostinato.plane.node.registration.heartbeat import Heartbeat
from ostinato.plane.node.registration.node_status import Machine
from ostinato.plane.node.registration.readiness import NodeReadiness
from ostinato.plane.node.registration.runtime_health import RuntimeDown, RuntimeHealth

MACHINE = Machine(name="worker", addresses=("10.0.0.7",), runtime="fake://1", capacity={"cpu": "4"})


class FakeRuntime:
    def __init__(self) -> None:
        self.answer: str | None = ""  # None: it does not answer

    async def health(self) -> str:
        if self.answer is None:
            raise RuntimeDown("connection refused")
        return self.answer


async def ready(stage: Stage) -> tuple[str, str | None]:
    node = await stage.client.get(Node, "worker")
    condition = next(each for each in node.status.conditions if each.type == "Ready")
    return condition.status, condition.message


def run(stage: Stage, runtime: FakeRuntime) -> None:
    readiness = NodeReadiness(stage.world.clock)
    stage.run(
        lambda manager: manager.add(
            Heartbeat([MACHINE], node_clients(manager), readiness), RuntimeHealth(runtime, readiness)
        )
    )


def test_a_node_is_not_ready_while_its_runtime_is_down_for_long() -> None:
    async def play(stage: Stage) -> None:
        runtime = FakeRuntime()
        run(stage, runtime)
        await stage.world.clock.sleep(5)
        assert (await ready(stage))[0] == "True"
        runtime.answer = None
        await stage.world.clock.sleep(25)
        assert (await ready(stage))[0] == "True"  # it may just be restarted
        await stage.world.clock.sleep(15)
        assert await ready(stage) == ("False", "container runtime is down")
        runtime.answer = ""
        await stage.world.clock.sleep(6)
        assert (await ready(stage))[0] == "True"

    on_stage(play)


def test_a_node_without_a_network_for_pods_is_not_ready() -> None:
    async def play(stage: Stage) -> None:
        runtime = FakeRuntime()
        runtime.answer = "container runtime network not ready: NetworkReady=false reason:R message:M"
        run(stage, runtime)
        await stage.world.clock.sleep(6)
        assert await ready(stage) == ("False", runtime.answer)
        runtime.answer = None  # the last answer counts until it is down for long
        await stage.world.clock.sleep(6)
        assert (await ready(stage))[1] == "container runtime network not ready: NetworkReady=false reason:R message:M"

    on_stage(play)
