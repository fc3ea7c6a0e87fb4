"""Waiting for an object, and trying again."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.stage.client import Stage, staged
from tests.stage.kinds import config_map
from tests.stage.transport import Answer, Streamed, in_turn, scripted

from ostinato.api.errors import Conflict, Expired, NotFound
from ostinato.api.gvk import GroupResource
from ostinato.api.meta import ObjectMeta
from ostinato.client import MetadataOf, Unstructured, WaitTimedOut, exists, is_deleted
from ostinato.client.transport.backoff import CONFLICTS, CONTENDED, WATCHES, Backoff
from ostinato.client.transport.protocol import RequestTimedOut
from ostinato.client.transport.retry import retry_on, retry_on_conflict
from ostinato.kinds.apps_v1 import Deployment
from ostinato.kinds.core_v1 import ConfigMap, Namespace
from ostinato.world import Rng, Simulation

DEPLOYMENTS = Unstructured.of("apps/v1", "Deployment")


async def _deployment(stage: Stage) -> None:
    spec = {
        "selector": {"matchLabels": {"app": "web"}},
        "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "a", "image": "a"}]},
        },
    }
    made = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": spec}
    await stage.client.create(made)


async def _condition(stage: Stage, status: str) -> None:
    made = await stage.client.get(DEPLOYMENTS, "web")
    condition = {"type": "Available", "status": status, "reason": "Because", "message": "it is so"}
    made["status"]["conditions"] = [condition]
    await stage.client.update(made, subresource="status")


@staged
async def test_a_condition_that_is_already_met_returns_immediately(stage: Stage) -> None:
    await stage.client.create(config_map("a"))
    found = await stage.client.wait_for(ConfigMap, "a", exists, timeout=10)
    assert found is not None
    assert found.metadata.name == "a"
    assert not any(request.stream for request in stage.transport.requests)


@staged
async def test_a_condition_of_the_status_is_waited_for_without_asking_again(stage: Stage) -> None:
    await _deployment(stage)
    waiting = [
        asyncio.ensure_future(stage.client.wait_for(kind, "web", "Available", timeout=1000))  # type: ignore[misc]
        for kind in (Deployment, DEPLOYMENTS)
    ]
    await stage.world.clock.sleep(100)
    await _condition(stage, "False")
    await stage.world.clock.sleep(100)
    assert not any(each.done() for each in waiting)
    before = len(stage.transport.requests)
    await _condition(stage, "True")
    typed, untyped = [await each for each in waiting]
    assert typed.status.conditions[0].status == untyped["status"]["conditions"][0]["status"] == "True"
    assert len(stage.transport.requests) == before + 2


@staged
async def test_an_object_is_waited_for_until_it_is_made_and_until_it_is_gone(stage: Stage) -> None:
    making = asyncio.ensure_future(stage.client.wait_for(MetadataOf(ConfigMap), "a", exists, timeout=100))
    await stage.world.clock.sleep(1)
    made = await stage.client.create(config_map("a"))
    found = await making
    assert found is not None
    assert found.metadata.uid == made.metadata.uid
    ending = asyncio.ensure_future(stage.client.wait_for(ConfigMap, "a", is_deleted, timeout=100))
    await stage.world.clock.sleep(1)
    assert not ending.done()
    await stage.client.delete(ConfigMap, "a")
    assert await ending is None


@staged
async def test_objects_without_a_namespace_are_waited_for_too(stage: Stage) -> None:
    waiting = asyncio.ensure_future(stage.client.wait_for(Namespace, "x", exists, timeout=100))
    await stage.world.clock.sleep(1)
    await stage.client.create(Namespace(metadata=ObjectMeta(name="x")))
    assert await waiting is not None


@staged
async def test_a_timeout_names_the_condition_and_the_last_state(stage: Stage) -> None:
    wait_for = stage.client.wait_for
    with pytest.raises(
        WaitTimedOut, match="Deployment default/web: timed out after 5 s waiting for condition Available; the object do"
    ):
        await wait_for(Deployment, "web", "Available", timeout=5)
    await _deployment(stage)
    with pytest.raises(WaitTimedOut, match="the object has no such condition"):
        await wait_for(Deployment, "web", "Available", timeout=5)
    await _condition(stage, "False")
    for kind in (Deployment, DEPLOYMENTS):
        with pytest.raises(WaitTimedOut, match="the condition is False: Because: it is so"):
            await wait_for(kind, "web", "Available", timeout=5)  # type: ignore[misc]
    with pytest.raises(
        WaitTimedOut, match="timed out after 5 s waiting until is_deleted; the object exists, the condition is not met"
    ):
        await wait_for(Deployment, "web", is_deleted, timeout=5)


def _page(version: str, *names: str) -> Answer:
    items = [{"metadata": {"name": name, "resourceVersion": version}} for name in names]
    metadata = {"resourceVersion": version}
    return Answer(body={"kind": "ConfigMapList", "apiVersion": "v1", "metadata": metadata, "items": items})


def test_an_expired_resource_version_is_relisted() -> None:
    world = Simulation(1)
    expired = Answer(410, Expired.of("too old").to_dict())
    client, transport = scripted(world, in_turn(_page("5"), expired, _page("9", "a")))

    async def main() -> None:
        found = await client.wait_for(ConfigMap, "a", exists, timeout=10)
        assert found is not None
        assert found.metadata.resource_version == "9"

    world.run(main())
    assert len(transport.requests) == 3


def test_the_timeout_of_a_request_is_raised_as_such() -> None:
    world = Simulation(1)
    client, _ = scripted(world, in_turn(RequestTimedOut("GET: timed out")))

    async def main() -> None:
        with pytest.raises(RequestTimedOut, match="GET: timed out"):
            await client.wait_for(ConfigMap, "a", exists, timeout=10)

    world.run(main())


def test_without_a_timeout_a_wait_has_no_limit() -> None:
    world = Simulation(1)
    client, _ = scripted(world, in_turn(_page("5"), Streamed(hangs=True)))
    assert world.run(client.wait_for(ConfigMap, "a", exists, timeout=None), until=10_000) is None


# Backoff and retry


def _waits(backoff: Backoff, count: int) -> list[float]:
    steps = backoff.start(Rng(1))
    return [steps.next() for _ in range(count)]


@pytest.mark.parametrize(
    ("backoff", "waits"),
    [
        (Backoff(duration=1.0), [1.0, 1.0, 1.0]),
        (Backoff(duration=1.0, factor=2.0, steps=3), [1.0, 2.0, 4.0, 8.0, 8.0]),
        (Backoff(duration=1.0, factor=0.0, steps=3), [1.0, 1.0, 1.0, 1.0]),
        (Backoff(duration=1.0, factor=3.0, steps=10, cap=10.0), [1.0, 3.0, 9.0, 10.0, 10.0]),
        (Backoff(duration=20.0, factor=3.0, steps=10, cap=10.0), [20.0, 10.0, 10.0]),
    ],
)
def test_waits_grow_by_their_factor_up_to_their_cap(backoff: Backoff, waits: list[float]) -> None:
    assert _waits(backoff, len(waits)) == waits


@pytest.mark.parametrize(
    "case",
    msgspec.json.decode((Path(__file__).parents[2] / "data" / "client" / "client_go.json").read_bytes())["backoff"],
)
def test_steps_are_those_of_apimachinery(case: dict[str, Any]) -> None:
    backoff = Backoff(duration=case["duration"], factor=case["factor"], steps=case["steps"], cap=case["cap"])
    steps = backoff.start(Rng(1))
    found = [(steps.next(), steps.left) for _ in case["waits"]]
    assert found == [(pytest.approx(wait), left) for wait, left in zip(case["waits"], case["left"], strict=True)]


def test_jitter_adds_a_part_of_a_wait_and_is_not_carried_on() -> None:
    waits = _waits(Backoff(duration=1.0, factor=2.0, jitter=0.5, steps=50, cap=1e9), 20)
    assert all(2**number <= wait < 1.5 * 2**number for number, wait in enumerate(waits))
    assert len({wait / 2**number for number, wait in enumerate(waits)}) == 20


def test_a_backoff_that_reaches_its_cap_has_no_more_steps() -> None:
    steps = Backoff(duration=1.0, factor=10.0, steps=10, cap=5.0).start(Rng(1))
    assert steps.left == 10
    steps.next()
    assert steps.left == 0
    steps.reset()
    assert (steps.left, steps.next()) == (10, 1.0)


def test_the_usual_backoffs_are_those_of_client_go() -> None:
    assert Backoff(duration=0.01, factor=1.0, jitter=0.1, steps=5) == CONFLICTS
    assert Backoff(duration=0.01, factor=5.0, jitter=0.1, steps=4) == CONTENDED
    assert Backoff(duration=0.8, factor=2.0, jitter=1.0, steps=38, cap=30.0) == WATCHES


class Failing:
    """Fails so many times."""

    def __init__(self, times: int, error: Exception) -> None:
        self.times = times
        self.error = error
        self.calls = 0

    async def __call__(self) -> str:
        self.calls += 1
        if self.calls <= self.times:
            raise self.error
        return "done"


CONFLICT = Conflict.of(GroupResource("", "pods"), "a", "changed")


@pytest.mark.parametrize(
    ("backoff", "times", "calls", "least"),
    [
        (CONFLICTS, 0, 1, 0.0),
        (CONFLICTS, 4, 5, 0.04),
        (CONFLICTS, 9, 5, 0.04),
        (CONTENDED, 3, 4, 0.31),
        (CONTENDED, 9, 4, 0.31),
        (Backoff(duration=1.0, steps=1), 9, 1, 0.0),
    ],
)
def test_conflicts_are_retried_and_the_last_one_is_raised(
    backoff: Backoff, times: int, calls: int, least: float
) -> None:
    world = Simulation(1)
    function = Failing(times, CONFLICT)
    if times < calls:
        assert world.run(retry_on_conflict(world, function, backoff)) == "done"
    else:
        with pytest.raises(Conflict):
            world.run(retry_on_conflict(world, function, backoff))
    assert function.calls == calls
    assert least <= world.clock.monotonic() <= 1.1 * least


def test_other_errors_are_raised_immediately() -> None:
    world = Simulation(1)
    function = Failing(1, NotFound.of(GroupResource("", "pods"), "a"))
    with pytest.raises(NotFound):
        world.run(retry_on_conflict(world, function))
    assert function.calls == 1


def test_the_retriable_errors_can_be_chosen() -> None:
    world = Simulation(1)
    function = Failing(2, KeyError("x"))
    assert world.run(retry_on(world, lambda error: isinstance(error, KeyError), function, CONFLICTS)) == "done"
