from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from tests.unit.plane.scheduler.fixture import entry, node, pod

from ostinato.kinds.core_v1 import Node, Pod
from ostinato.plane.scheduler.cache.node_info import read_node
from ostinato.plane.scheduler.cache.pod_info import PodInfo, PodReader
from ostinato.plane.scheduler.framework.events import NODE, POD, Action, ClusterEvent, QueueingHint
from ostinato.plane.scheduler.queue import SchedulingQueue
from ostinato.world import Simulation

FIT = frozenset({"Fit"})
GROWN = ClusterEvent(NODE, Action.NODE_ALLOCATABLE)
LABELLED = ClusterEvent(NODE, Action.NODE_LABEL)
HINTS = {
    "default-scheduler": {
        "Fit": (QueueingHint(NODE, Action.ADD | Action.NODE_ALLOCATABLE),),
        "Picky": (QueueingHint(POD, Action.DELETE, lambda waiting, event: event.old.name == f"foe-of-{waiting.name}"),),
        "SchedulingGates": (QueueingHint(POD, Action.POD_GATES_ELIMINATED),),
    }
}


def info(name: str, priority: int = 0, **spec: object) -> PodInfo:
    return PodReader().read(entry(Pod, pod(name, priority=priority, **spec)))


def play(scene: Callable[[SchedulingQueue, Simulation], Awaitable[None]]) -> None:
    world = Simulation(seed=1)
    gates = lambda waiting: "SchedulingGates" if waiting.spec.scheduling_gates else ""  # noqa: E731

    async def whole() -> None:
        queue = SchedulingQueue(world.clock, HINTS, gates)
        await scene(queue, world)
        queue.close()

    world.run(whole())


def test_pods_are_popped_by_priority_then_in_order() -> None:
    async def scene(queue: SchedulingQueue, world: Simulation) -> None:
        for name, priority in (("a", 0), ("b", 10), ("c", 0), ("d", 10)):
            queue.add(info(name, priority))
        assert [(await queue.pop()).pod.name for _ in range(4)] == ["b", "d", "a", "c"]

    play(scene)


def test_a_waiting_pop_gets_the_next_pod() -> None:
    async def scene(queue: SchedulingQueue, world: Simulation) -> None:
        waiting = asyncio.get_running_loop().create_task(queue.pop())
        await world.clock.sleep(1)
        queue.add(info("late"))
        assert (await waiting).pod.name == "late"

    play(scene)


def test_an_unschedulable_pod_waits_for_an_event_with_a_matching_hint() -> None:
    async def scene(queue: SchedulingQueue, world: Simulation) -> None:
        queue.add(info("p"))
        queue.add_unschedulable(await queue.pop(), FIT)
        queue.move_all(LABELLED)
        queue.move_all(ClusterEvent(POD, Action.DELETE, old=info("foe-of-p")))
        assert queue.try_pop() is None
        queue.move_all(GROWN)
        assert queue.try_pop() is not None

    play(scene)


def test_a_pod_moved_by_several_events_is_popped_once() -> None:
    async def scene(queue: SchedulingQueue, world: Simulation) -> None:
        queue.add(info("p"))
        queue.add_unschedulable(await queue.pop(), FIT)
        await world.clock.sleep(5)
        queue.move_all(GROWN)
        queue.move_all(GROWN)
        assert queue.try_pop() is not None
        queue.move_all(GROWN)
        assert queue.try_pop() is None

    play(scene)


def test_a_hint_function_gets_pod_and_event() -> None:
    async def scene(queue: SchedulingQueue, world: Simulation) -> None:
        queue.add(info("p"))
        queue.add_unschedulable(await queue.pop(), frozenset({"Picky"}))
        queue.move_all(ClusterEvent(POD, Action.DELETE, old=info("foe-of-q")))
        assert queue.try_pop() is None
        queue.move_all(ClusterEvent(POD, Action.DELETE, old=info("foe-of-p")))
        assert queue.try_pop() is not None

    play(scene)


def test_an_unschedulable_pod_is_retried_after_five_minutes() -> None:
    async def scene(queue: SchedulingQueue, world: Simulation) -> None:
        queue.add(info("p"))
        queue.add_unschedulable(await queue.pop(), FIT)
        began = world.clock.monotonic()
        await queue.pop()
        assert 300 < world.clock.monotonic() - began < 340

    play(scene)


def test_a_pod_in_backoff_does_not_block_others() -> None:
    async def scene(queue: SchedulingQueue, world: Simulation) -> None:
        queue.add(info("failed", 10))
        queue.add_unschedulable(await queue.pop(), FIT)
        queue.add(info("fresh"))
        queue.move_all(GROWN)
        assert [(await queue.pop()).pod.name for _ in range(2)] == ["fresh", "failed"]

    play(scene)


def test_after_an_error_a_pod_backs_off_longer_each_time_up_to_ten_seconds() -> None:
    async def scene(queue: SchedulingQueue, world: Simulation) -> None:
        queue.add(info("p"))
        queued = await queue.pop()
        waits = []
        for _ in range(6):
            began = world.clock.monotonic()
            queue.add_after_error(queued)
            queued = await queue.pop()
            waits.append(round(world.clock.monotonic() - began, 3))
        assert waits == [1, 2, 4, 8, 10, 10]

    play(scene)


def test_a_shorter_backoff_ends_before_a_longer_one() -> None:
    async def scene(queue: SchedulingQueue, world: Simulation) -> None:
        queue.add(info("old"))
        for _ in range(4):
            queue.add_after_error(await queue.pop())
        queue.add(info("new"))
        queue.add_after_error(await queue.pop())
        began = world.clock.monotonic()
        assert (await queue.pop()).pod.name == "new"
        assert world.clock.monotonic() - began == 1

    play(scene)


def test_a_gated_pod_waits_until_its_gates_are_gone() -> None:
    async def scene(queue: SchedulingQueue, world: Simulation) -> None:
        gated = info("p", schedulingGates=[{"name": "one"}])
        queue.add(gated)
        await world.clock.sleep(400)
        assert queue.try_pop() is None
        free = info("p")
        free.uid = gated.uid
        queue.add(free)
        assert queue.try_pop() is not None

    play(scene)


def test_a_deleted_pod_is_not_popped() -> None:
    async def scene(queue: SchedulingQueue, world: Simulation) -> None:
        for name in ("active", "waiting", "failed"):
            queue.add(info(name))
        taken = [await queue.pop() for _ in range(3)]
        queue.add_unschedulable(taken[1], FIT)
        queue.add_after_error(taken[2])
        queue.add(again := info("again"))
        for uid in (again.uid, taken[1].pod.uid, taken[2].pod.uid):
            queue.delete(uid)
        queue.move_all(GROWN)
        await world.clock.sleep(20)
        assert queue.try_pop() is None

    play(scene)


def test_an_activated_pod_is_popped_without_backoff() -> None:
    async def scene(queue: SchedulingQueue, world: Simulation) -> None:
        queue.add(info("p"))
        queued = await queue.pop()
        queue.add_unschedulable(queued, FIT)
        queue.activate(queued.pod.uid)
        assert queue.try_pop() is queued

    play(scene)


def test_hints_get_the_new_node() -> None:
    facts = read_node(entry(Node, node("a", cpu="2", labels={"zone": "x"})))
    assert (facts.name, facts.allocatable.cpu, facts.labels["zone"], facts.pods) == ("a", 2000, "x", 110)
