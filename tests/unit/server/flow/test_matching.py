"""Which FlowSchema and priority level a request has: as a kube-apiserver v1.36.4 answered, by its headers."""

from __future__ import annotations

import json
from pathlib import Path

from tests.stage.api import Api, asking

from ostinato.server.request import Request, Response, Stream

RECORDED = json.loads((Path(__file__).parent / "recorded_matches.json").read_text())
GROUP = "/apis/flowcontrol.apiserver.k8s.io/v1"


async def _names(api: Api, plural: str) -> dict[str, str]:
    items = (await api.get(f"{GROUP}/{plural}")).body["items"]
    return {item["metadata"]["uid"]: item["metadata"]["name"] for item in items}


async def _matched(api: Api, user: str, groups: list[str], method: str, path: str) -> tuple[str, str]:
    """The uids in the headers of the answer."""
    path, _, query = path.partition("?")
    told = {"authorization": "Bearer admin", "impersonate-user": user, "content-type": "application/json"}
    request = Request(method, path, query, told, body=b"{}" if method in ("POST", "PUT", "PATCH") else b"")
    if groups:
        told["impersonate-group"] = groups[0]
        request.repeated = {"impersonate-group": groups}
    answer = await api.server.handle(request)
    if isinstance(answer, Stream):
        await answer.chunks.aclose()  # type: ignore[attr-defined]
    headers = dict(answer.headers)
    return headers.get("X-Kubernetes-Pf-Flowschema-Uid", ""), headers.get("X-Kubernetes-Pf-Prioritylevel-Uid", "")


@asking
async def test_requests_match_the_flow_schemas_that_a_kube_apiserver_chose(api: Api) -> None:
    schemas, levels = await _names(api, "flowschemas"), await _names(api, "prioritylevelconfigurations")
    assert len(RECORDED) == 276
    wrong = []
    for user, groups, method, path, schema, level in RECORDED:
        found = await _matched(api, user, groups, method, path)
        names = schemas.get(found[0], ""), levels.get(found[1], "")
        if names != (schema, level):
            wrong.append((user, method, path, schema, names))
    assert not wrong


SCHEMA = {
    "metadata": {"name": "one-tenant"},
    "spec": {
        "priorityLevelConfiguration": {"name": "small"},
        "matchingPrecedence": 100,
        "distinguisherMethod": {"type": "ByNamespace"},
        "rules": [
            {
                "subjects": [{"kind": "User", "user": {"name": "jane"}}],
                "resourceRules": [
                    {
                        "verbs": ["get", "list"],
                        "apiGroups": [""],
                        "resources": ["configmaps"],
                        "namespaces": ["default"],
                    }
                ],
            }
        ],
    },
}
LEVEL = {
    "metadata": {"name": "small"},
    "spec": {
        "type": "Limited",
        "limited": {"nominalConcurrencyShares": 1, "limitResponse": {"type": "Reject"}},
    },
}
MAPS = "/api/v1/namespaces/default/configmaps"


@asking
async def test_a_schema_matches_as_soon_as_its_level_is_there_and_no_longer_than_that(api: Api) -> None:
    created = await api.post(f"{GROUP}/flowschemas", SCHEMA)
    assert created.code == 201
    uid = created.body["metadata"]["uid"]
    assert (await _matched(api, "jane", [], "GET", MAPS))[0] != uid
    schema = (await api.get(f"{GROUP}/flowschemas/one-tenant")).body
    assert schema["status"]["conditions"][0]["status"] == "True"  # dangling
    await api.post(f"{GROUP}/prioritylevelconfigurations", LEVEL)
    assert (await _matched(api, "jane", [], "GET", MAPS))[0] == uid
    assert (await _matched(api, "jane", [], "GET", "/api/v1/namespaces/kube-system/configmaps"))[0] != uid
    assert (await _matched(api, "jane", [], "DELETE", f"{MAPS}/a"))[0] != uid
    assert (await _matched(api, "john", [], "GET", MAPS))[0] != uid
    await api.delete(f"{GROUP}/prioritylevelconfigurations/small")
    assert (await _matched(api, "jane", [], "GET", MAPS))[0] != uid


@asking
async def test_what_is_refused_tells_its_flow_too_and_what_has_no_user_does_not(api: Api) -> None:
    answer = await api.server.handle(Request("GET", MAPS, "", {"authorization": "Bearer jane"}))
    assert answer.status == 403
    assert "X-Kubernetes-Pf-Flowschema-Uid" in dict(answer.headers)
    answer = await api.server.handle(Request("GET", MAPS, "", {"authorization": "Bearer unknown"}))
    assert answer.status == 401
    assert "X-Kubernetes-Pf-Flowschema-Uid" not in dict(answer.headers)


@asking
async def test_the_answers_to_many_requests_for_one_page_do_not_gather_headers(api: Api) -> None:
    for _ in range(3):
        answer = await api.server.handle(Request("GET", "/nowhere", "", {"authorization": "Bearer admin"}))
    assert isinstance(answer, Response)
    assert [name for name, _ in answer.headers].count("X-Kubernetes-Pf-Flowschema-Uid") == 1


@asking
async def test_the_seats_are_divided_as_a_kube_apiserver_divides_them(api: Api) -> None:
    levels = api.server.flow.levels.by_name
    found = {name: (level.least, level.nominal, level.most) for name, level in levels.items()}
    assert found == {
        "catch-all": (13, 13, 613),
        "exempt": (0, 0, 600),
        "global-default": (24, 49, 649),
        "leader-election": (25, 25, 625),
        "node-high": (73, 98, 698),
        "system": (50, 74, 674),
        "workload-high": (49, 98, 698),
        "workload-low": (24, 245, 845),
    }
