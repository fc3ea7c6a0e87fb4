"""Several servers on one store, in simulation and on etcd: storms of writes, and what one acknowledges on the others.

`OSTINATO_SEEDS=N`: repeat each test.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import aclosing
from typing import Any

import msgspec
import pytest
from tests.etcd_cluster import EtcdCluster, needs_etcd
from tests.stage.api import Answer, Api
from tests.stage.shared_store import start_all, start_servers

from ostinato.etcd import EtcdClient
from ostinato.server.controllers.server_endpoints import INTERVAL, LEASE_SECONDS, RELEASE_SECONDS
from ostinato.server.core import Server
from ostinato.server.request import Request, Response, Stream
from ostinato.server.store.etcd.index import EtcdIndex
from ostinato.server.store.etcd.options import EtcdOptions
from ostinato.world import Simulation, World

_DEFAULT = "/api/v1/namespaces/default"
_DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


Test = Callable[[list[Api]], Coroutine[Any, Any, None]]
SEEDS = range(int(os.environ.get("OSTINATO_SEEDS", "1")))


@pytest.fixture(scope="module")
def etcd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EtcdCluster]:
    with EtcdCluster.start(tmp_path_factory.mktemp("etcd")) as cluster:
        yield cluster


def servers(count: int, *, stores: Sequence[str] = ("simulated", "etcd")) -> Callable[[Test], Callable[..., None]]:
    """Run a test with APIs of several servers on one store: in simulation, for some seeds, and on etcd."""

    def decorate(test: Test) -> Callable[..., None]:
        cases = [
            pytest.param(store, seed, marks=needs_etcd if store == "etcd" else ()) for store in stores for seed in SEEDS
        ]

        @pytest.mark.parametrize(("store", "seed"), cases)
        def run(store: str, seed: int, request: pytest.FixtureRequest) -> None:
            if store == "etcd":
                asyncio.run(on_etcd(request.getfixturevalue("etcd"), count, f"/{test.__name__}/{seed}", test))
            else:
                world = Simulation(seed=seed)
                world.run(in_simulation(world, count, test))

        run.__name__, run.__doc__ = test.__name__, test.__doc__
        return run

    return decorate


async def in_simulation(world: Simulation, count: int, test: Test) -> None:
    started = await start_servers(world, count)
    try:
        await test([Api(server) for server in started])
    finally:
        for server in started:
            await server.close()


async def on_etcd(cluster: EtcdCluster, count: int, prefix: str, test: Test) -> None:
    world = World.real()
    clients = [EtcdClient(cluster.settings, world) for _ in range(count)]
    indexes = [await EtcdIndex.open(client, prefix, world, EtcdOptions()) for client in clients]
    started = [Server(world, index) for index in indexes]
    try:
        await start_all(started)
        await test([Api(server) for server in started])
    finally:
        for server in started:
            await server.close()
        for client in clients:
            await client.close()
        world.executor.close()


async def _storm(apis: list[Api], path: str, objects: list[dict[str, Any]]) -> list[Answer]:
    return await asyncio.gather(*(apis[i % len(apis)].post(path, each) for i, each in enumerate(objects)))


def _service(name: str, **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": {"type": "NodePort", "ports": [{"port": 80}], **spec}}


@servers(2)
async def test_no_address_or_port_is_allocated_twice(apis: list[Api]) -> None:
    made = await _storm(apis, f"{_DEFAULT}/services", [_service(f"s-{i}") for i in range(64)])
    assert {answer.code for answer in made} == {201}
    assert len({answer.body["spec"]["clusterIP"] for answer in made}) == 64
    assert len({answer.body["spec"]["ports"][0]["nodePort"] for answer in made}) == 64


@servers(2)
async def test_of_writers_that_request_one_address_or_port_one_succeeds(apis: list[Api]) -> None:
    same = [{"clusterIP": "10.0.0.77"}, {"ports": [{"port": 80, "nodePort": 30077}]}]
    for number, spec in enumerate(same):
        wanted = [_service(f"s-{number}-{i}", **spec) for i in range(16)]
        made = await _storm(apis, f"{_DEFAULT}/services", wanted)
        assert sorted(answer.code for answer in made) == [201] + [422] * 15
        winner = next(answer for answer in made if answer.code == 201)
        name = winner.body["metadata"]["name"]
        assert (await apis[0].delete(f"{_DEFAULT}/services/{name}")).code == 200
        assert (await apis[1].post(f"{_DEFAULT}/services", wanted[0])).code == 201


@servers(2, stores=["simulated"])
async def test_the_last_values_of_a_full_range_are_each_allocated_once(apis: list[Api]) -> None:
    made = await _storm(apis, f"{_DEFAULT}/services", [_service(f"s-{i}", type="ClusterIP") for i in range(270)])
    given = [answer.body["spec"]["clusterIP"] for answer in made if answer.code == 201]
    assert len(given) == len(set(given)) == 253


@servers(2)
async def test_a_get_without_a_task_has_what_another_server_has_acknowledged(apis: list[Api]) -> None:
    path = f"{_DEFAULT}/configmaps/a"

    def request(**headers: str) -> Request:
        return Request("GET", path, "", {"authorization": "Bearer admin", **headers})

    async def soon(asked: Request) -> Response | None:
        later = apis[1].server.handle_now(asked)
        assert later is not None
        assert not isinstance(later, Response)
        answer: asyncio.Future[Response | None] = asyncio.get_running_loop().create_future()
        later(answer.set_result)
        return await answer

    assert (await apis[0].post(f"{_DEFAULT}/configmaps", {"metadata": {"name": "a"}})).code == 201
    for number in range(20):
        written = await apis[0].merge(path, {"data": {"k": str(number)}})
        found = await soon(request())
        assert found is not None
        assert msgspec.json.decode(found.body) == written.body
        same = await apis[1].server.handle(request())
        assert isinstance(same, Response)
        assert (found.body, list(found.headers)) == (same.body, list(same.headers))
    assert (await apis[0].delete(path)).code == 200
    gone = await soon(request())
    assert gone is not None
    assert gone.status == 404


@servers(2)
async def test_a_quota_is_never_exceeded(apis: list[Api]) -> None:
    hard = {"count/configmaps": "20"}
    await apis[0].post(f"{_DEFAULT}/resourcequotas", {"metadata": {"name": "q"}, "spec": {"hard": hard}})
    status = {"status": {"hard": hard, "used": {"count/configmaps": "0"}}}
    assert (await apis[0].merge(f"{_DEFAULT}/resourcequotas/q/status", status)).code == 200
    await apis[1].get(f"{_DEFAULT}/resourcequotas/q")
    made = await _storm(apis, f"{_DEFAULT}/configmaps", [{"metadata": {"name": f"c-{i}"}} for i in range(64)])
    assert sorted(answer.code for answer in made) == [201] * 20 + [403] * 44
    for api in apis:
        assert (await api.get(f"{_DEFAULT}/resourcequotas/q")).body["status"]["used"] == hard


@servers(2)
async def test_of_writers_of_one_name_or_one_version_one_succeeds(apis: list[Api]) -> None:
    made = await _storm(
        apis, f"{_DEFAULT}/configmaps", [{"metadata": {"name": "c"}, "data": {"by": str(i)}} for i in range(64)]
    )
    assert sorted(answer.code for answer in made) == [201] + [409] * 63
    current = next(answer.body for answer in made if answer.code == 201)
    puts = [apis[i % 2].put(f"{_DEFAULT}/configmaps/c", {**current, "data": {"to": str(i)}}) for i in range(64)]
    answers = await asyncio.gather(*puts)
    assert sorted(answer.code for answer in answers) == [200] + [409] * 63
    merges = [apis[i % 2].merge(f"{_DEFAULT}/configmaps/c", {"data": {f"k{i}": ""}}) for i in range(64)]
    assert {answer.code for answer in await asyncio.gather(*merges)} == {200}
    for api in apis:
        assert len((await api.get(f"{_DEFAULT}/configmaps/c")).body["data"]) == 65


@servers(2)
async def test_what_one_server_acknowledges_the_other_shows_and_builds_on(apis: list[Api]) -> None:
    one, other = apis
    for i in range(20):
        space = f"/api/v1/namespaces/n-{i}"
        assert (await one.post("/api/v1/namespaces", {"metadata": {"name": f"n-{i}"}})).code == 201
        assert (await other.post(f"{space}/configmaps", {"metadata": {"name": "c"}})).code == 201
        assert (await one.merge(f"{space}/configmaps/c", {"data": {"a": "b"}})).body["data"] == {"a": "b"}
        found = (await other.get(f"{space}/configmaps/c")).body
        assert (await one.put(f"{space}/configmaps/c", {**found, "data": {}})).code == 200
        assert (await other.delete(f"{space}/configmaps/c")).code == 200
        assert (await one.get(f"{space}/configmaps/c")).code == 404
        assert (await one.post(f"{space}/configmaps", {"metadata": {"name": "c"}})).code == 201


def _definition(plural: str, kind: str) -> dict[str, Any]:
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    version = {"name": "v1", "served": True, "storage": True, "schema": schema}
    names = {"plural": plural, "kind": kind}
    spec = {"group": "example.com", "scope": "Namespaced", "names": names, "versions": [version]}
    return {"metadata": {"name": f"{plural}.example.com"}, "spec": spec}


def _request(path: str) -> Request:
    return Request("GET", path, headers={"authorization": "Bearer admin"})


@servers(3)
async def test_a_custom_resource_is_served_by_all_servers_until_its_definition_is_deleted(apis: list[Api]) -> None:
    one, other, third = apis
    widgets = "/apis/example.com/v1/namespaces/default/widgets"
    for _ in range(3):
        assert (await one.post(_DEFINITIONS, _definition("widgets", "Widget"))).code == 201
        body = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}}
        assert (await other.post(widgets, body)).code == 201
        assert (await third.get(f"{widgets}/w")).code == 200
        assert [each["name"] for each in (await third.get("/apis/example.com/v1")).body["resources"]] == ["widgets"]
        assert (await third.delete(f"{_DEFINITIONS}/widgets.example.com")).code == 200
        for api in apis:
            assert (await api.server.handle(_request(f"{widgets}/w"))).status == 404
            assert (await api.get(f"{_DEFINITIONS}/widgets.example.com")).code == 404


@servers(2)
async def test_flow_control_follows_the_other_server(apis: list[Api]) -> None:
    path = "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas"
    spec = {"priorityLevelConfiguration": {"name": "missing"}, "matchingPrecedence": 1000}
    assert (await apis[0].post(path, {"metadata": {"name": "f"}, "spec": spec})).code == 201
    conditions = (await apis[1].get(f"{path}/f")).body["status"]["conditions"]
    assert [(each["type"], each["status"]) for each in conditions] == [("Dangling", "True")]


@servers(2)
async def test_servers_that_start_at_once_create_each_object_once(apis: list[Api]) -> None:
    for path in ("/api/v1/namespaces", "/apis/rbac.authorization.k8s.io/v1/clusterroles", "/api/v1/services"):
        lists = [(await api.get(path)).body["items"] for api in apis]
        assert lists[0] == lists[1]
        assert lists[0]


@servers(2)
async def test_pages_of_one_list_come_from_both_servers(apis: list[Api]) -> None:
    names = [f"c-{i:02}" for i in range(30)]
    await _storm(apis, f"{_DEFAULT}/configmaps", [{"metadata": {"name": name}} for name in names])
    page = (await apis[0].get(f"{_DEFAULT}/configmaps?limit=7")).body
    found = [each["metadata"]["name"] for each in page["items"]]
    version, turn = page["metadata"]["resourceVersion"], 1
    while token := page["metadata"].get("continue"):
        await apis[turn % 2].delete(f"{_DEFAULT}/configmaps/{names[-turn]}")
        page = (await apis[turn % 2].get(f"{_DEFAULT}/configmaps?limit=7&continue={token}")).body
        assert page["metadata"]["resourceVersion"] == version
        found += [each["metadata"]["name"] for each in page["items"]]
        turn += 1
    assert found == names


@needs_etcd
def test_pages_of_a_list_come_from_a_server_that_was_started_later(etcd: EtcdCluster) -> None:
    path = f"{_DEFAULT}/configmaps"

    async def test(apis: list[Api]) -> None:
        names = [f"c-{i:02}" for i in range(30)]
        objects = [{"metadata": {"name": name, "labels": {"even": str(i % 2 == 0)}}} for i, name in enumerate(names)]
        await _storm(apis, path, objects)
        page = (await apis[0].get(f"{path}?limit=7")).body
        found = [each["metadata"]["name"] for each in page["items"]]
        version = page["metadata"]["resourceVersion"]
        exact = f"resourceVersion={version}&resourceVersionMatch=Exact"
        everything = (await apis[0].get(f"{path}?{exact}")).body
        for name in names[5:25]:
            assert (await apis[0].merge(f"{path}/{name}", {"data": {"k": "later"}})).code == 200
            assert (await apis[0].delete(f"{path}/{name}")).code == 200
        await apis[0].post(path, {"metadata": {"name": "c-10"}})

        async def later(started: list[Api]) -> None:
            nonlocal page
            other = started[0]
            token = page["metadata"]["continue"]
            while page["metadata"].get("continue"):
                page = (await other.get(f"{path}?limit=7&continue={page['metadata']['continue']}")).body
                assert page["metadata"]["resourceVersion"] == version
                found.extend(each["metadata"]["name"] for each in page["items"])
                assert page["metadata"].get("remainingItemCount", 0) == len(names) - len(found)
            assert found == names
            assert (await other.get(f"{path}?{exact}")).body == everything
            some = (await other.get(f"{path}?{exact}&labelSelector=even=True&limit=10")).body
            assert [each["metadata"]["name"] for each in some["items"]] == names[:20:2]
            rest = (await other.get(f"{path}?labelSelector=even=True&continue={some['metadata']['continue']}")).body
            assert [each["metadata"]["name"] for each in rest["items"]] == names[20::2]
            elsewhere = (await other.get(f"/api/v1/namespaces/kube-system/configmaps?{exact}")).body["items"]
            assert "c-00" not in {each["metadata"]["name"] for each in elsewhere}
            index = other.server.index
            assert isinstance(index, EtcdIndex)
            await index._client.compact(await index._client.revision())
            too_old = await other.get(f"{path}?limit=7&continue={token}")
            assert (too_old.code, too_old.body["reason"]) == (410, "Expired")
            following = (await other.get(f"{path}?continue={too_old.body['metadata']['continue']}")).body
            assert [each["metadata"]["name"] for each in following["items"]] == ["c-10", *names[25:]]
            assert (await other.get(f"{path}?{exact}")).code == 410

        await on_etcd(etcd, 1, "/later", later)

    asyncio.run(on_etcd(etcd, 1, "/later", test))


@servers(2)
async def test_a_watch_resumes_on_the_other_server_without_losing_or_repeating_an_event(apis: list[Api]) -> None:
    path = f"{_DEFAULT}/configmaps"
    version = (await apis[0].get(path)).body["metadata"]["resourceVersion"]
    made = await _storm(apis, path, [{"metadata": {"name": f"c-{i}"}} for i in range(30)])
    wanted = sorted(int(answer.body["metadata"]["resourceVersion"]) for answer in made)
    seen: list[int] = []
    turn = 0
    while len(seen) < len(wanted):  # each watch is dropped after some events
        turn += 1
        request = _request(path)
        request.query_string = f"watch=true&resourceVersion={version}"
        stream = await apis[turn % 2].server.handle(request)
        assert isinstance(stream, Stream)
        async with aclosing(stream.chunks) as chunks:  # type: ignore[type-var]
            lines = (await anext(chunks)).splitlines()
        for line in lines[:4]:
            version = msgspec.json.decode(line)["object"]["metadata"]["resourceVersion"]
            seen.append(int(version))
    assert seen == wanted


async def _addresses(api: Api) -> list[str]:
    subsets = (await api.get(f"{_DEFAULT}/endpoints/kubernetes")).body.get("subsets", ())
    slice_ = (await api.get("/apis/discovery.k8s.io/v1/namespaces/default/endpointslices/kubernetes")).body
    assert [address for each in slice_["endpoints"] for address in each["addresses"]] == [
        each["ip"] for each in subsets[0]["addresses"]
    ]
    return [each["ip"] for subset in subsets for each in subset["addresses"]]


@servers(3, stores=["simulated"])  # it takes a minute
async def test_endpoints_of_the_servers_appear_and_vanish_with_them(apis: list[Api]) -> None:
    clock = apis[0].server.world.clock
    await clock.sleep(INTERVAL + 1)
    assert await _addresses(apis[0]) == ["192.0.2.1", "192.0.2.2", "192.0.2.3"]
    await apis[2].server.close()
    assert await _addresses(apis[0]) == ["192.0.2.1", "192.0.2.2"]
    endpoints = apis[1].server._endpoints
    endpoints._releases = False  # it dies
    await endpoints.close()
    await clock.sleep(LEASE_SECONDS + INTERVAL + 1)
    assert await _addresses(apis[0]) == ["192.0.2.1"]
    version = (await apis[0].get(f"{_DEFAULT}/endpoints/kubernetes")).body["metadata"]["resourceVersion"]
    await clock.sleep(60)
    assert (await apis[0].get(f"{_DEFAULT}/endpoints/kubernetes")).body["metadata"]["resourceVersion"] == version


@servers(1, stores=["simulated"])
async def test_a_server_whose_store_does_not_answer_stops_soon(apis: list[Api]) -> None:
    server = apis[0].server
    clock, index = server.world.clock, server.index

    async def hang(*_: object) -> int:
        await clock.sleep(1000)
        raise AssertionError

    index.delete = hang  # type: ignore[method-assign]
    began = clock.monotonic()
    await server.close()
    assert clock.monotonic() - began == pytest.approx(RELEASE_SECONDS)
