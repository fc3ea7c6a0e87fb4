"""Discovery documents of extension servers."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from ostinato.server.aggregation.api_services import ApiService, Priority, ServiceName
from ostinato.server.aggregation.fetch import Fetched, FetchError, FetchOptions
from ostinato.server.aggregation.remote_discovery import RemoteDiscovery, converted

AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"


def service(*, available: bool = True) -> ApiService:
    return ApiService("v1.g", "u", "g", "v1", Priority(1, 1), ServiceName("ns", "s"), available=available)


class Answers:
    """In place of a Fetcher: scripted answers by path."""

    def __init__(self, **answers: Fetched) -> None:
        self.answers = {f"/{path.replace('_', '/')}": answer for path, answer in answers.items()}
        self.etags: list[str] = []

    async def get(self, _: ApiService, path: str, options: FetchOptions) -> Fetched:
        self.etags.append(options.etag)
        return self.answers.get(path, Fetched("", 404, b""))


def document(resource: dict[str, Any]) -> Fetched:
    versions = [{"version": "v1", "resources": [resource], "freshness": "Current"}]
    body = {"items": [{"metadata": {"name": "g"}, "versions": versions}]}
    return Fetched("", 200, json.dumps(body).encode(), AGGREGATED, '"tag"')


def test_an_aggregated_document_is_kept_by_its_etag() -> None:
    async def play() -> None:
        answers = Answers(apis=document({"resource": "things", "verbs": ["get"], "scope": "Cluster"}))
        discovery = RemoteDiscovery(answers)  # type: ignore[arg-type]  # has what is used
        await discovery.refresh(service())
        [resource] = discovery.entries["g", "v1"]["resources"]
        assert resource["responseKind"] == {"group": "", "version": "", "kind": ""}
        before = discovery.generation
        answers.answers["/apis"] = Fetched("", 304, b"")
        await discovery.refresh(service())
        assert answers.etags == ["", '"tag"']
        assert discovery.generation == before
        assert discovery.entries["g", "v1"]["freshness"] == "Current"

    asyncio.run(play())


def test_a_server_that_does_not_answer_is_stale_and_keeps_no_resources() -> None:
    async def play() -> None:
        answers = Answers(apis=document({"resource": "things"}))
        discovery = RemoteDiscovery(answers)  # type: ignore[arg-type]  # has what is used
        await discovery.refresh(service())
        answers.answers["/apis"] = Fetched("", 503, b"")
        with pytest.raises(FetchError, match="503"):
            await discovery.refresh(service())
        assert discovery.entries["g", "v1"] == {"version": "v1", "freshness": "Stale"}
        await discovery.refresh(service(available=False))
        assert discovery.entries["g", "v1"] == {"version": "v1", "freshness": "Stale"}

    asyncio.run(play())


@pytest.mark.parametrize(
    "body", [b"", b"[]", b'{"items": [1]}', b'{"items": {"a": 1}}', b'{"items": [{"versions": 3}]}']
)
def test_a_document_that_is_none_is_an_error(body: bytes) -> None:
    async def play() -> None:
        discovery = RemoteDiscovery(Answers(apis=Fetched("", 200, body, AGGREGATED)))  # type: ignore[arg-type]
        with pytest.raises(FetchError, match="discovery of v1"):
            await discovery.refresh(service())
        assert discovery.entries["g", "v1"]["freshness"] == "Stale"

    asyncio.run(play())


def test_a_subresource_without_its_resource_gets_one() -> None:
    only = {"name": "pods/metric", "namespaced": True, "kind": "MetricValueList", "verbs": ["get"]}
    kind = {"group": "", "version": "", "kind": "MetricValueList"}
    assert converted([only]) == [
        {
            "resource": "pods",
            "responseKind": {"group": "", "version": "", "kind": ""},
            "scope": "Namespaced",
            "verbs": [],
            "subresources": [{"subresource": "metric", "responseKind": kind, "verbs": ["get"]}],
        }
    ]
