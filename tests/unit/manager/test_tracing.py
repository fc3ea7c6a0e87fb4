"""Traces: what is shown of reconciles and requests."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import pytest
from tests.stage.controllers import ServerlessStage, without_server
from tests.stage.election import ElectionStage, staged

from ostinato.api.errors import Conflict
from ostinato.api.gvk import GroupResource
from ostinato.controllers import Channel, Request, Result, TerminalError
from ostinato.kinds.core_v1 import ConfigMap
from ostinato.manager import Manager, tracing
from ostinato.world import Simulation

CONFLICT = Conflict.of(GroupResource("", "pods"), "a", "the object has been modified")


class Tracer:
    """OpenTelemetry's, as far as it is used; `spans` has each that has ended, and the error that it was left with."""

    def __init__(self) -> None:
        self.spans: list[tuple[str, dict[str, str], BaseException | None]] = []

    @contextmanager
    def start_as_current_span(self, name: str, attributes: Mapping[str, str]) -> Iterator[None]:
        try:
            yield
        except BaseException as error:
            self.spans.append((name, dict(attributes), error))
            raise
        self.spans.append((name, dict(attributes), None))

    def span(self, name: str, attributes: Mapping[str, str]) -> AbstractContextManager[object]:
        return self.start_as_current_span(name, attributes)


@pytest.mark.parametrize(
    ("outcome", "error"),
    [
        (Result(), None),
        (Result(retry=True), None),
        (ValueError("no"), ValueError),
        (KeyError("no"), KeyError),
        (TerminalError("never"), TerminalError),
        (CONFLICT, None),
    ],
)
def test_a_reconcile_is_shown_with_its_wait_and_as_failed_if_it_has(
    outcome: Any, error: type[Exception] | None
) -> None:
    tracer = Tracer()

    async def reconcile(request: Request) -> Any:
        await simulation.clock.sleep(2)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    simulation = Simulation(1)

    async def main() -> None:
        stage = ServerlessStage(simulation, span=tracer.span)
        stage.channel.put("a")
        stage.channel.put("b")
        async with stage.running(stage.controller(reconcile)):
            await simulation.clock.sleep(4)

    simulation.run(main())
    shown = {attributes["request"]: (attributes["queued_seconds"], left) for _, attributes, left in tracer.spans[:2]}
    assert [shown[key][0] for key in ("a", "b")] == ["0.000000", "2.000000"]
    assert [type(left) for _, left in shown.values()] == [type(None) if error is None else error] * 2
    name, attributes, _ = tracer.spans[0]
    assert (name, attributes["controller"], attributes["why"]) == ("reconcile", "test", "channel")
    assert len(attributes["reconcile_id"]) == 36


@without_server
async def test_a_span_that_cannot_be_made_is_an_error_of_its_reconcile_alone(stage: ServerlessStage) -> None:
    def broken(name: str, attributes: Mapping[str, str]) -> AbstractContextManager[object]:
        raise RuntimeError("no exporter")

    async def reconcile(request: Request) -> None: ...

    other = ServerlessStage(stage.world, span=broken)
    other.channel = Channel()
    other.channel.put("a")
    async with other.running(other.controller(reconcile)) as task:
        await other.settle()
        assert not task.done()
        assert other.count("controller_runtime_reconcile_errors_total") > 0


@staged
async def test_requests_are_shown_until_their_answers_begin_and_watches_are_not(stage: ElectionStage) -> None:
    tracer = Tracer()
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(tracing, "spans", lambda: tracer.span)
        manager = Manager(world=stage.world, connect=lambda _: stage.transport)
        client = manager.client
    await client.get(ConfigMap, "a", missing=None)
    await client.list(ConfigMap, namespace="default", labels="secret=no")
    assert [(name, attributes["path"]) for name, attributes, _ in tracer.spans] == [
        ("GET request", "/api/v1/namespaces/default/configmaps/a"),
        ("GET request", "/api/v1/namespaces/default/configmaps"),
    ]
    tracer.spans.clear()
    manager.informers.of(ConfigMap)
    manager.informers.start()
    await manager.informers.synced(timeout=5)
    assert any(request.stream for request in stage.transport.requests)
    assert len(tracer.spans) == sum(not request.stream for request in stage.transport.requests) - 2
    await manager.informers.stop()


def test_without_a_tracer_nothing_is_wrapped(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(_: str) -> None:
        raise ImportError

    monkeypatch.setattr(tracing, "import_module", missing)
    transport: Any = object()
    assert tracing.traced(transport) is transport
