"""The stream of the page: batches of writes, and the graph that they extend."""

from __future__ import annotations

from typing import Any

import msgspec
from tests.unit.page.objects import entry, instance

from ostinato.page.history.history import History
from ostinato.page.live.stream import MAX_DECODED, MAX_WRITES, SETTLED, Stream
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
    batch = _batch_of(*(("ConfigMap", "kubectl") for _ in range(2 * MAX_DECODED)))
    assert [each["author"] for each in batch["writes"]] == ["unknown"] * MAX_DECODED + ["kubectl"] * MAX_DECODED
    reported = _batch_of(*(("Pod", "kube-controller-manager") for _ in range(2 * MAX_DECODED)), run="run-1")
    assert {(each["verb"], each["author"], each["summary"]) for each in reported["writes"]} == {
        ("create", "replicasets", "")
    }
    few = _batch_of(("Pod", "kube-controller-manager"), run="run-1")
    assert [each["summary"] for each in few["writes"]] == ["created"]
