"""Fault rules of a server, and the endpoint that changes them."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any

import msgspec
import pytest

from ostinato.api.errors import Conflict, ServiceUnavailable
from ostinato.api.meta import ObjectMeta
from ostinato.client.client import Client
from ostinato.client.transport.protocol import ConnectionLost
from ostinato.kinds.core_v1 import ConfigMap
from ostinato.server.core import Server
from ostinato.server.faults.endpoint import PATH, answer
from ostinato.server.faults.rules import RuleDirector, RulesError, parse
from ostinato.server.faults.stage import FaultyServer
from ostinato.server.in_process.transport import InProcessTransport
from ostinato.server.request import Request
from ostinato.server.store.log_memory import MemoryLog
from ostinato.world import Simulation


class Stage:
    """A server with rules, and a client that they meet."""

    def __init__(self, *rules: dict[str, Any]) -> None:
        self.world = Simulation(1)
        self.core = Server(self.world, MemoryLog())
        self.director = RuleDirector(self.world, parse({"rules": list(rules)}))
        self.faulty = FaultyServer(lambda: self.core, self.director, {PATH: partial(answer, self.director)})
        self.client = Client(InProcessTransport(self.faulty), world=self.world, namespace="default")

    async def create(self, name: str) -> ConfigMap:
        return await self.client.create(ConfigMap(metadata=ObjectMeta(name=name)))

    def run(self, main: Any) -> Any:
        async def whole() -> Any:
            await self.core.start()
            try:
                return await main()
            finally:
                await self.client.close()
                await self.core.close()

        return self.world.run(whole())


def rule(fault: dict[str, Any], **options: Any) -> dict[str, Any]:
    match = {"verb": "create", "resource": "configmaps"}
    return {"match": match, "fault": fault, **options}


def test_an_error_takes_the_place_of_the_answer_as_often_as_the_rule_says() -> None:
    stage = Stage(rule({"error": 409}, after=1, times=1))

    async def main() -> None:
        await stage.create("a")
        with pytest.raises(Conflict, match="injected by a fault rule"):
            await stage.create("b")
        assert await stage.client.get(ConfigMap, "b", missing=None) is None
        await stage.create("b")

    stage.run(main)


def test_a_lost_answer_is_of_a_write_that_was_done() -> None:
    stage = Stage(rule({"lost": True}))

    async def main() -> None:
        with pytest.raises(ConnectionLost):
            await stage.create("a")
        assert await stage.client.get(ConfigMap, "a", missing=None) is not None

    stage.run(main)


def test_a_refused_request_is_not_done() -> None:
    stage = Stage(rule({"refused": True}))

    async def main() -> None:
        with pytest.raises(ConnectionLost):
            await stage.create("a")
        assert await stage.client.get(ConfigMap, "a", missing=None) is None

    stage.run(main)


def test_a_request_waits_as_long_as_the_rule_says() -> None:
    stage = Stage(rule({"delay": 7}))

    async def main() -> float:
        before = stage.world.clock.monotonic()
        await stage.create("a")
        return stage.world.clock.monotonic() - before

    assert stage.run(main) >= 7


def test_a_watch_breaks_before_the_event_that_the_rule_meets() -> None:
    stage = Stage({"match": {"resource": "configmaps", "verb": "watch"}, "fault": {"cut": True}})

    async def main() -> None:
        watched = aiter(stage.client.watch(ConfigMap, namespace="default", since="0"))
        reading = asyncio.ensure_future(anext(watched))
        await stage.world.clock.sleep(1)
        await stage.create("a")
        assert (await reading).object.metadata.name == "a"  # the client has opened it again
        assert stage.director.report()[0]["dealt"] == 1

    stage.run(main)


def test_rules_are_replaced_and_reported_at_the_endpoint() -> None:
    stage = Stage()

    async def main() -> None:
        body = msgspec.json.encode({"rules": [rule({"error": 503})]})
        assert (await stage.faulty.handle(Request("POST", PATH, body=body, remote="127.0.0.1"))).status == 200
        with pytest.raises(ServiceUnavailable):
            await stage.create("a")
        shown: Any = await stage.faulty.handle(Request("GET", PATH, remote="::1"))
        assert msgspec.json.decode(shown.body)["rules"][0]["dealt"] == 1
        assert (await stage.faulty.handle(Request("DELETE", PATH, remote="127.0.0.1"))).status == 200
        await stage.create("a")

    stage.run(main)


def test_other_machines_cannot_change_rules() -> None:
    stage = Stage()

    async def main() -> None:
        for remote in ("10.0.0.7", "127.0.0.1.example.com"):
            assert (await stage.faulty.handle(Request("GET", PATH, remote=remote))).status == 403

    stage.run(main)


@pytest.mark.parametrize(
    ("rules", "problem"),
    [
        ({}, "rules"),
        ({"rules": [{"fault": {}}]}, "exactly one of error"),
        ({"rules": [{"fault": {"error": 418}}]}, "418 is not one of"),
        ({"rules": [{"fault": {"error": 500}, "match": {"verb": "fly"}}]}, "'fly' is not one of"),
        ({"rules": [{"fault": {"error": 500}, "probability": 2}]}, "not between 0 and 1"),
        ({"rules": [{"fault": {"rain": 1}}]}, "rain"),
    ],
)
def test_wrong_rules_are_refused(rules: Any, problem: str) -> None:
    with pytest.raises(RulesError, match=problem):
        parse(rules)
