"""The Ready condition of a node that waits for a component, in virtual time."""

from __future__ import annotations

from tests.stage.plane import Stage, on_stage

from ostinato.kinds.core_v1 import Node, NodeCondition
from ostinato.plane.node.node_clients import node_clients
from ostinato.plane.node.registration.heartbeat import Heartbeat
from ostinato.plane.node.registration.node_status import Machine
from ostinato.plane.node.registration.readiness import NodeReadiness

MACHINE = Machine(name="worker", addresses=("10.0.0.7",), runtime="fake://1", capacity={"cpu": "4"})


async def ready(stage: Stage) -> NodeCondition:
    node = await stage.client.get(Node, "worker")
    return next(each for each in node.status.conditions if each.type == "Ready")


def run(stage: Stage, readiness: NodeReadiness | None) -> None:
    stage.run(lambda manager: manager.add(Heartbeat([MACHINE], node_clients(manager), readiness)))


def test_a_node_is_ready_as_soon_as_its_component_is() -> None:
    async def play(stage: Stage) -> None:
        readiness = NodeReadiness(stage.world.clock)
        readiness.wait_for("certificate", "not signed yet", at_most=30.0)
        run(stage, readiness)
        await stage.world.clock.sleep(5)
        condition = await ready(stage)
        assert (condition.status, condition.reason, condition.message) == ("False", "KubeletNotReady", "not signed yet")
        readiness.mark_ready("certificate")
        await stage.world.clock.sleep(0.1)
        condition = await ready(stage)
        assert (condition.status, condition.reason) == ("True", "KubeletReady")
        await stage.world.clock.sleep(60)
        assert (await ready(stage)).last_transition_time == condition.last_transition_time

    on_stage(play)


def test_a_component_that_takes_too_long_is_not_waited_for() -> None:
    async def play(stage: Stage) -> None:
        readiness = NodeReadiness(stage.world.clock)
        readiness.wait_for("certificate", "not signed yet", at_most=30.0)
        run(stage, readiness)
        await stage.world.clock.sleep(29)
        assert (await ready(stage)).status == "False"
        await stage.world.clock.sleep(2)
        assert (await ready(stage)).status == "True"

    on_stage(play)


def test_a_node_that_waits_for_nothing_is_ready_at_registration() -> None:
    async def play(stage: Stage) -> None:
        run(stage, None)
        await stage.settle()
        assert (await ready(stage)).status == "True"

    on_stage(play)
