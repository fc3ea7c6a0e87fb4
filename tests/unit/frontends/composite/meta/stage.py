"""What tests of composites share: a hook server that records its requests, definitions, and a small kind of parents."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web

Json = dict[str, Any]
Answer = Callable[[Json], Any]

PARENTS = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "cats.example.dev"},
    "spec": {
        "group": "example.dev",
        "names": {"kind": "Cat", "plural": "cats", "singular": "cat", "listKind": "CatList"},
        "scope": "Namespaced",
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "subresources": {"status": {}},
                "schema": {
                    "openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                },
            }
        ],
    },
}


def cat(name: str = "tom", **spec: Any) -> Json:
    labels = {"cat": name}
    whole = {
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "value": "1"},
        "count": 1,
        **spec,
    }
    return {"apiVersion": "example.dev/v1", "kind": "Cat", "metadata": {"name": name}, "spec": whole}


def config_map(parent: Json, name: str, **data: str) -> Json:
    labels = {"cat": parent["metadata"]["name"]}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "labels": labels}, "data": data}


class HookServer:
    """Hooks over HTTP. `answers`: by path, a document, or a function of the request that returns one or a response."""

    def __init__(self) -> None:
        self.url = ""
        self.answers: dict[str, Any] = {}
        self.requests: list[tuple[str, Json]] = []
        self.fails = False  # whether failed syncs are expected
        self.managers: list[Any] = []  # that call the hooks; they end before the server

    def of(self, path: str) -> list[Json]:
        return [document for at, document in self.requests if at == path]

    def hook(self, path: str, version: str | None = None, **webhook: Any) -> Json:
        made: Json = {"webhook": {"url": f"{self.url}{path}", **webhook}}
        return made if version is None else {"version": version, **made}

    async def answer(self, request: web.Request) -> web.StreamResponse:
        document = json.loads(await request.read())
        self.requests.append((request.path, document))
        found = self.answers[request.path]
        if callable(found):
            found = found(document)
        return found if isinstance(found, web.StreamResponse) else web.json_response(found)


@asynccontextmanager
async def hooks() -> AsyncIterator[HookServer]:
    served = HookServer()
    runner = web.ServerRunner(web.Server(served.answer), shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    served.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield served
    finally:
        for manager in served.managers:
            await manager.end()
            if served.fails:
                assert manager.errors  # those that were read do not fail the test
        await runner.cleanup()


def composite_of(
    name: str, hooks: Json, children: list[Json] | None = None, parent: Json | None = None, **spec: Any
) -> Json:
    return {
        "apiVersion": "metacontroller.k8s.io/v1alpha1",
        "kind": "CompositeController",
        "metadata": {"name": name},
        "spec": {
            "parentResource": {"apiVersion": "example.dev/v1", "resource": "cats", **(parent or {})},
            "childResources": children if children is not None else [child("configmaps", method="InPlace")],
            "hooks": hooks,
            **spec,
        },
    }


def child(resource: str, api_version: str = "v1", **strategy: Any) -> Json:
    return {"apiVersion": api_version, "resource": resource, **({"updateStrategy": strategy} if strategy else {})}
