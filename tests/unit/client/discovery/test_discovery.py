"""Discovery: the catalogue of a server, told at once or piece by piece, whole or in part."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from tests.stage.client import Stage, staged
from tests.stage.kinds import WIDGETS, Json
from tests.stage.transport import Answer, ScriptedTransport, in_turn

from ostinato.api.errors import APIError, Forbidden, ServiceUnavailable
from ostinato.api.gvk import GroupResource, GroupVersion, GroupVersionKind
from ostinato.client.discovery.discovery import ACCEPT, ApiResource, Catalogue, Discovery
from ostinato.client.transport.exchange import Exchange
from ostinato.client.transport.protocol import ConnectionLost, Request
from ostinato.world import Simulation

PODS: Json = {
    "resource": "pods",
    "responseKind": {"group": "", "version": "v1", "kind": "Pod"},
    "scope": "Namespaced",
    "singularResource": "pod",
    "verbs": ["get", "list"],
    "shortNames": ["po"],
    "categories": ["all"],
    "subresources": [{"subresource": "status", "responseKind": {"group": "", "version": "v1", "kind": "Pod"}}],
}


def _aggregated(*groups: tuple[str, list[Json]], version: str = "v2") -> Json:
    items = [{"metadata": {"name": name} if name else {}, "versions": versions} for name, versions in groups]
    return {"kind": "APIGroupDiscoveryList", "apiVersion": f"apidiscovery.k8s.io/{version}", "items": items}


def _read(script: Any) -> tuple[Catalogue, ScriptedTransport]:
    world = Simulation(1)
    transport = ScriptedTransport(script)
    return world.run(Discovery(Exchange(transport)).read()), transport


def _by_path(answers: dict[str, Any]) -> Any:
    def script(request: Request) -> Answer | Exception:
        answer = answers.get(request.path, Answer(404, b"404 page not found", {"content-type": "text/plain"}))
        return Answer(body=answer) if isinstance(answer, dict) else answer

    return script


def _infos(catalogue: Catalogue) -> dict[GroupVersionKind, ApiResource]:
    return {each.info.gvk: each for version in catalogue.versions for each in version.resources}


@pytest.mark.parametrize("version", ["v2", "v2beta1"])
def test_aggregated_discovery_takes_two_requests(version: str) -> None:
    core = _aggregated(("", [{"version": "v1", "resources": [PODS]}]), version=version)
    widgets = {**PODS, "resource": "widgets", "responseKind": {"kind": "Widget"}, "scope": "Cluster"}
    groups = _aggregated(("example.dev", [{"version": "v1", "resources": [widgets]}]), version=version)
    catalogue, transport = _read(_by_path({"/api": core, "/apis": groups}))
    assert [each.version for each in catalogue.versions] == [GroupVersion("", "v1"), GroupVersion("example.dev", "v1")]
    pods = _infos(catalogue)[GroupVersionKind("", "v1", "Pod")]
    assert pods.verbs == ("get", "list")
    assert pods.subresources == ("status",)
    assert (pods.info.plural, pods.info.singular, pods.info.namespaced) == ("pods", "pod", True)
    assert (pods.info.short_names, pods.info.categories) == (("po",), ("all",))
    assert not _infos(catalogue)[GroupVersionKind("example.dev", "v1", "Widget")].info.namespaced
    assert [dict(request.headers)["Accept"] for request in transport.requests] == [ACCEPT, ACCEPT]


def test_a_server_may_have_no_core() -> None:
    catalogue, _ = _read(_by_path({"/apis": _aggregated(("g", [{"version": "v1", "resources": [PODS]}]))}))
    assert [str(each.version) for each in catalogue.versions] == ["g/v1"]


def test_a_stale_group_version_has_failed_and_the_others_are_usable() -> None:
    versions = [{"version": "v2", "freshness": "Stale"}, {"version": "v1", "resources": [PODS]}]
    catalogue, _ = _read(_by_path({"/apis": _aggregated(("g", versions))}))
    assert [str(each.version) for each in catalogue.versions] == ["g/v1"]
    assert str(catalogue.failed[GroupVersion("g", "v2")]) == "stale GroupVersion discovery: g/v2"


def test_a_resource_that_has_subresources_alone_is_none() -> None:
    odd = [{"resource": "odd", "subresources": []}, {"resource": "odder", "responseKind": {"kind": ""}}]
    catalogue, _ = _read(_by_path({"/apis": _aggregated(("g", [{"version": "v1", "resources": odd}]))}))
    assert catalogue.versions[0].resources == ()


PLAIN_PODS: Json = {
    "resources": [
        {"name": "pods", "kind": "Pod", "namespaced": True, "singularName": "", "verbs": ["get"], "shortNames": ["po"]},
        {"name": "pods/status", "kind": "Pod", "namespaced": True, "verbs": ["get"]},
    ]
}
PLAIN: dict[str, Any] = {
    "/api": {"kind": "APIVersions", "versions": ["v1"]},
    "/apis": {
        "kind": "APIGroupList",
        "groups": [
            {
                "name": "apps",
                "versions": [{"version": "v1beta1"}, {"version": "v1"}],
                "preferredVersion": {"version": "v1"},
            },
            {"name": "g", "versions": [{"version": "v1"}]},
        ],
    },
    "/api/v1": PLAIN_PODS,
    "/apis/apps/v1": {"resources": [{"name": "deployments", "kind": "Deployment", "namespaced": True}]},
    "/apis/apps/v1beta1": {"resources": None},
    "/apis/g/v1": {},
}


def test_an_older_server_is_discovered_version_by_version() -> None:
    catalogue, _ = _read(_by_path(PLAIN))
    assert [str(each.version) for each in catalogue.versions] == ["v1", "apps/v1", "apps/v1beta1", "g/v1"]
    pods = _infos(catalogue)[GroupVersionKind("", "v1", "Pod")]
    assert pods.info.singular == "pod", "guessed, where it is not told"
    assert pods.subresources == ("status",)
    assert len(catalogue.versions[0].resources) == 1


def test_one_document_in_the_new_form_is_not_enough() -> None:
    catalogue, transport = _read(_by_path({**PLAIN, "/apis": _aggregated(("g", []))}))
    assert [str(each.version) for each in catalogue.versions] == ["v1"]
    assert [request.path for request in transport.requests][2:] == ["/api/v1"]


def test_an_unavailable_group_version_is_retried_once_and_does_not_affect_others() -> None:
    broken = ConnectionLost("reset")
    catalogue, transport = _read(_by_path({**PLAIN, "/apis/g/v1": broken}))
    assert catalogue.failed == {GroupVersion("g", "v1"): broken}
    assert len(catalogue.versions) == 3
    assert [request.path for request in transport.requests].count("/apis/g/v1") == 2


@pytest.mark.parametrize("answer", [ConnectionLost("reset"), Answer(503, b"no"), Answer(200, b"<html>")])
def test_a_server_that_fails_discovery_is_an_error(answer: Answer | Exception) -> None:
    with pytest.raises((ConnectionLost, ServiceUnavailable)):
        _read(in_turn(answer))


def test_an_error_response_has_the_message_of_the_server() -> None:
    refusal = Forbidden.of(GroupResource("", ""), "", "you may not look").to_dict()
    with pytest.raises(APIError, match="you may not look"):
        _read(in_turn(Answer(403, refusal)))


def test_unchanged_documents_are_not_transferred_again() -> None:
    document = msgspec.json.encode(_aggregated(("g", [{"version": "v1", "resources": [PODS]}])))
    sent: list[int] = []

    def script(request: Request) -> Answer:
        known = dict(request.headers).get("If-None-Match") == '"tag"'
        sent.append(304 if known else 200)
        return Answer(304, b"") if known else Answer(200, document, {"etag": '"tag"'})

    world = Simulation(1)
    discovery = Discovery(Exchange(ScriptedTransport(script)))

    async def main() -> None:
        assert await discovery.read() == await discovery.read()

    world.run(main())
    assert sent == [200, 200, 304, 304]


def test_an_unsolicited_304_is_an_error() -> None:
    with pytest.raises(APIError):
        _read(in_turn(Answer(304, b"")))


@staged
async def test_the_catalogue_of_our_server_is_the_same_in_both_forms(stage: Stage) -> None:
    await stage.client.create(WIDGETS)
    whole = await Discovery(Exchange(stage.transport)).read()
    pieces = await Discovery(Exchange(Older(stage.transport))).read()
    assert whole.failed == pieces.failed == {}
    assert {key: _sorted(each) for key, each in _infos(whole).items()} == {
        key: _sorted(each) for key, each in _infos(pieces).items()
    }
    assert [each.version for each in whole.versions] == [each.version for each in pieces.versions]


def _sorted(resource: ApiResource) -> tuple[Any, ...]:
    return resource.info, sorted(resource.verbs), sorted(resource.subresources)


class Older:
    """A server that knows no aggregated discovery."""

    def __init__(self, inner: Any) -> None:
        self.inner = inner
        self.host = inner.host

    async def request(self, request: Request) -> Any:
        return await self.inner.request(request._replace(headers=[("Accept", "application/json")]))
