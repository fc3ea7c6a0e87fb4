"""The stream of the page: batches of writes, and the graph that they extend."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from tests.unit.page.objects import entry, instance

from ostinato.page.history.history import History
from ostinato.page.live.stream import MAX_DECODED, MAX_SUBSCRIBERS, MAX_WRITES, SETTLED, Stream, TooManyPages
from ostinato.world import Simulation


def _batch_of(*changes: tuple[str, str], run: str = "") -> dict[str, Any]:
    """Return the batch of creations, given as kinds and their field managers. `run`: that reported all of them."""

    world = Simulation(seed=1)

    async def main() -> dict[str, Any]:
        clock = world.clock
        history = History(clock)
        stream = Stream(clock, history)
        events = stream.subscribe()
        await anext(events)
        before = clock.wall() - SETTLED - 1.0
        for number, (kind, manager) in enumerate(changes, 1):
            made = instance(kind, f"object-{number}", number, manager=manager)
            added = history.changes.add(before, "create", None, entry(made))
            if run:
                added.made_by(run, "replicasets")
        stream.tick()
        sent = (await anext(events)).decode()
        await events.aclose()
        found: dict[str, Any] = msgspec.json.decode(sent.partition("data: ")[2])
        return found

    return world.run(main())


def test_a_component_that_does_not_report_is_a_node_of_its_own() -> None:
    batch = _batch_of(("Pod", "kube-scheduler"), ("ConfigMap", "kubectl"))
    edges = {(each["from"], each["to"]) for each in batch["graph"]["edges"]}
    assert edges == {("controller:kube-scheduler", "kind:v1/Pod"), ("user", "kind:v1/ConfigMap")}


def test_a_batch_with_too_many_writes_counts_the_others() -> None:
    batch = _batch_of(*(("ConfigMap", "kubectl") for _ in range(MAX_WRITES + 1)))
    assert len(batch["writes"]) == MAX_WRITES
    assert batch["dropped"] == 1
    assert batch["counts"] == [{"from": "user", "to": "kind:v1/ConfigMap", "n": 1}]


def test_of_many_writes_only_those_that_no_run_reported_are_decoded() -> None:
    batch = _batch_of(*(("ConfigMap", "kubectl") for _ in range(MAX_WRITES)))
    outlined = MAX_WRITES - MAX_DECODED
    assert [each["author"] for each in batch["writes"]] == ["unknown"] * outlined + ["kubectl"] * MAX_DECODED
    reported = _batch_of(*(("Pod", "kube-controller-manager") for _ in range(2 * MAX_DECODED)), run="run-1")
    assert {(each["verb"], each["author"], each["summary"]) for each in reported["writes"]} == {
        ("create", "replicasets", "")
    }
    few = _batch_of(("Pod", "kube-controller-manager"), run="run-1")
    assert [each["summary"] for each in few["writes"]] == ["created"]


def test_a_page_that_does_not_read_costs_a_bounded_number_of_batches_and_is_told_what_it_missed() -> None:
    world = Simulation(seed=1)

    async def main() -> list[dict[str, Any]]:
        history = History(world.clock)
        stream = Stream(world.clock, history)
        slow = stream.subscribe()
        await anext(slow)
        for number in range(1, 501):
            made = entry(instance("Pod", f"object-{number}", number))
            history.changes.add(world.clock.wall() - SETTLED - 1.0, "create", None, made)
            stream.tick()
        # 20 batches are kept, and one says how many were not.
        received = [msgspec.json.decode((await anext(slow)).partition(b"data: ")[2]) for _ in range(21)]
        await slow.aclose()
        return received

    missed, *kept = world.run(main())
    assert (missed["dropped"], missed["writes"]) == (480, [])
    assert [batch["writes"][0]["ref"]["name"] for batch in kept] == [f"object-{n}" for n in range(481, 501)]


def test_the_number_of_open_pages_is_bounded_and_a_closed_one_makes_room() -> None:
    world = Simulation(seed=1)

    async def main() -> None:
        stream = Stream(world.clock, History(world.clock))
        opened = [stream.subscribe() for _ in range(MAX_SUBSCRIBERS)]
        for each in opened:
            await anext(each)
        for _ in range(10_000):
            with pytest.raises(TooManyPages):
                await anext(stream.subscribe())
        await opened[0].aclose()
        await anext(another := stream.subscribe())
        for each in [*opened[1:], another]:
            await each.aclose()

    world.run(main())
