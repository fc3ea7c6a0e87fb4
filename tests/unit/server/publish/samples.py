"""A server with custom resources, and the recorded answers of kube-apiserver."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ostinato.api.gvk import GroupVersionKind, GroupVersionResource
from ostinato.server.core import Server
from ostinato.server.request import Request, Response, User
from ostinato.server.resources.resource import Resource, Subresource
from ostinato.server.resources.strategy import Strategy
from ostinato.server.store.collection import Collection
from ostinato.server.store.log_memory import MemoryLog
from ostinato.world import World

DATA = Path(__file__).parents[3] / "data" / "publish"
AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
CUSTOM = json.loads((DATA / "custom.json").read_text())


def new_server() -> Server:
    made = Server(World.real(), MemoryLog())
    made.authenticator.add("t", User("admin", groups=("system:masters",)))
    return made


def ask(server: Server, path: str, *, method: str = "GET", **headers: str) -> Response:
    path, _, query = path.partition("?")
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    answer = asyncio.run(server.handle(Request(method, path, query, {"authorization": "Bearer t", **sent})))
    assert isinstance(answer, Response)
    return answer


def custom_resources(definitions: list[dict[str, Any]]) -> Iterator[Resource]:
    """The resources of CustomResourceDefinitions, as in the registry."""
    verbs = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")
    for definition in definitions:
        spec, names = definition["spec"], definition["spec"]["names"]
        stored = next(version["name"] for version in spec["versions"] if version["storage"])
        for version in spec["versions"]:
            gvk = GroupVersionKind(spec["group"], version["name"], names["kind"])
            kinds = {"status": gvk, "scale": GroupVersionKind("autoscaling", "v1", "Scale")}
            resource = Resource(
                gvr=GroupVersionResource(gvk.group, gvk.version, names["plural"]),
                gvk=gvk,
                namespaced=spec["scope"] == "Namespaced",
                verbs=verbs,
                strategy=Strategy(),
                schema=None,
                collection=Collection(names["plural"], lambda data: ({}, {}, "")),
                subresources={
                    name: Subresource(name, ("get", "patch", "update"), kinds[name])
                    for name in sorted(version.get("subresources", ()))
                },
                custom=True,
            )
            resource.singular = names["singular"]
            resource.short_names = tuple(names.get("shortNames", ()))
            resource.categories = tuple(names.get("categories", ()))
            resource.storage_gvk = GroupVersionKind(gvk.group, stored, gvk.kind)
            resource.openapi = version["schema"]["openAPIV3Schema"]
            resource.selectable = tuple(
                field["jsonPath"].removeprefix(".") for field in version.get("selectableFields", ())
            )
            yield resource
