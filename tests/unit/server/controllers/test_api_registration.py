"""Local APIServices: those of custom resources follow their definitions."""

from __future__ import annotations

import json
from typing import Any

from tests.stage.server import on_a_server

from ostinato.server.core import Server
from ostinato.server.request import Peer, Request, Response
from ostinato.world import Simulation

API_SERVICES = "/apis/apiregistration.k8s.io/v1/apiservices"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
NAME = "v1.seeds.example.dev"


async def ask(server: Server, method: str, path: str, body: Any = None, kind: str = "application/json") -> Any:
    sent = b"" if body is None else json.dumps(body).encode()
    request = Request(method, path, headers={"content-type": kind}, body=sent)
    request.peer = Peer("admin", ("system:masters",))
    answer = await server.handle(request)
    assert isinstance(answer, Response)
    return {"code": answer.status, **json.loads(answer.body)} if answer.body[:1] == b"{" else {"code": answer.status}


def definition(*versions: str) -> dict[str, Any]:
    schema = {"openAPIV3Schema": {"type": "object"}}
    served = [{"name": name, "served": True, "storage": name == versions[0], "schema": schema} for name in versions]
    names = {"plural": "seeds", "singular": "seed", "kind": "Seed", "listKind": "SeedList"}
    spec = {"group": "seeds.example.dev", "names": names, "scope": "Cluster", "versions": served}
    return {"metadata": {"name": "seeds.seeds.example.dev"}, "spec": spec}


def registered(**spec: Any) -> dict[str, Any]:
    wanted = {"group": "seeds.example.dev", "version": "v1", "groupPriorityMinimum": 9, "versionPriority": 9, **spec}
    return {"metadata": {"name": NAME}, "spec": wanted}


async def names(server: Server) -> set[str]:
    found = (await ask(server, "GET", API_SERVICES))["items"]
    return {each["metadata"]["name"] for each in found if "seeds" in each["metadata"]["name"]}


async def _follows(_: Simulation, server: Server) -> None:
    made = await ask(server, "POST", DEFINITIONS, definition("v1", "v2"))
    assert await names(server) == {NAME, "v2.seeds.example.dev"}
    changed = {**definition("v1"), "metadata": {**definition("v1")["metadata"]}}
    changed["metadata"]["resourceVersion"] = (await ask(server, "GET", f"{DEFINITIONS}/{made['metadata']['name']}"))[
        "metadata"
    ]["resourceVersion"]
    assert (await ask(server, "PUT", f"{DEFINITIONS}/seeds.seeds.example.dev", changed))["code"] == 200
    assert await names(server) == {NAME}
    patch = {"spec": {"groupPriorityMinimum": 5}}
    await ask(server, "PATCH", f"{API_SERVICES}/{NAME}", patch, "application/merge-patch+json")
    assert (await ask(server, "GET", f"{API_SERVICES}/{NAME}"))["spec"]["groupPriorityMinimum"] == 1000
    await ask(server, "DELETE", f"{API_SERVICES}/{NAME}")
    assert await names(server) == {NAME}
    await ask(server, "DELETE", f"{DEFINITIONS}/seeds.seeds.example.dev")
    assert await names(server) == set()


test_the_api_service_of_a_custom_resource_follows_its_definition = on_a_server(_follows)


async def _claimed(_: Simulation, server: Server) -> None:
    service = {"namespace": "default", "name": "missing"}
    await ask(server, "POST", API_SERVICES, registered(service=service))
    await ask(server, "POST", DEFINITIONS, definition("v1"))
    assert (await ask(server, "GET", f"{API_SERVICES}/{NAME}"))["spec"]["service"]["name"] == "missing"
    assert (await ask(server, "GET", "/apis/seeds.example.dev/v1/seeds"))["code"] == 503
    await ask(server, "DELETE", f"{API_SERVICES}/{NAME}")
    assert (await ask(server, "GET", "/apis/seeds.example.dev/v1/seeds"))["code"] == 200
    assert (await ask(server, "GET", f"{API_SERVICES}/{NAME}"))["spec"]["groupPriorityMinimum"] == 1000


test_an_administrators_api_service_takes_the_version_until_it_is_deleted = on_a_server(_claimed)


async def _becomes_local(world: Simulation, server: Server) -> None:
    service = {"namespace": "default", "name": "missing"}
    await ask(server, "POST", API_SERVICES, registered(service=service))
    await world.clock.sleep(1)
    found = await ask(server, "GET", f"{API_SERVICES}/{NAME}")
    [condition] = found["status"]["conditions"]
    assert condition["reason"] == "ServiceNotFound"
    await ask(server, "PATCH", f"{API_SERVICES}/{NAME}", {"spec": {"service": None}}, "application/merge-patch+json")
    [condition] = (await ask(server, "GET", f"{API_SERVICES}/{NAME}"))["status"]["conditions"]
    assert (condition["status"], condition["reason"]) == ("True", "Local")


test_an_api_service_that_loses_its_service_is_local = on_a_server(_becomes_local)
