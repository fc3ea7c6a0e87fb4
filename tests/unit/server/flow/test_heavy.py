"""The heavy lane: what takes long runs beside the loop, one at a time, in a fair order."""

from __future__ import annotations

import asyncio
import itertools
import json
import threading

import pytest
from tests.stage.api import MERGE, Api, asking

from ostinato.server.core import Server
from ostinato.server.flow.heavy import HeavyLane, is_heavy
from ostinato.server.flow.turns import Turns
from ostinato.server.request import Peer, Request, Response
from ostinato.server.store.log_memory import MemoryLog
from ostinato.world import World

MAPS = "/api/v1/namespaces/default/configmaps"
HUGE = {f"k{number:05}": "0" for number in range(5000)}


@pytest.mark.parametrize(
    ("data", "media", "heavy"),
    [
        (b"{}", "json", False),
        (b"a" * 4096, "yaml", False),
        (b"a: b\n" * 1000, "yaml", True),
        (b'{"a":"' + b"x" * 60_000 + b'"}', "json", False),
        (b'{"a":"' + b"x" * 70_000 + b'"}', "json", True),
        (b"[" + b"1," * 300 + b"1]" + b" " * 4000, "json", False),
        (b"[" + b"1," * 3000 + b"1]", "json", True),
    ],
)
def test_heavy_is_what_is_large_or_has_many_members(data: bytes, media: str, heavy: bool) -> None:
    assert is_heavy(data, media) is heavy


def test_a_flow_with_one_call_waits_for_one_of_a_flow_with_many() -> None:
    async def main() -> None:
        world = World.real()
        turns = Turns(world.clock.monotonic)
        lane = HeavyLane(world, turns)
        flood, other = turns.queue.line("level", 1, "flood"), turns.queue.line("level", 1, "other")
        done: list[str] = []
        began, release = threading.Event(), threading.Event()

        def first() -> None:
            began.set()
            release.wait(10)

        calls = [asyncio.ensure_future(lane.run(flood, first))]
        calls += [asyncio.ensure_future(lane.run(flood, lambda: done.append("flood"))) for _ in range(50)]
        await asyncio.to_thread(began.wait, 10)
        calls.append(asyncio.ensure_future(lane.run(other, lambda: done.append("other"))))
        await asyncio.sleep(0)
        release.set()
        await asyncio.gather(*calls)
        assert done.index("other") <= 1
        assert len(done) == 51
        lane.close()

    asyncio.run(main())


def test_a_call_that_was_cancelled_keeps_the_lane_until_its_thread_has_ended() -> None:
    async def main() -> None:
        world = World.real()
        lane = HeavyLane(world, Turns(world.clock.monotonic))
        began, release = threading.Event(), threading.Event()
        running: list[int] = []

        def hold() -> None:
            began.set()
            release.wait(10)
            running.append(1)

        first = asyncio.ensure_future(lane.run(None, hold))
        await asyncio.to_thread(began.wait, 10)
        first.cancel()
        second = asyncio.ensure_future(lane.run(None, lambda: list(running)))
        await asyncio.sleep(0)
        assert not second.done()
        release.set()
        assert await second == [1]
        lane.close()

    asyncio.run(main())


def test_a_call_that_fails_tells_its_caller_and_lets_the_next_one_in() -> None:
    async def main() -> None:
        world = World.real()
        lane = HeavyLane(world, Turns(world.clock.monotonic))

        def fails() -> None:
            raise ValueError("no")

        with pytest.raises(ValueError, match="no"):
            await lane.run(None, fails)
        assert await lane.run(None, lambda: 7) == 7
        lane.close()

    asyncio.run(main())


@asking
async def test_a_patch_of_very_many_keys_does_not_run_on_the_event_loop(api: Api) -> None:
    await api.post(MAPS, {"metadata": {"name": "small"}, "data": {"a": "b"}})
    before = api.server.lane.runs
    await api.merge(f"{MAPS}/small", {"data": {"a": "c"}})
    assert api.server.lane.runs == before
    for content_type, body in (
        (MERGE, {"data": HUGE}),
        ("application/strategic-merge-patch+json", {"data": dict.fromkeys(HUGE, "1")}),
        ("application/json-patch+json", [{"op": "replace", "path": f"/data/{key}", "value": "2"} for key in HUGE]),
    ):
        before = api.server.lane.runs
        answer = await api.ask("PATCH", f"{MAPS}/small", body, content_type=content_type)
        assert answer.code == 200
        assert api.server.lane.runs > before
    before = api.server.lane.runs
    assert (await api.merge(f"{MAPS}/small", {"data": {"a": "z"}})).body["data"]["a"] == "z"  # the object is huge
    assert api.server.lane.runs > before


@asking
async def test_a_write_that_was_overtaken_while_it_was_aside_is_made_again(api: Api) -> None:
    await api.post(MAPS, {"metadata": {"name": "a"}, "data": {}})
    path = f"{MAPS}/a"
    slow = asyncio.ensure_future(api.merge(path, {"data": HUGE}))
    for _ in range(3):
        await asyncio.sleep(0)
    quick = await api.merge(path, {"data": {"other": "kept"}})
    assert quick.code == 200
    answer = await slow
    assert answer.code == 200
    assert answer.body["data"]["other"] == "kept"
    assert len(answer.body["data"]) == len(HUGE) + 1


def test_a_table_of_many_rows_is_made_in_slices() -> None:
    async def main() -> None:
        server = Server(World.real(), MemoryLog())
        await server.start()
        for number in range(300):
            body = json.dumps({"metadata": {"name": f"m-{number}"}}).encode()
            await server.handle(_asked("POST", MAPS, body=body))
        server.turns = server.lane.turns = Turns(itertools.count().__next__)  # each slice is over as soon as it begins
        steps = 0
        asked = _asked("GET", MAPS, accept="application/json;as=Table;v=v1;g=meta.k8s.io")
        task = asyncio.ensure_future(server.handle(asked))
        while not task.done():
            steps += 1
            await asyncio.sleep(0)
        answer = task.result()
        assert isinstance(answer, Response)
        assert len(json.loads(answer.body)["rows"]) == 300
        assert steps > 70
        await server.close()

    asyncio.run(main())


def _asked(method: str, path: str, body: bytes = b"", **headers: str) -> Request:
    asked = Request(method, path, "", headers, body=body)
    asked.peer = Peer("admin", ("system:masters",))
    return asked


DEFINITION = {
    "metadata": {"name": "widgets.example.dev"},
    "spec": {
        "group": "example.dev",
        "scope": "Namespaced",
        "names": {"plural": "widgets", "kind": "Widget"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {
                            "text": {"type": "string", "pattern": "^(a|b)*$"},
                            "numbers": {
                                "type": "array",
                                "maxItems": 200,
                                "items": {"type": "integer"},
                                "x-kubernetes-validations": [{"rule": "self.all(x, self.exists(y, y == x))"}],
                            },
                        },
                    }
                },
            }
        ],
    },
}
WIDGETS = "/apis/example.dev/v1/namespaces/default/widgets"


@asking
async def test_a_rule_in_cel_that_costs_much_is_evaluated_aside(api: Api) -> None:
    assert (await api.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", DEFINITION)).code == 201
    widget = {"apiVersion": "example.dev/v1", "kind": "Widget"}
    before = api.server.lane.runs
    assert (await api.post(WIDGETS, {**widget, "metadata": {"name": "cheap"}, "numbers": [1, 2]})).code == 201
    assert api.server.lane.runs == before
    numbers = list(range(200))
    assert (await api.post(WIDGETS, {**widget, "metadata": {"name": "costly"}, "numbers": numbers})).code == 201
    assert api.server.lane.runs == before + 1


@asking
async def test_a_pattern_is_matched_aside_against_a_large_text(api: Api) -> None:
    assert (await api.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", DEFINITION)).code == 201
    before = api.server.lane.runs
    widget = {"apiVersion": "example.dev/v1", "kind": "Widget", "metadata": {"name": "a"}, "text": "ab" * 100_000}
    assert (await api.post(WIDGETS, widget)).code == 201
    assert api.server.lane.runs > before
