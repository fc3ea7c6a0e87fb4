"""After everything that can go wrong the cache equals the server, and an idle hour lists nothing."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
import pytest
from tests.stage.transport import Streamed, scripted
from tests.unit.cache.running import Recorder, key, names, simulate, state, truth, with_informer
from tests.unit.cache.scripted import ScriptedServer

from ostinato.api.errors import APIError, Expired, Gone, InternalError, Timeout, TooManyRequests
from ostinato.cache import Added, Deleted, Event, FeedOptions, Informer, ReflectorOptions, Updated, by_field
from ostinato.cache.own_writes.expectations import StaleCache, Written, wait_for
from ostinato.client import Client
from ostinato.client.list_watch import ERROR, INITIAL_EVENTS_END, ListOptions, RawEvent, WatchOptions
from ostinato.client.transport.protocol import ConnectionLost, Request
from ostinato.kinds.core_v1 import ConfigMap, Pod
from ostinato.world import Rng, Simulation


def status(error: APIError) -> RawEvent:
    return RawEvent(ERROR, msgspec.json.encode(error.to_dict()))


async def idle_hour(simulation: Simulation, server: ScriptedServer) -> None:
    """Nothing happens; watches end after their time, and bookmarks come once a minute."""
    asked = len(server.asked)
    for minute in range(60):
        await simulation.clock.sleep(60)
        server.bookmark()
        if minute % 7 == 6:
            await simulation.clock.sleep(0.01)
            server.end_watches()
    new = server.asked[asked:]
    listed = [each for each in new if isinstance(each, ListOptions) and each.limit != 1]
    assert listed == [], "a server that was silent before is asked whether it is where it was, and for nothing else"
    assert all(getattr(each, "send_initial_events", None) is None for each in new), "an idle hour streams nothing"
    assert len([each for each in new if isinstance(each, WatchOptions)]) <= 9


def faulty(happens: Callable[[Simulation, ScriptedServer], Awaitable[Any]], **options: Any) -> None:
    async def scenario(simulation: Simulation, server: ScriptedServer, informer: Informer) -> None:
        await happens(simulation, server)
        await simulation.clock.sleep(200)
        assert state(informer) == truth(server)
        assert informer.resource_version == informer.feeds[0].store.resource_version
        await idle_hour(simulation, server)
        assert state(informer) == truth(server)

    for streaming in (True, False):
        with_informer(scenario, FeedOptions(reflector=ReflectorOptions(streaming=streaming)), **options)


def test_a_server_that_is_paused_without_a_word_is_noticed_and_nothing_is_listed() -> None:
    async def happens(simulation: Simulation, server: ScriptedServer) -> None:
        server.bookmark()
        await simulation.clock.sleep(0.1)
        before = len(server.lists), len(server.watches)
        server.pause()
        server.put("d")
        server.delete("a")
        await simulation.clock.sleep(75)
        server.resume()
        await simulation.clock.sleep(1)
        assert len(server.lists) == before[0]
        assert len(server.watches) == before[1] + 1
        assert server.watches[-1].send_initial_events is None

    faulty(happens)


def test_a_connection_that_is_cut_at_any_byte_of_an_event_loses_and_repeats_nothing() -> None:
    def line(kind: str, name: str, version: int, **metadata: Any) -> bytes:
        described = {"name": name, "namespace": "default", "uid": name, "resourceVersion": str(version), **metadata}
        body = {"kind": "ConfigMap", "apiVersion": "v1", "metadata": described}
        return msgspec.json.encode({"type": kind, "object": body}) + b"\n"

    end = line("BOOKMARK", "", 10, annotations={INITIAL_EVENTS_END: "true"})
    told = [(11, line("ADDED", "b", 11)), (12, line("MODIFIED", "a", 12)), (13, line("DELETED", "b", 13))]

    def after(version: int) -> bytes:
        return b"".join(each for number, each in told if number > version)

    for cut in range(len(after(10)) + 1):
        simulation = Simulation(1)

        def script(request: Request, cut: int = cut) -> Streamed:
            query = dict(request.query)
            if "sendInitialEvents" in query:
                return Streamed(line("ADDED", "a", 9) + end + after(10)[:cut], end=ConnectionLost("cut"))
            return Streamed(after(int(query["resourceVersion"])), hangs=True)

        client, transport = scripted(simulation, script)
        events = Recorder()

        async def main(simulation: Simulation = simulation, client: Client = client, events: Recorder = events) -> None:
            informer = Informer([client.list_watch(ConfigMap)], simulation)
            informer.add_handler(events)
            informer.start()
            await simulation.clock.sleep(5)
            assert state(informer) == {"default/a": "12"}
            await informer.stop()

        simulation.run(main())
        assert events.summaries == ["initial a", "added b", "updated a", "deleted b"], f"cut at {cut}"
        assert len(transport.requests) == 2


@pytest.mark.parametrize("error", [Expired.of("too old"), Gone.of("too old")], ids=repr)
@pytest.mark.parametrize("where", ["answer", "stream"])
def test_both_forms_of_too_old(error: APIError, where: str) -> None:
    async def happens(simulation: Simulation, server: ScriptedServer) -> None:
        server.dropping = True
        server.put("a", spec={"x": 1})
        server.put("d")
        server.delete("b")
        server.dropping = False
        server.expire()
        if where == "stream":
            server.send(status(error))
        else:
            server.watch_errors.append(error)
            server.bookmark(version=103)
            server.end_watches()

    faulty(happens)


def test_a_server_restarted_with_an_older_state() -> None:
    async def happens(simulation: Simulation, server: ScriptedServer) -> None:
        server.put("x")
        server.put("y")
        await simulation.clock.sleep(1)
        server.cut()
        server.objects = {key("a"): server.objects[key("a")]}
        server.version = 101
        server.history.clear()
        await simulation.clock.sleep(60)
        server.bookmark()
        await simulation.clock.sleep(10)

    faulty(happens)


def test_writes_of_a_restored_server_with_reused_resource_versions_are_cached() -> None:
    async def scenario(simulation: Simulation, server: ScriptedServer, informer: Informer) -> None:
        uid = server.put("x", spec={"nodeName": "before"})["metadata"]["uid"]
        version = server.version
        server.put("y")
        await simulation.clock.sleep(1)
        events = Recorder()
        informer.add_handler(events)
        await simulation.clock.sleep(1)
        events.items.clear()
        server.dropping = True  # a watch from a later version is told nothing of this
        server.version = version - 1
        del server.objects[key("x")], server.objects[key("y")]
        server.put("x", spec={"nodeName": "after"}, metadata={"uid": uid})
        assert server.version == version
        server.bookmark()
        await simulation.clock.sleep(5)
        assert state(informer) == truth(server)
        assert informer.lister(Pod).get(key("x")).spec.node_name == "after"
        assert {"gone x", "added x", "gone y"} <= set(events.summaries)
        assert {"gone a", "added a"} <= set(events.summaries), (
            "what was done about it may be lost, though it is as it was"
        )

    with_informer(scenario)


def test_a_suspected_restore_without_a_watch_is_kept_and_ends_all_waits() -> None:
    async def scenario(simulation: Simulation, server: ScriptedServer, informer: Informer) -> None:
        feed = informer.feeds[0]
        server.put("x")
        await simulation.clock.sleep(1)
        server.cut()
        server.watch_errors.append(ConnectionLost("there is no network"))
        await simulation.clock.sleep(0.1)
        assert not feed.reflector.is_watching
        lost = feed.expectations.expect(Written(key("mine"), "999"))
        informer.suspect_restore("somebody knows")
        server.dropping = True
        server.put("restored")
        server.version += 10  # it has gone on since
        await simulation.clock.sleep(10)
        assert state(informer) == truth(server)
        assert lost.satisfied
        assert not feed.reflector.restore_suspected
        asked = len(server.asked)
        await simulation.clock.sleep(60)
        assert len(server.asked) == asked, "once is enough"

    with_informer(scenario)


def test_a_write_is_not_lost_as_long_as_nothing_can_be_watched() -> None:
    async def scenario(simulation: Simulation, server: ScriptedServer, informer: Informer) -> None:
        events = Recorder()
        informer.add_handler(events)
        await simulation.clock.sleep(1)
        events.items.clear()
        server.cut()
        server.watch_errors.extend(ConnectionLost("there is no network") for _ in range(12))
        written = server.put("mine")["metadata"]["resourceVersion"]
        late = informer.feeds[0].expectations.expect(Written(key("mine"), written))
        while server.watch_errors:
            with pytest.raises(StaleCache):
                await wait_for([late], 10, simulation.clock)
        assert simulation.clock.monotonic() > 100
        await wait_for([late], 90, simulation.clock)
        assert state(informer) == truth(server)
        assert events.summaries == ["added mine"], "and nothing was listed anew"

    with_informer(scenario)


def test_a_server_restarted_with_a_newer_state() -> None:
    async def happens(simulation: Simulation, server: ScriptedServer) -> None:
        server.cut()
        server.dropping = True
        server.version = 5000
        server.put("d")
        server.delete("a")
        server.dropping = False
        server.expire()

    faulty(happens)


def test_storms_of_too_many_requests() -> None:
    async def happens(simulation: Simulation, server: ScriptedServer) -> None:
        for _ in range(10):
            server.watch_errors += [TooManyRequests.of("slow down", 1)] * 3
            server.list_errors += [TooManyRequests.of("slow down", 1)] * 3
            server.send(status(TooManyRequests.of("slow down", 1)))
            server.put("a", spec={"x": server.version})
            await simulation.clock.sleep(20)
        server.list_errors.clear()
        server.watch_errors.clear()

    faulty(happens)


def test_a_state_that_a_server_behind_others_has_not_seen() -> None:
    async def happens(simulation: Simulation, server: ScriptedServer) -> None:
        for errors in (server.watch_errors, server.list_errors):
            errors.append(Timeout.resource_version_too_large(103, 90))
        server.send(status(Expired.of("too old")))
        await simulation.clock.sleep(30)
        server.list_errors.clear()

    faulty(happens)


def test_clocks_that_jump_change_nothing() -> None:
    """Everything waits on the monotonic clock; the date may be anything."""
    simulation = Simulation(1)
    machine = simulation.machine("odd", offset=-1e8, wall_rate=50.0)

    async def main() -> None:
        server = ScriptedServer(machine)
        server.put("a")
        informer = Informer([server], machine)
        informer.start()
        await informer.synced(timeout=1)
        asked = len(server.asked)
        await machine.clock.sleep(60)
        server.put("b")
        await machine.clock.sleep(1)
        assert names(informer) == ["a", "b"]
        assert len(server.asked) == asked
        await informer.stop()

    simulation.run(main())


def test_a_namespace_of_very_many_objects() -> None:
    async def scenario(simulation: Simulation, server: ScriptedServer) -> None:
        count = int(os.environ.get("OSTINATO_MANY_OBJECTS", "100000"))  # a million takes minutes
        for number in range(count):
            server.put(f"pod-{number}", spec={"nodeName": f"node-{number % 100}"})
        informer = Informer([server], simulation, FeedOptions(indexes=(by_field("spec.nodeName"),)))
        events = 0

        def count_events(event: Event) -> None:
            nonlocal events
            events += 1

        registration = informer.add_handler(count_events)
        informer.start()
        await registration.synced(timeout=10)
        assert events == len(informer.store) == count
        assert len(informer.store.index_keys("spec.nodeName", "node-7")) == count // 100
        await informer.stop()

    simulate(scenario)


class Mirror:
    """A handler that keeps a copy of the store from nothing but what it is told."""

    def __init__(self) -> None:
        self.known: dict[str, tuple[str, str]] = {}  # uid and version of each key

    def __call__(self, event: Event) -> None:
        name = str(event.key)
        entry = event.object
        match event:
            case Added():
                assert name not in self.known, f"{name} was added twice"
                self.known[name] = (entry.uid, entry.resource_version)
            case Updated(old=old):
                assert self.known[name] == (old.uid, old.resource_version), f"{name} was updated from another state"
                assert entry.uid == old.uid
                self.known[name] = (entry.uid, entry.resource_version)
            case Deleted():
                assert self.known.pop(name)[0] == entry.uid, f"another {name} was deleted"

    @property
    def state(self) -> dict[str, str]:
        return {name: version for name, (_, version) in self.known.items()}


class Chaos:
    """Changes objects, and breaks things, as a seed says."""

    def __init__(self, simulation: Simulation, server: ScriptedServer, rng: Rng) -> None:
        self.simulation = simulation
        self.server = server
        self.rng = rng

    async def run(self, steps: int) -> None:
        for _ in range(steps):
            self._change()
            if self.rng.random() < 0.15:
                await self._break()
            if self.rng.random() < 0.5:
                await self.simulation.clock.sleep(self.rng.random() * 3)

    def _change(self) -> None:
        server, name = self.server, self.rng.choice("abcdefghij")
        if key(name) not in server.objects:
            server.put(name)
            return
        match self.rng.randrange(4):
            case 0:
                server.delete(name)
            case 1:
                server.delete(name)
                server.put(name)
            case _:
                server.put(name, spec={"x": self.rng.randrange(100)})

    async def _break(self) -> None:
        server, rng = self.server, self.rng
        match rng.randrange(11):
            case 0:
                server.end_watches()
            case 1:
                server.cut()
            case 2:
                server.expire()
                server.cut()
            case 3:
                server.dropping = True
                for _ in range(rng.randrange(1, 4)):
                    self._change()
                server.dropping = False
                server.expire()
                server.send(status(Expired.of("too old")))
                server.streams.clear()
            case 4:
                server.pause()
                for _ in range(rng.randrange(1, 4)):
                    self._change()
                await self.simulation.clock.sleep(rng.random() * 100)
                server.resume()
            case 5:
                server.watch_errors += [TooManyRequests.of("slow down", rng.randrange(3))] * rng.randrange(1, 4)
            case 6:
                server.list_errors += [InternalError.of("oops")] * rng.randrange(1, 4)
            case 7:
                server.watch_errors += [ConnectionLost("refused")] * rng.randrange(1, 4)
            case 8:
                server.send(status(InternalError.of("oops")))
                server.streams.clear()
            case 9:
                server.streaming = rng.random() < 0.5
            case _:
                server.bookmark()


@pytest.mark.parametrize("seed", range(30))
def test_whatever_happens_the_cache_and_every_handler_end_with_the_state_of_the_server(
    seed: int, caplog: pytest.LogCaptureFixture
) -> None:
    simulation = Simulation(seed, interleave=True)

    async def main() -> None:
        server = ScriptedServer(simulation)
        for name in "abc":
            server.put(name)
        informer = Informer([server], simulation, FeedOptions(indexes=(by_field("spec.x"),)))
        early, late, slow = Mirror(), Mirror(), Mirror()

        async def slowly(event: Event) -> None:
            await simulation.clock.sleep(0.01)
            slow(event)

        informer.add_handler(early)
        informer.add_handler(slowly, resync=7)
        informer.start()
        chaos = Chaos(simulation, server, simulation.rng.fork("chaos"))
        await chaos.run(40)
        informer.add_handler(late, predicate=lambda entry: True)
        await chaos.run(40)
        server.list_errors.clear()
        server.watch_errors.clear()
        server.resume()
        server.bookmark()
        await simulation.clock.sleep(300)
        assert state(informer) == truth(server)
        assert early.state == late.state == slow.state == truth(server)
        assert [each for each in caplog.messages if "handler failed" in each] == [], "a handler events nonsense"
        assert len(server.watches) >= 3
        indexed = {
            str(each)
            for value in informer.store.index_values("spec.x")
            for each in informer.store.index_keys("spec.x", value)
        }
        assert indexed == {str(each) for each, value in server.objects.items() if "spec" in value}
        await informer.stop()
        assert server.streams == []

    simulation.run(main())


def test_a_run_with_faults_is_the_same_every_time() -> None:
    def run() -> list[str]:
        simulation = Simulation(7)
        events = Recorder()

        async def main() -> None:
            server = ScriptedServer(simulation)
            informer = Informer([server], simulation)
            informer.add_handler(events)
            informer.start()
            await Chaos(simulation, server, simulation.rng.fork("chaos")).run(50)
            await simulation.clock.sleep(100)
            await informer.stop()

        simulation.run(main())
        return events.summaries

    first = run()
    assert first
    assert run() == first
