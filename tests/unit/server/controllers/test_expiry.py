"""Events go an hour after they were last written."""

from __future__ import annotations

from typing import Any

from tests.stage.api import Api, asking

from ostinato.server.core import Server
from ostinato.server.request import User
from ostinato.server.store.log_sqlite import SQLiteLog
from ostinato.world import Simulation

_EVENTS = "/api/v1/namespaces/default/events"


def _event(name: str) -> dict[str, Any]:
    return {"metadata": {"name": name}, "involvedObject": {"namespace": "default"}}


@asking
async def test_an_event_expires_an_hour_after_its_last_write(api: Api) -> None:
    clock = api.server.world.clock
    await api.post(_EVENTS, _event("a"))
    await api.post(_EVENTS, _event("b"))
    await clock.sleep(3000)
    await api.merge(f"{_EVENTS}/b", {"count": 2})
    await clock.sleep(610)
    assert (await api.get(f"{_EVENTS}/a")).code == 404
    assert (await api.get("/apis/events.k8s.io/v1/namespaces/default/events/b")).code == 200
    await clock.sleep(3000)
    assert (await api.get(f"{_EVENTS}/b")).code == 404


@asking
async def test_other_objects_stay(api: Api) -> None:
    await api.post("/api/v1/namespaces/default/configmaps", {"metadata": {"name": "a"}})
    await api.post(_EVENTS, _event("a"))
    await api.delete(f"{_EVENTS}/a")
    await api.server.world.clock.sleep(10_000)
    assert (await api.get("/api/v1/namespaces/default/configmaps/a")).code == 200


def test_events_of_an_earlier_run_go_too(tmp_path: Any) -> None:
    simulation = Simulation(seed=1)

    async def run(*events: str, then: float) -> list[str]:
        server = Server(simulation, SQLiteLog(tmp_path / "store", simulation))
        server.authenticator.add("admin", User("admin", groups=("system:masters",)))
        await server.start()
        api = Api(server)
        for name in events:
            await api.post(_EVENTS, _event(name))
        await simulation.clock.sleep(then)
        left = [item["metadata"]["name"] for item in (await api.get(_EVENTS)).body["items"] or ()]
        await server.close()
        return left

    async def main() -> None:
        assert await run("a", then=2000) == ["a"]
        assert await run("b", then=2000) == ["b"]
        assert await run(then=2000) == []

    simulation.run(main())
