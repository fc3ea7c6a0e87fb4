"""How events reach a backend: batches, bounds, retries, and a writer that ends."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

import pytest

from ostinato.server.audit.backends import Delivery, WebhookBackend
from ostinato.server.audit.counters import AuditCounters
from ostinato.server.audit.event import Event
from ostinato.server.audit.settings import AuditWebhookSettings, Batching, Truncation
from ostinato.server.webhooks.target import CallError, HttpStatusError, Target
from ostinato.world import Simulation

HEAD = {"auditID": "i", "requestURI": "/", "verb": "get", "user": {}, "sourceIPs": [], "userAgent": "a"}
TARGET = Target("h", 443, "h", "/", None, b"")


def _event(number: int = 0, size: int = 0) -> Event:
    body = json.dumps({"x": "y" * size}).encode() if size else None
    return Event(
        head={**HEAD, "auditID": str(number)},
        stage="ResponseComplete",
        timestamp="t",
        received="t",
        level=3,
        annotations={},
        object_ref=None,
        impersonated=None,
        constraint="",
        status=None,
        request_object=body,
        response=None,
        sensitive=False,
        omit_managed_fields=False,
    )


class Kept:
    name = "kept"

    def __init__(self) -> None:
        self.batches: list[list[str]] = []
        self.fails: BaseException | None = None

    async def send(self, events: Sequence[Event]) -> None:
        if self.fails is not None:
            error, self.fails = self.fails, None
            raise error
        self.batches.append([event.head["auditID"] for event in events])

    async def close(self) -> None: ...


def _run(test: Callable[[Simulation], Coroutine[Any, Any, None]]) -> None:
    simulation = Simulation(seed=1)
    simulation.run(test(simulation))


def test_a_batch_is_sent_when_it_is_full_or_old() -> None:
    async def test(world: Simulation) -> None:
        kept = Kept()
        delivery = Delivery(kept, "batch", Batching(max_size=2, max_wait=30.0), world.clock, AuditCounters())
        for number in range(3):
            assert await delivery.process(_event(number))
        await world.clock.sleep(1)
        assert kept.batches == [["0", "1"]]
        await world.clock.sleep(30)
        assert kept.batches == [["0", "1"], ["2"]]
        await delivery.close()

    _run(test)


def test_batches_are_throttled() -> None:
    async def test(world: Simulation) -> None:
        kept = Kept()
        delivery = Delivery(kept, "batch", Batching(max_size=1, qps=1.0, burst=2), world.clock, AuditCounters())
        for number in range(5):
            await delivery.process(_event(number))
        await world.clock.sleep(0.5)
        assert len(kept.batches) == 2
        await world.clock.sleep(2)
        assert len(kept.batches) == 4
        await delivery.close()
        assert len(kept.batches) == 5  # the end waits for nothing

    _run(test)


def test_a_full_buffer_drops_events_and_logs_it(caplog: pytest.LogCaptureFixture) -> None:
    async def test(world: Simulation) -> None:
        kept, counters = Kept(), AuditCounters()
        batching = Batching(buffer_size=3, max_size=10, max_wait=30.0)
        delivery = Delivery(kept, "batch", batching, world.clock, counters)
        assert [await delivery.process(_event(number)) for number in range(5)] == [True] * 5
        await delivery.close()
        assert kept.batches == [["0", "1", "2"]]
        assert counters.errors["kept"] == 2

    with caplog.at_level(logging.ERROR):
        _run(test)
    assert "audit buffer full, events dropped backend=kept events=1" in caplog.text


def test_requests_that_wait_together_are_written_together() -> None:
    async def test(world: Simulation) -> None:
        kept = Kept()
        delivery = Delivery(kept, "blocking", Batching(), world.clock, AuditCounters())
        assert all(await asyncio.gather(*(delivery.process(_event(number)) for number in range(10))))
        assert sum(map(len, kept.batches)) == 10
        assert len(kept.batches) < 10
        await delivery.close()

    _run(test)


def test_a_failed_writer_is_logged_and_restarted(caplog: pytest.LogCaptureFixture) -> None:
    async def test(world: Simulation) -> None:
        kept = Kept()
        delivery = Delivery(kept, "batch", Batching(), world.clock, AuditCounters())
        kept.fails = RuntimeError("unexpected")
        await delivery.process(_event(1))
        await world.clock.sleep(1)
        delivery._fill = None  # type: ignore[assignment,method-assign]
        await delivery.process(_event(2))
        await world.clock.sleep(1)
        del delivery._fill
        await delivery.process(_event(3))
        await world.clock.sleep(1)
        assert kept.batches[-1][-1] == "3"
        await delivery.close()

    with caplog.at_level(logging.ERROR):
        _run(test)
    assert "audit backend failed, events lost backend=kept events=1 error=unexpected" in caplog.text
    assert "audit writer ended, restarting backend=kept" in caplog.text


def test_the_webhook_gets_a_list_of_events_and_is_tried_again() -> None:
    async def test(world: Simulation) -> None:
        asked: list[bytes] = []

        async def call(target: Target, body: bytes, seconds: int) -> bytes:
            asked.append(body)
            if len(asked) == 1:
                raise CallError("connection refused")
            if len(asked) == 2:
                raise HttpStatusError("overloaded", 429)
            return b"{}"

        backend = WebhookBackend(AuditWebhookSettings(backend=TARGET), world, call)
        before = world.clock.monotonic()
        await backend.send([_event(1), _event(2)])
        assert len(asked) == 3
        assert 25 <= world.clock.monotonic() - before <= 30  # ten seconds, then fifteen, each up to a fifth longer
        sent = json.loads(asked[0])
        assert (sent["kind"], sent["apiVersion"]) == ("EventList", "audit.k8s.io/v1")
        assert [event["auditID"] for event in sent["items"]] == ["1", "2"]

    _run(test)


def test_the_webhook_is_not_tried_again_when_it_refuses() -> None:
    async def test(world: Simulation) -> None:
        async def call(target: Target, body: bytes, seconds: int) -> bytes:
            raise HttpStatusError("no", 403)

        backend = WebhookBackend(AuditWebhookSettings(backend=TARGET), world, call)
        with pytest.raises(HttpStatusError):
            await backend.send([_event(1)])
        assert world.clock.monotonic() == 0

    _run(test)


def test_events_that_are_too_large_lose_their_objects_or_are_dropped(caplog: pytest.LogCaptureFixture) -> None:
    async def test(world: Simulation) -> None:
        asked: list[Any] = []

        async def call(target: Target, body: bytes, seconds: int) -> bytes:
            asked.append(json.loads(body)["items"])
            return b"{}"

        truncation = Truncation(max_event_size=500, max_batch_size=600)
        backend = WebhookBackend(AuditWebhookSettings(backend=TARGET, truncation=truncation), world, call)
        large = _event(2, 1000)
        huge = Event(**{f: getattr(large, f) for f in large.__struct_fields__} | {"annotations": {"a": "b" * 600}})
        await backend.send([_event(1, 10), large, huge, _event(4, 100)])
        assert [[event["auditID"] for event in items] for items in asked] == [["1", "2"], ["4"]]
        truncated = asked[0][1]
        assert "requestObject" not in truncated
        assert truncated["annotations"] == {"audit.k8s.io/truncated": "true"}

    with caplog.at_level(logging.ERROR):
        _run(test)
    assert "too large after truncation, dropped" in caplog.text


def test_an_event_after_close_is_logged_and_not_awaited(caplog: pytest.LogCaptureFixture) -> None:
    async def test(world: Simulation) -> None:
        delivery = Delivery(Kept(), "blocking-strict", Batching(), world.clock, AuditCounters())
        assert await delivery.process(_event(1))
        await delivery.close()
        assert not await delivery.process(_event(2))

    with caplog.at_level(logging.ERROR):
        _run(test)
    assert "audit event after close, lost backend=kept" in caplog.text
