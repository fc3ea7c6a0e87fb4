"""The page of a server with a controller: what happened, why, and what is never shown."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import urlencode

from tests.unit.page.browser import Browser, paged

from ostinato.client.client import Client
from ostinato.controllers import Context, Request
from ostinato.kinds.core_v1 import ConfigMap
from ostinato.manager import Manager
from ostinato.page.reporting.reporter import Reporter
from ostinato.server.in_process.transport import InProcessTransport
from ostinato.world import World

PASSWORD = "aHVudGVyMg=="


class Copies:
    """Copies each ConfigMap with the label `copy` to one that it owns."""

    async def reconcile(self, request: Request, ctx: Context) -> None:
        source = await ctx.client.get(ConfigMap, request, missing=None)
        if source is None or "copy" not in source.metadata.labels:
            return
        copy = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": f"{request.name}-copy", "namespace": request.namespace},
            "data": dict(source.data),
        }
        await ctx.apply(copy, owner=source)


async def until(ask: Callable[[], Awaitable[Any]]) -> Any:
    async with asyncio.timeout(20):
        while True:
            if found := await ask():
                return found
            await asyncio.sleep(0.05)


def config_map(name: str, **data: str) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "default", "labels": {"copy": "yes"}}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


def path(what: str, kind: str, name: str) -> str:
    query = {"apiVersion": "v1", "kind": kind, "namespace": "default", "name": name}
    return f"/api/{what}?{urlencode(query)}"


async def answered(browser: Browser, target: str) -> Any:
    answer = await browser.request(target)
    return answer.json() if answer.status == 200 else None


def test_a_copy_is_traced_to_the_edit_of_its_source() -> None:
    async def test() -> None:
        world = World.real(workers=1)
        reporter = Reporter("test", world.clock)
        async with paged(reporter) as (browser, client):
            await browser.log_in()
            transport = client._requests.exchange.transport
            assert isinstance(transport, InProcessTransport)
            manager = Manager(connect=lambda _: InProcessTransport(transport._server), world=world, observer=reporter)
            manager.build("copies").watch_for(ConfigMap).complete(Copies())
            serving = asyncio.get_running_loop().create_task(manager.serve())
            try:
                await until(lambda: _synced(browser))
                await _story(browser, client)
            finally:
                manager.stop()
                await serving
        world.executor.close()

    asyncio.run(test())


async def _synced(browser: Browser) -> bool:
    """Return whether the page and the controller watch."""
    graph = await browser.get("/api/graph")
    kinds = (await browser.get("/api/objects"))["kinds"]
    return "v1/ConfigMap" in kinds and any(each["id"] == "controller:copies" for each in graph["nodes"])


async def _story(browser: Browser, client: Client) -> None:
    await client.create(config_map("a", colour="red"))
    await until(lambda: answered(browser, path("object", "ConfigMap", "a-copy")))
    await client.update({**config_map("a", colour="blue")})

    async def chain() -> Any:
        found = await answered(browser, path("why", "ConfigMap", "a-copy"))
        steps = found["chain"] if found else []
        return steps if steps and steps[-1]["type"] == "user" and "blue" in str(steps[-1]) else None

    steps = await until(chain)
    assert [each["type"] for each in steps] == ["write", "reconcile", "user"]
    assert steps[0]["write"]["author"] == "copies"
    assert {"path": "data.colour", "old": "red", "new": "blue"} in steps[0]["write"]["diff"]
    assert steps[1]["reconcile"]["controller"] == "copies"
    assert steps[2]["who"] == "test-user"

    found = await browser.get(path("object", "ConfigMap", "a-copy"))
    owners = {line["owner"] for line in found["lines"] if line["text"].strip() == "colour: blue"}
    assert owners == {"copies"}
    assert [each["verb"] for each in found["writes"]] == ["update", "create"]

    (tree,) = await until(lambda: _roots(browser))
    assert (tree["ref"]["name"], [each["ref"]["name"] for each in tree["children"]]) == ("a", ["a-copy"])
    source = await browser.get(path("object", "ConfigMap", "a"))
    assert [each["ref"]["name"] for each in source["children"]] == ["a-copy"]

    past = await browser.get("/api/history")
    assert "data.colour: red → blue" in str(past["batches"])
    edges = (await browser.get("/api/graph"))["edges"]
    assert {"from": "kind:v1/ConfigMap", "to": "controller:copies", "type": "watches", "primary": True} in edges

    await client.delete(ConfigMap, "a-copy")
    await until(lambda: _is_gone(browser))


async def _roots(browser: Browser) -> Any:
    """Return the tree with the copy; owners may be a second old."""
    found = await browser.get("/api/objects?q=a-copy")
    return found["roots"] if found["roots"] and found["roots"][0]["children"] else None


async def _is_gone(browser: Browser) -> bool:
    found = await answered(browser, path("object", "ConfigMap", "a-copy"))
    return found is None or found["gone"] is not None or len(found["writes"]) > 2


def test_values_of_secrets_are_in_no_answer() -> None:
    async def test() -> None:
        async with paged() as (browser, client):
            await browser.log_in()
            await until(lambda: _watches(browser, "v1/Secret"))
            applied = {"kubectl.kubernetes.io/last-applied-configuration": f'{{"data":{{"password":"{PASSWORD}"}}}}'}
            metadata = {"name": "s", "namespace": "default", "annotations": applied}
            secret = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": {"password": PASSWORD}}
            await client.create(secret)
            await until(lambda: answered(browser, path("object", "Secret", "s")))
            await client.update({**secret, "data": {"password": "b3RoZXI="}})

            async def writes() -> Any:
                found = await answered(browser, path("object", "Secret", "s"))
                return found if found and len(found["writes"]) > 1 else None

            found = await until(writes)
            assert {"path": "data.password", "old": "***", "new": "***"} in found["writes"][0]["diff"]
            assert '  password: "***"' in [line["text"] for line in found["lines"]]
            answers = [await browser.request(each) for each in ("/api/history", "/api/objects", "/api/graph")]
            answers += [await browser.request(path(each, "Secret", "s")) for each in ("object", "why")]
            for answer in answers:
                assert answer.status == 200
                for value in (PASSWORD, "hunter2", "b3RoZXI="):
                    assert value.encode() not in answer.body

    asyncio.run(test())


async def _watches(browser: Browser, kind: str) -> bool:
    return kind in (await browser.get("/api/objects"))["kinds"]


def test_wrong_questions_are_answered_with_the_parameter() -> None:
    async def test() -> None:
        async with paged() as (browser, _):
            await browser.log_in()
            for target, status in {
                "/api/object": 400,
                "/api/object?apiVersion=a/b/c&kind=X&name=y": 400,
                "/api/why?write=999": 404,
                "/api/why?write=-1": 404,
                "/api/history?from=x": 400,
                "/api/history?from=nan": 400,
                "/api/objects?labels=%21%21": 400,
                "/api/objects?limit=x": 400,
                "/api/scheduler?namespace=a&name=b": 404,
                "/api/find?kind=nothing&name=x": 404,
                "/api/nothing": 404,
            }.items():
                answer = await browser.request(target)
                assert answer.status == status, target
                assert answer.json()["error"]

    asyncio.run(test())


def test_names_and_messages_stay_text_in_json() -> None:
    async def test() -> None:
        evil = "<img src=x onerror=alert(1)>"
        async with paged() as (browser, client):
            await browser.log_in()
            await until(lambda: _watches(browser, "v1/ConfigMap"))
            await client.create(config_map("evil", text=evil))
            await until(lambda: answered(browser, path("object", "ConfigMap", "evil")))
            answer = await browser.request(path("object", "ConfigMap", "evil"))
            assert answer.headers["content-type"] == "application/json"
            assert evil in str(answer.json()["lines"])

    asyncio.run(test())
