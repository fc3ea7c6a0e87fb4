"""What only the real world shows: sockets, signals, threads."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Coroutine, Iterator
from typing import Any

import aiohttp
import msgspec
import pytest
from tests.stage.server import started_server

from ostinato.client import Client
from ostinato.client.config.config import Config
from ostinato.client.transport.protocol import Request
from ostinato.controllers.runnable import Dependencies, Task
from ostinato.kinds.coordination_v1 import Lease
from ostinato.manager import LeaderElection, Manager, run, serve_together
from ostinato.manager.election.election import Election
from ostinato.manager.election.fence import Fence
from ostinato.manager.serving.endpoints import Endpoint, parse_address
from ostinato.manager.signals import stop_on_signals
from ostinato.server.in_process.transport import InProcessTransport
from ostinato.world import World
from ostinato.world.loop_task import LoopTask


class Unreachable:
    """A transport for managers that ask for nothing."""

    host = "nowhere"

    async def request(self, request: Request) -> Any:
        raise AssertionError(f"nothing is to be asked: {request}")

    async def websocket(self, request: Request, protocols: Any) -> Any:
        raise AssertionError

    async def close(self) -> None: ...


def alone(**options: Any) -> Manager:
    return Manager(connect=lambda _: Unreachable(), **options)  # type: ignore[arg-type, return-value]


def soon(work: Coroutine[Any, Any, None]) -> None:
    async def main() -> None:
        async with World.real().clock.timeout(20):
            await work

    asyncio.run(main())


async def ask(port: int, path: str, method: str = "GET") -> tuple[int, str]:
    async with aiohttp.ClientSession() as session, session.request(method, f"http://127.0.0.1:{port}{path}") as answer:
        return answer.status, await answer.text()


@pytest.mark.parametrize(
    ("address", "parsed"),
    [(":8080", ("", 8080)), ("127.0.0.1:0", ("127.0.0.1", 0)), ("[::1]:80", ("::1", 80)), ("a.b:1", ("a.b", 1))],
)
def test_addresses(address: str, parsed: tuple[str, int]) -> None:
    assert parse_address(address) == parsed


@pytest.mark.parametrize("address", ["8080", "a:", ":x", ":65536", ":-1", ":٣"])
def test_an_invalid_address_is_rejected(address: str) -> None:
    with pytest.raises(ValueError, match="is not a listen address"):
        Manager(health=address)


def test_health_and_metrics_are_served_from_start_to_end() -> None:
    async def play() -> None:
        manager = alone(health="127.0.0.1:0", metrics="127.0.0.1:0")
        manager.add_readiness_check("database", lambda: 1 / 0)
        serving = asyncio.create_task(manager.serve())
        await asyncio.sleep(0)
        await manager.elected()
        health, metrics = [endpoint.port for endpoint in manager._endpoints]
        assert await ask(health, "/healthz") == (200, "ok")
        assert await ask(health, "/healthz/") == (200, "ok")
        assert await ask(health, "/healthz/ping/") == (200, "ok")
        assert await ask(health, "/readyz") == (
            500,
            "[+]caches ok\n[-]database failed: reason withheld\nhealthz check failed\n",
        )
        for path in ("/readyz/database", "/readyz/database/"):
            assert await ask(health, path) == (500, "internal server error: division by zero\n")
        assert (await ask(health, "/healthz/database"))[0] == 404, "each endpoint has its own checks"
        assert (await ask(health, "/readyz?exclude=database"))[0] == 200
        assert (await ask(health, "/metrics"))[0] == 404
        assert (await ask(health, "/healthz", "POST"))[0] == 405
        status, text = await ask(metrics, "/metrics")
        assert status == 200
        assert "process_cpu_seconds_total" in text
        assert (await ask(metrics, "/"))[0] == 404
        manager.stop()
        await serving
        for port, path in ((health, "/healthz"), (metrics, "/metrics")):
            with pytest.raises(aiohttp.ClientConnectionError):
                await ask(port, path)

    soon(play())


@pytest.mark.parametrize("name", ["health", "metrics"])
def test_a_port_that_is_taken_ends_the_start_with_a_clear_error(name: str) -> None:
    async def play() -> None:
        async def nothing(path: str, query: Any) -> None: ...

        first = Endpoint("health", "127.0.0.1:0", nothing, World.real().clock)
        await first.stop()
        await first.start()
        with pytest.raises(OSError, match=f"cannot serve {name}: "):
            await alone(**{name: f"127.0.0.1:{first.port}"}).serve()
        await first.stop()

    soon(play())


def test_the_second_signal_exits_immediately() -> None:
    async def play() -> None:
        stops: list[str] = []
        codes: list[int] = []
        with stop_on_signals(lambda: stops.append("stop"), codes.append):
            for number in (signal.SIGTERM, signal.SIGINT):
                os.kill(os.getpid(), number)
                await asyncio.sleep(0.01)
        assert (stops, codes) == (["stop"], [1])

    soon(play())


def test_the_second_signal_is_handled_while_the_loop_is_blocked() -> None:
    async def play() -> None:
        codes: list[int] = []
        before = signal.getsignal(signal.SIGTERM)
        with stop_on_signals(lambda: None, codes.append):
            os.kill(os.getpid(), signal.SIGTERM)
            os.kill(os.getpid(), signal.SIGINT)
            assert codes == [1]
        assert signal.getsignal(signal.SIGTERM) == before

    soon(play())


def test_several_managers_in_one_process_end_together() -> None:
    said: list[str] = []

    def part(name: str, error: Exception | None = None) -> Task:
        async def work(_: Dependencies) -> None:
            try:
                await asyncio.sleep(0.05)
                if error is not None:
                    raise error
                await asyncio.sleep(100)
            finally:
                said.append(name)

        return Task(name, work)

    with pytest.raises(RuntimeError, match="broken"):
        run(alone().add(part("same name", RuntimeError("broken"))), alone().add(part("same name")))
    assert said == ["same name", "same name"]
    with pytest.raises(BaseExceptionGroup) as caught:
        run(alone().add(part("a", RuntimeError("one"))), alone().add(part("b", ValueError("two"))))
    assert {type(error) for error in caught.value.exceptions} == {RuntimeError, ValueError}


def test_managers_that_are_cancelled_together_stop_gracefully() -> None:
    said: list[str] = []

    async def work(_: Dependencies) -> None:
        try:
            await asyncio.sleep(100)
        finally:
            await asyncio.sleep(0.05)
            said.append("stopped")

    async def play() -> None:
        task = asyncio.create_task(serve_together(alone().add(Task("a", work))))
        await asyncio.sleep(0.1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    soon(play())
    assert said == ["stopped"]


@pytest.fixture
def nothing_frozen() -> Iterator[None]:
    """A manager unfreezes objects if nothing was frozen before it; the suite freezes its own."""
    gc.unfreeze()
    yield
    gc.freeze()


@pytest.mark.usefixtures("nothing_frozen")
def test_objects_loaded_before_the_caches_sync_are_frozen() -> None:
    loaded: list[object] = [[]]
    seen: list[bool] = []

    def is_looked_at(each: object) -> bool:
        return any(each is other for other in gc.get_objects())

    async def work(_: Dependencies) -> None:
        await asyncio.sleep(0)  # the same news woke who sets things aside
        came: list[object] = [loaded]
        seen.extend(is_looked_at(each) for each in (loaded[0], loaded[-1], came))
        manager.stop()

    def connect(_: str) -> Any:
        loaded.append([loaded])
        return Unreachable()

    manager = Manager(connect=connect).add(Task("a", work))
    run(manager)
    assert len(loaded) > 1
    assert seen == [False, False, True]
    assert is_looked_at(loaded[0])


@pytest.fixture
def default_thresholds() -> Iterator[None]:
    before = gc.get_threshold()
    gc.set_threshold(700, 10, 10)
    yield
    gc.set_threshold(*before)


@pytest.mark.usefixtures("default_thresholds")
def test_the_garbage_collector_looks_less_often_while_managers_run() -> None:
    before = gc.get_threshold()
    during: list[int] = []

    async def work(_: Dependencies) -> None:
        during.append(gc.get_threshold()[0])
        manager.stop()

    manager = alone().add(Task("a", work))
    run(manager)
    assert during[0] > before[0]
    assert gc.get_threshold() == before


def test_a_manager_speaks_http_to_the_server_of_its_configuration() -> None:
    config = Config(server="http://127.0.0.1:1", namespace="widgets", user_agent="me")
    manager = Manager(config, leader_election="widgets")
    assert manager.client.live.transport.host == "127.0.0.1:1"
    assert manager.client.live.namespace == "widgets"
    assert config == Config(server="http://127.0.0.1:1", namespace="widgets", user_agent="me"), "it is not changed"

    async def play() -> None:
        election = manager.connected("leader-election")
        assert ("User-Agent", "me/leader-election") in election.transport._headers.fixed  # type: ignore[attr-defined]
        await election.close()
        await manager._connections.close()

    soon(play())


PROGRAM = """
    import asyncio
    from ostinato.controllers.runnable import Task
    from ostinato.manager import Manager

    class Transport:
        host = "nowhere"
        async def close(self): ...

    async def work(dependencies):
        print("works", flush=True)
        try:
            await asyncio.sleep(100)
        finally:
            print("stops", flush=True)
            await asyncio.sleep({stop_takes})
            print("stopped", flush=True)

    Manager(connect=lambda _: Transport()).add(Task("work", work)).run()
    print("the end", flush=True)
"""


@pytest.mark.parametrize("signals", [1, 2])
def test_a_program_stops_at_a_signal_and_leaves_at_a_second(signals: int) -> None:
    program = textwrap.dedent(PROGRAM).format(stop_takes=0.1 if signals == 1 else 100)
    process = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "works\n"
    process.send_signal(signal.SIGTERM)
    assert process.stdout.readline() == "stops\n"
    if signals == 2:
        process.send_signal(signal.SIGTERM)
    code = process.wait(10)
    rest = process.stdout.read()
    process.stdout.close()
    assert (code, rest) == ((0, "stopped\nthe end\n") if signals == 1 else (1, ""))


class LeaseServer:
    """Serves one lease, from whatever thread it is asked."""

    host = "lease"

    def __init__(self) -> None:
        self.lease: dict[str, Any] | None = None
        self.version = 0
        self.closed = 0

    async def request(self, request: Request) -> Any:
        if request.method == "GET" and self.lease is None:
            status = {"kind": "Status", "status": "Failure", "reason": "NotFound", "code": 404}
            return Answered(404, {**status, "details": {"name": "widgets"}})
        if request.method != "GET":
            assert isinstance(request.body, bytes)
            self.version += 1
            self.lease = msgspec.json.decode(request.body)
            assert self.lease is not None
            self.lease["metadata"]["resourceVersion"] = str(self.version)
        return Answered(200, self.lease)

    async def websocket(self, request: Request, protocols: Any) -> Any:
        raise AssertionError

    async def close(self) -> None:
        self.closed += 1


class Answered:
    def __init__(self, status: int, body: Any) -> None:
        self.status = status
        self.headers = {"content-type": "application/json"}
        self.warnings: list[str] = []
        self._body = msgspec.json.encode(body)

    async def read(self) -> bytes:
        return self._body


def test_an_election_on_a_server_in_the_same_process_stays_on_its_loop() -> None:
    async def play() -> None:
        world = World.real()
        async with started_server(world) as server:
            options = LeaderElection(name="widgets", own_thread=False, trust_absence=True)

            def manager() -> Manager:
                return Manager(
                    connect=lambda purpose: InProcessTransport(server, deadline=purpose.deadline),
                    leader_election=options,
                    world=world,
                )

            for _ in range(2):
                leader = manager()
                serving = asyncio.create_task(leader.serve())
                await asyncio.sleep(0)
                await leader.elected()
                assert leader.is_leader
                leader.stop()
                await serving
            client = Client(InProcessTransport(server), world=world, namespace="default")
            lease = await client.get(Lease, "widgets")
            assert (lease.spec.holder_identity, lease.spec.lease_transitions) == ("", 1)

    soon(play())


def test_a_task_on_this_loop_behaves_as_a_thread_does() -> None:
    async def play() -> None:
        async def answer() -> int:
            return 42

        async def forever() -> None:
            await asyncio.get_running_loop().create_future()

        async def fail() -> None:
            raise ValueError("broken")

        assert await LoopTask("a", answer).join() == 42
        stopped = LoopTask("b", forever)
        called: list[int] = []
        stopped.call_soon(called.append, 1)
        await asyncio.sleep(0)
        stopped.stop()
        assert await stopped.join() is None
        assert called == [1]
        with pytest.raises(RuntimeError, match="b has ended"):
            stopped.call_soon(called.append, 2)
        with pytest.raises(ValueError, match="broken"):
            await LoopTask("c", fail).join()

    soon(play())


def test_a_blocked_loop_does_not_cost_the_lease() -> None:
    class Heard:
        def __init__(self) -> None:
            self.leads = asyncio.Event()
            self.leaders: list[str] = []

        def leader_seen(self, identity: str) -> None:
            self.leaders.append(identity)

        def elected(self, lease: Lease) -> None:
            self.leads.set()

    async def play() -> None:
        world, server, heard = World.real(), LeaseServer(), Heard()
        options = LeaderElection(
            name="widgets",
            namespace="default",
            identity="me",
            lease_duration=1,
            renew_deadline=0.8,
            retry_period=0.1,
            trust_absence=True,
        )
        fence = Fence(world.clock)
        election = Election(options, lambda: Client(server, world=world), world, fence, heard)
        election.start()
        await heard.leads.wait()
        assert heard.leaders == ["me"]
        before = server.version
        time.sleep(1.2)  # noqa: ASYNC251 - a reconciler that blocks everything
        assert server.version > before + 5
        assert election.is_leader
        election.check()
        await election.resign()
        assert not election.is_leader
        assert server.lease is not None
        assert server.lease["spec"]["holderIdentity"] == ""
        assert server.closed == 1
        await election.resign()

    soon(play())
