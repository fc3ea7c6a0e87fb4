"""The proxy of roles: who may use it, owners of created objects, reads from the cache."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any
from urllib.request import Request, urlopen

import pytest
from tests.unit.frontends.roles.stage import CONFIG_MAP, MEMCACHED, install, memcached

from ostinato.api.object import KindInfo
from ostinato.client import Client
from ostinato.frontends.roles.proxy.cached import CachedReads
from ostinato.frontends.roles.proxy.proxy import Proxy
from ostinato.frontends.roles.proxy.route import parse_route
from ostinato.frontends.roles.proxy.session import Session
from ostinato.testing import Cluster

Json = dict[str, Any]
APPLY = "application/apply-patch+yaml"


class Stage:
    """A proxy with one session, and the kinds that it has asked to watch."""

    def __init__(self, client: Client, owner: Json, kind: KindInfo, manager: Any) -> None:
        self.watched: list[str] = []
        self.reads = CachedReads(manager.informers)
        self.proxy = Proxy(client, self.reads, lambda _, found: self.watched.append(found.gvk.kind))
        self.session: Session = self.proxy.sessions.open(owner, kind)

    async def send(self, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, Json, Any]:
        headers.setdefault("Authorization", f"Bearer {self.session.token}")
        headers.setdefault("Content_Type", "application/json")
        data = None if body is None else json.dumps(body).encode()
        sent = {name.replace("_", "-"): value for name, value in headers.items() if value}
        request = Request(self.proxy.url + path, data=data, method=method, headers=sent)
        return await asyncio.to_thread(_answered, request)


def _answered(request: Request) -> tuple[int, Json, Any]:
    try:
        with urlopen(request, timeout=10) as response:
            return response.status, json.load(response), response.headers
    except OSError as error:
        with error:  # type: ignore[attr-defined]
            return error.code, json.load(error), error.headers  # type: ignore[attr-defined]


@pytest.fixture
async def stage(cluster: Cluster, client: Client, manager: Any) -> AsyncIterator[Stage]:
    await install(client)
    owner = await client.create(memcached())
    kind = await client.mapper.kind(MEMCACHED.gvk)
    made = Stage(client, owner, kind, manager)
    await made.proxy.start()
    yield made
    await made.proxy.stop()


def config_map(name: str = "a", **metadata: Any) -> Json:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, **metadata}, "data": {"a": "b"}}


MAPS = "/api/v1/namespaces/default/configmaps"


async def test_a_request_needs_the_token_of_a_current_run(stage: Stage) -> None:
    assert (await stage.send("GET", MAPS))[0] == 200
    for wrong in ("", "Bearer ", "Bearer 00", "Basic dXNlcjpwYXNz", f"bearer x{stage.session.token}"):
        code, status, _ = await stage.send("GET", MAPS, Authorization=wrong)
        assert (code, status["kind"]) == (401, "Status")
    stage.proxy.sessions.close(stage.session)
    assert (await stage.send("GET", MAPS))[0] == 401
    assert stage.proxy.url.startswith("http://127.0.0.1:")


async def test_a_created_object_refers_to_its_owner_and_its_kind_is_watched(stage: Stage, client: Client) -> None:
    code, made, _ = await stage.send("POST", MAPS, config_map())
    assert code == 201
    (reference,) = made["metadata"]["ownerReferences"]
    assert reference["uid"] == stage.session.owner["metadata"]["uid"]
    assert stage.watched == ["ConfigMap"]


async def test_server_side_apply_gets_the_owner_too(stage: Stage) -> None:
    path = f"{MAPS}/a?fieldManager=test"
    for _ in range(2):
        _, made, _ = await stage.send("PATCH", path, config_map(), Content_Type=APPLY)
        assert len(made["metadata"]["ownerReferences"]) == 1


async def test_objects_elsewhere_get_annotations(stage: Stage, client: Client) -> None:
    await client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "other"}})
    expected = {
        "operator-sdk/primary-resource": "default/a",
        "operator-sdk/primary-resource-type": "Memcached.cache.example.com",
    }
    _, made, _ = await stage.send("POST", "/api/v1/namespaces/other/configmaps", config_map())
    assert made["metadata"]["annotations"] == expected
    _, made, _ = await stage.send("POST", "/api/v1/namespaces", {"metadata": {"name": "third"}})
    assert made["metadata"]["annotations"] == expected
    assert "ownerReferences" not in made["metadata"]


async def test_reviews_subresources_and_the_owner_itself_are_not_changed(stage: Stage) -> None:
    review = {"spec": {"resourceAttributes": {"verb": "get", "resource": "pods"}}}
    code, made, _ = await stage.send("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", review)
    assert (code, made["status"]["allowed"]) == (201, True)
    assert not {"ownerReferences", "annotations"}.intersection(made.get("metadata", {}))
    path = "/apis/cache.example.com/v1alpha1/namespaces/default/memcacheds/a?fieldManager=x"
    code, made, _ = await stage.send("PATCH", path, {**memcached(size=2)}, Content_Type=APPLY)
    assert code == 200
    assert "ownerReferences" not in made["metadata"]


async def test_errors_of_the_server_and_malformed_bodies_pass(stage: Stage) -> None:
    code, status, _ = await stage.send("GET", f"{MAPS}/missing")
    assert (code, status["reason"]) == (404, "NotFound")
    code, status, _ = await stage.send("POST", MAPS, [1, 2])
    assert code == 400
    code, status, _ = await stage.send("GET", f"{MAPS}?watch=true")
    assert (code, status["reason"]) == (501, "NotImplemented")


@pytest.mark.ostinato(rbac=False)
async def test_watched_kinds_are_read_from_the_cache_but_never_older_than_own_writes(
    stage: Stage, client: Client, manager: Any
) -> None:
    await client.create(config_map("first", labels={"app": "x"}))
    informer = manager.informers.of(CONFIG_MAP)
    informer.start()
    await informer.synced(10)
    _, found, headers = await stage.send("GET", f"{MAPS}/first")
    assert (headers["X-Cache"], found["data"], found["kind"]) == ("HIT", {"a": "b"}, "ConfigMap")
    _, found, headers = await stage.send("GET", f"{MAPS}?labelSelector=app%3Dx")
    assert (headers["X-Cache"], len(found["items"]), found["kind"]) == ("HIT", 1, "ConfigMapList")
    assert not stage.watched  # it is not a dependent
    for number in range(20):  # the cache lags behind each write
        await stage.send("POST", MAPS, config_map(f"m{number}"))
        code, found, _ = await stage.send("GET", f"{MAPS}/m{number}")
        assert (code, found["metadata"]["name"]) == (200, f"m{number}")
        await stage.send("DELETE", f"{MAPS}/m{number}")
        assert (await stage.send("GET", f"{MAPS}/m{number}"))[0] == 404
    stage.reads.wrote(await client.mapper.kind(CONFIG_MAP.gvk), {"metadata": {"resourceVersion": "9" * 15}})
    _, _, headers = await stage.send("GET", f"{MAPS}/first")
    assert "X-Cache" not in headers  # the cache has not seen that write
    await informer.stop()


@pytest.mark.parametrize(
    ("path", "route"),
    [
        ("/api/v1/namespaces/a/pods/b", ("", "v1", "a", "pods", "b", "")),
        ("/api/v1/namespaces/a/pods/b/log", ("", "v1", "a", "pods", "b", "log")),
        ("/api/v1/namespaces/a", ("", "v1", "", "namespaces", "a", "")),
        ("/api/v1/namespaces/a/status", ("", "v1", "", "namespaces", "a", "status")),
        ("/apis/apps/v1/deployments", ("apps", "v1", "", "deployments", "", "")),
        ("/apis/apps/v1", None),
        ("/api", None),
        ("/version", None),
        ("/", None),
        ("/api/v1//pods", None),
    ],
)
def test_paths_are_parsed(path: str, route: tuple[str, ...] | None) -> None:
    found = parse_route(path)
    assert (found and (found.version.group, found.version.version, *found[1:])) == route
