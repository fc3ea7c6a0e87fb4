"""Flow control of a server: seats by requests, 429, what it tells of itself."""

from __future__ import annotations

import asyncio

import pytest
from tests.stage.api import Api, asking

from ostinato.server.core import Server
from ostinato.server.flow.control import FlowSettings
from ostinato.server.flow.estimate import Estimate, estimate
from ostinato.server.flow.levels import Level
from ostinato.server.request import Request, Response, Stream, User
from ostinato.server.request.route import parse
from ostinato.server.store.log_memory import MemoryLog
from ostinato.world import Simulation

MAPS = "/api/v1/namespaces/default/configmaps"


def _asked(path: str, user: str = "jane") -> Request:
    path, _, query = path.partition("?")
    return Request("GET", path, query, {"authorization": f"Bearer {user}"})


async def _allow_jane(api: Api) -> None:
    access = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"}
    subjects = [{"kind": "User", "name": "jane", "apiGroup": "rbac.authorization.k8s.io"}]
    assert (await api.post(access, {"metadata": {"name": "jane"}, "roleRef": role, "subjects": subjects})).code == 201


def _without_seats(api: Api) -> Level:
    """The priority level of jane's requests, whose seats are taken away for good."""
    api.server.flow.close()  # which would give it others after a while
    level = api.server.flow.levels.by_name["global-default"]
    level.set.configure(exempt=False, limit=0, queues=level.queues, length_limit=level.length_limit)
    return level


@asking
async def test_a_request_without_a_seat_waits_and_is_refused_with_429_and_retry_after(api: Api) -> None:
    await _allow_jane(api)
    level = _without_seats(api)
    began = api.server.world.clock.monotonic()
    answer = await api.server.handle(_asked(MAPS))
    assert isinstance(answer, Response)
    assert answer.status == 429
    assert answer.body == b"Too many requests, please try again later.\n"
    headers = dict(answer.headers)
    assert headers["Retry-After"] == "1"
    assert "X-Kubernetes-Pf-Flowschema-Uid" in headers
    assert api.server.world.clock.monotonic() - began == pytest.approx(15, abs=0.1)
    assert level.set.waiting == 0
    began = api.server.world.clock.monotonic()
    assert (await api.server.handle(_asked(f"{MAPS}?timeout=4s"))).status == 429
    assert api.server.world.clock.monotonic() - began == pytest.approx(1, abs=0.1)


@asking
async def test_an_administrator_is_served_when_others_have_no_seat(api: Api) -> None:
    api.server.flow.close()
    for level in api.server.flow.levels.by_name.values():
        if not level.exempt:
            level.set.configure(exempt=False, limit=0, queues=level.queues, length_limit=level.length_limit)
    assert (await api.get(MAPS)).code == 200


@asking
async def test_one_who_waits_is_served_when_a_seat_is_free(api: Api) -> None:
    await _allow_jane(api)
    level = _without_seats(api)
    waits = asyncio.ensure_future(api.server.handle(_asked(MAPS)))
    await api.server.world.clock.sleep(1)
    assert level.set.waiting == 1
    assert api.server.handle_now(_asked(f"{MAPS}/kube-root-ca.crt")) is None
    level.set.configure(exempt=False, limit=1, queues=level.queues, length_limit=level.length_limit)
    assert (await waits).status == 200
    assert level.set.idle
    assert level.set.seats == 0


@asking
async def test_one_who_goes_away_while_waiting_leaves_nothing_behind(api: Api) -> None:
    await _allow_jane(api)
    level = _without_seats(api)
    waits = asyncio.ensure_future(api.server.handle(_asked(MAPS)))
    await api.server.world.clock.sleep(1)
    waits.cancel()
    await asyncio.gather(waits, return_exceptions=True)
    assert (level.set.waiting, level.set.executing, level.set.seats) == (0, 0, 0)


@asking
async def test_a_watch_has_its_seat_only_until_it_has_begun(api: Api) -> None:
    answer = await api.server.handle(_asked(f"{MAPS}?watch=1", "admin"))
    assert isinstance(answer, Stream)
    assert all(level.set.idle for level in api.server.flow.levels.by_name.values())
    await answer.chunks.aclose()  # type: ignore[attr-defined]


@asking
async def test_levels_and_schemas_that_are_deleted_are_imagined_if_they_are_mandatory(api: Api) -> None:
    group = "/apis/flowcontrol.apiserver.k8s.io/v1"
    for plural in ("flowschemas", "prioritylevelconfigurations"):
        for item in (await api.get(f"{group}/{plural}")).body["items"]:
            await api.delete(f"{group}/{plural}/{item['metadata']['name']}")
    assert {"exempt", "catch-all"} <= set(api.server.flow.levels.by_name)
    assert (await api.get(MAPS)).code == 200
    await _allow_jane(api)
    assert (await api.server.handle(_asked(MAPS))).status == 200


def _server(settings: FlowSettings) -> tuple[Simulation, Server]:
    world = Simulation(seed=1)
    server = Server(world, MemoryLog(), flow=settings)
    server.authenticator.add("admin", User("admin", "u-1", ("system:masters",)))
    return world, server


def test_without_priority_and_fairness_the_number_of_requests_is_limited() -> None:
    world, server = _server(FlowSettings(enabled=False, most=1, most_mutating=1))

    async def main() -> None:
        await server.start()
        server.metrics.begin("GET")
        answer = await server.handle(Request("GET", "/version", "", {}))
        assert answer.status == 429
        assert dict(answer.headers)["Retry-After"] == "1"
        assert (await server.handle(_asked(MAPS, "admin"))).status == 200  # administrators are not limited
        server.metrics.end("GET", None, 200, 0)
        assert (await server.handle(Request("GET", "/version", "", {}))).status == 200
        await server.close()

    world.run(main())


@asking
async def test_lists_take_seats_by_their_size_and_writes_by_their_watchers(api: Api) -> None:
    for number in range(40):
        await api.post(MAPS, {"metadata": {"name": f"m-{number}"}, "data": {"v": "x" * 20_000}})
    resource = api.server.registry.get("", "v1", "configmaps")
    assert resource is not None

    def of(method: str, path: str) -> Estimate:
        path, _, query = path.partition("?")
        route = parse(method, path, watch="watch=1" in query)
        return estimate(Request(method, path, query), route, resource, 0)

    assert of("GET", f"{MAPS}/m-1") == Estimate()
    assert 7 <= of("GET", MAPS).initial <= 9
    assert of("GET", f"{MAPS}?limit=5").initial <= 2
    assert of("GET", f"{MAPS}?watch=1&resourceVersion=5") == Estimate()
    assert of("GET", f"{MAPS}?watch=1").initial > 5
    assert of("POST", MAPS) == Estimate()
    assert resource.collection is not None
    watchers = [resource.collection.hub.subscribe("") for _ in range(25)]
    watchers += [resource.collection.hub.subscribe("default/") for _ in range(10)]
    watchers += [resource.collection.hub.subscribe("default/m-1") for _ in range(5)]
    watchers += [resource.collection.hub.subscribe("other/") for _ in range(500)]
    assert of("PATCH", f"{MAPS}/m-1") == Estimate(1, 4, 0.005)
    watchers += [resource.collection.hub.subscribe("") for _ in range(160)]
    assert of("PATCH", f"{MAPS}/m-1") == Estimate(1, 10, 0.01)
    for watcher in watchers:
        watcher.close()


@asking
async def test_the_pages_for_debugging_have_the_columns_of_a_kube_apiserver(api: Api) -> None:
    async def page(name: str) -> list[str]:
        answer = await api.server.handle(_asked(f"/debug/api_priority_and_fairness/{name}", "admin"))
        assert isinstance(answer, Response)
        assert (answer.status, answer.content_type) == (200, "text/plain; charset=utf-8")
        return answer.body.decode().splitlines()

    levels = await page("dump_priority_levels")
    assert levels[0] == (
        "PriorityLevelName, ActiveQueues, IsIdle, IsQuiescing, WaitingRequests, ExecutingRequests, "
        "DispatchedRequests, RejectedRequests, TimedoutRequests, CancelledRequests"
    )
    assert [line.partition(",")[0] for line in levels[1:]] == sorted(api.server.flow.levels.by_name)
    assert levels[1] == (
        "catch-all,         0,            true,   false,       0,               0,                 0,                  "
        "0,                0,                0"
    )
    assert len(await page("dump_queues")) > 300
    await _allow_jane(api)
    _without_seats(api)
    waits = asyncio.ensure_future(api.server.handle(_asked(MAPS)))
    await api.server.world.clock.sleep(1)
    requests = await page("dump_requests?includeRequestDetails=1")
    assert "jane" in requests[1]
    assert "global-default" in requests[1]
    assert (await waits).status == 429
    assert (await api.server.handle(_asked("/debug/api_priority_and_fairness/nothing", "admin"))).status == 404


@asking
async def test_metrics_tell_of_seats_and_flows(api: Api) -> None:
    await api.get(MAPS)
    answer = await api.server.handle(_asked("/metrics", "admin"))
    assert isinstance(answer, Response)
    text = answer.body.decode()
    assert 'apiserver_flowcontrol_nominal_limit_seats{priority_level="workload-low"} 245' in text
    assert 'apiserver_flowcontrol_dispatched_requests_total{flow_schema="exempt",priority_level="exempt"}' in text
