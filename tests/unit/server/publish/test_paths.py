"""Non-resource paths: authorization and responses."""

from __future__ import annotations

import asyncio
import json
import re
from typing import Any

import pytest
from tests.unit.server.publish.samples import CUSTOM, ask, custom_resources, new_server

from ostinato.server.core import Server
from ostinato.server.publish.metrics import Metrics
from ostinato.server.request import Request, Response, User
from ostinato.server.request.route import Route

NOT_FOUND = "the server could not find the requested resource"
NOT_ALLOWED = "the server does not allow this method on the requested resource"


@pytest.fixture
def server() -> Server:
    return new_server()


def status_of(answer: Response) -> tuple[int, Any]:
    told = json.loads(answer.body)
    assert told["kind"] == "Status"
    return answer.status, told["message"]


# The root, the version, the issuer.


def test_the_root_lists_the_paths_that_answer(server: Server) -> None:
    paths = json.loads(ask(server, "/").body)["paths"]
    assert paths == sorted(paths)
    assert paths[:3] == ["/.well-known/openid-configuration", "/api", "/api/v1"]
    for path in paths:
        if path != "/openapi/v3/":
            assert ask(server, path).status == 200, path


def test_the_version_is_that_of_the_api_with_a_suffix(server: Server) -> None:
    for path in ("/version", "/version/"):
        answer = ask(server, path)
        told = json.loads(answer.body)
        assert (told["major"], told["minor"]) == ("1", "36")
        assert re.fullmatch(r"v1\.36\.\d+\+ostinato", told["gitVersion"])
        assert answer.body.startswith(b'{\n  "major": "1",')


def test_the_version_is_served_as_json_only(server: Server) -> None:
    answer = ask(server, "/version", accept="application/yaml")
    assert answer.status == 406
    assert b"Available representations: application/json" in answer.body


def test_the_issuer_of_tokens_publishes_its_key(server: Server) -> None:
    answer = ask(server, "/.well-known/openid-configuration", host="h:1")
    assert json.loads(answer.body) == {
        "issuer": "https://kubernetes.default.svc",
        "jwks_uri": "https://h:1/openid/v1/jwks",
        "response_types_supported": ["id_token"],
        "subject_types_supported": ["public"],
        "id_token_signing_alg_values_supported": ["ES256"],
    }
    assert (answer.content_type, [*answer.headers]) == (
        "application/json",
        [("Cache-Control", "public, max-age=3600")],
    )
    answer = ask(server, "/openid/v1/jwks")
    [key] = json.loads(answer.body)["keys"]
    assert (answer.content_type, [*key]) == (
        "application/jwk-set+json",
        ["use", "kty", "kid", "crv", "alg", "x", "y"],
    )


# Unknown paths.


@pytest.mark.parametrize(
    "path",
    ["/nonsense", "/apis/nowhere.io", "/apis/nowhere.io/v1", "//apis", "/healthz/", "/healthz/no", "/readyz/ping/x"],
)
def test_an_unknown_path_is_a_page_not_found(server: Server, path: str) -> None:
    answer = ask(server, path)
    assert (answer.status, answer.body) == (404, b"404 page not found\n")
    assert answer.content_type == "text/plain; charset=utf-8"


@pytest.mark.parametrize("path", ["/api/v2", "/apis/apps/v9", "/version/x", "/api/kubernetes"])
def test_an_unknown_version_is_reported_as_a_status(server: Server, path: str) -> None:
    assert status_of(ask(server, path)) == (404, NOT_FOUND)


def test_a_version_that_a_custom_group_has_not_is_a_page_not_found(server: Server) -> None:
    for resource in custom_resources(CUSTOM["definitions"]):
        server.registry.add(resource)
    assert ask(server, "/apis/zoo.example.com/v9").body == b"404 page not found\n"
    assert ask(server, "/apis/zoo.example.com/v1", method="POST").status == 200


@pytest.mark.parametrize("path", ["/api", "/api/v1", "/apis/apps/v1", "/version", "/openid/v1/jwks"])
@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "HEAD", "OPTIONS"])
def test_some_paths_can_only_be_read(server: Server, path: str, method: str) -> None:
    assert status_of(ask(server, path, method=method)) == (405, NOT_ALLOWED)


@pytest.mark.parametrize("path", ["/", "/apis", "/apis/apps", "/healthz", "/metrics", "/openapi/v3"])
def test_the_others_do_not_mind_the_method(server: Server, path: str) -> None:
    assert ask(server, path, method="POST").status == 200


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("/apis", "only the following media types are accepted: application/json, application/yaml, "),
        ("/apis/apps", "only the following media types are accepted: application/json, application/yaml, "),
        ("/apis/apps/v1", "406: Not Acceptable\n\nAvailable representations: application/json, application/yaml, "),
    ],
)
def test_an_unknown_media_type_is_rejected(server: Server, path: str, message: str) -> None:
    code, told = status_of(ask(server, path, accept="text/foo"))
    assert code == 406
    assert told == message + "application/vnd.kubernetes.protobuf"


# Authorization.


def response_to(server: Server, user: User | None, path: str, method: str = "GET") -> Response:
    headers = {}
    if user is not None:
        server.authenticator.add("u", user)
        headers["authorization"] = "Bearer u"

    async def started() -> Any:
        await server.start()  # roles say who may ask
        return await server.handle(Request(method, path, headers=headers))

    answer = asyncio.run(started())
    assert isinstance(answer, Response)
    return answer


@pytest.mark.parametrize("path", ["/healthz", "/livez", "/readyz", "/version", "/version/"])
def test_health_and_version_need_no_authentication(server: Server, path: str) -> None:
    assert response_to(server, None, path).status == 200


@pytest.mark.parametrize("path", ["/", "/api", "/apis", "/metrics", "/openapi/v2", "/healthz/ping", "/nonsense"])
def test_everything_else_needs_authentication(server: Server, path: str) -> None:
    answer = response_to(server, None, path)
    assert status_of(answer) == (403, f'forbidden: User "system:anonymous" cannot get path "{path}"')
    assert json.loads(answer.body)["details"] == {}


def test_unauthenticated_requests_are_read_only(server: Server) -> None:
    answer = response_to(server, None, "/healthz", "POST")
    assert status_of(answer) == (403, 'forbidden: User "system:anonymous" cannot post path "/healthz"')


@pytest.mark.parametrize(("path", "code"), [("/api", 200), ("/apis/apps/v1", 200), ("/openapi/v3", 200)])
def test_authenticated_users_may_use_discovery(server: Server, path: str, code: int) -> None:
    assert response_to(server, User("alice"), path).status == code


def test_metrics_need_permission(server: Server) -> None:
    answer = response_to(server, User("alice"), "/metrics")
    assert status_of(answer) == (403, 'forbidden: User "alice" cannot get path "/metrics"')


# Health.


@pytest.mark.parametrize("endpoint", ["healthz", "livez", "readyz"])
def test_health_is_one_word_or_a_line_for_each_check(server: Server, endpoint: str) -> None:
    answer = ask(server, f"/{endpoint}")
    assert (answer.status, answer.body, answer.content_type) == (200, b"ok", "text/plain; charset=utf-8")
    lines = ask(server, f"/{endpoint}?verbose").body.decode().splitlines()
    assert lines[:3] == ["[+]ping ok", "[+]log ok", "[+]etcd ok"]
    assert lines[-1] == f"{endpoint} check passed"


def test_a_single_check_has_its_own_path(server: Server) -> None:
    assert ask(server, "/readyz/etcd").body == b"ok"


def test_a_check_can_be_excluded_and_an_unknown_one_is_warned_of(server: Server) -> None:
    lines = ask(server, "/livez?verbose&exclude=etcd&exclude=b&exclude=a").body.decode().splitlines()
    assert "[+]etcd excluded: ok" in lines
    assert lines[-2] == 'warn: some health checks cannot be excluded: no matches for "a","b"'


def test_a_failed_store_check_shows_its_reason_only_on_its_own_path(server: Server) -> None:
    server.index.failure = "disk full"
    answer = ask(server, "/healthz")
    assert answer.status == 500
    assert answer.body == b"[+]ping ok\n[+]log ok\n[-]etcd failed: reason withheld\nhealthz check failed\n"
    assert ask(server, "/healthz?exclude=etcd").status == 200
    one = ask(server, "/healthz/etcd")
    assert (one.status, one.body) == (500, b"internal server error: disk full\n")


def test_a_server_that_stops_is_alive_but_not_ready(server: Server) -> None:
    asyncio.run(server.close())
    assert ask(server, "/livez").status == 200
    assert b"[-]shutdown failed: reason withheld\n" in ask(server, "/readyz").body


# Metrics.


def metrics_of(server: Server) -> dict[str, float]:
    answer = ask(server, "/metrics")
    assert answer.content_type.startswith("text/plain; version=0.0.4")
    lines = [line for line in answer.body.decode().splitlines() if not line.startswith("#")]
    return {line.rpartition(" ")[0]: float(line.rpartition(" ")[2]) for line in lines}


def labels(resource: str, verb: str, scope: str, version: str = "v1") -> str:
    return (
        f'component="apiserver",dry_run="",group="",resource="{resource}",scope="{scope}",'
        f'subresource="",verb="{verb}",version="{version}"'
    )


def test_requests_are_counted_by_resource_and_status_code(server: Server) -> None:
    for _ in range(3):
        ask(server, "/api/v1/namespaces")
    ask(server, "/api/v1/namespaces/none")
    found = metrics_of(server)
    assert found[f'apiserver_request_total{{code="200",{labels("namespaces", "LIST", "cluster")}}}'] == 3
    assert found[f'apiserver_request_total{{code="404",{labels("namespaces", "GET", "resource")}}}'] == 1
    assert found[f"apiserver_request_duration_seconds_count{{{labels('namespaces', 'LIST', 'cluster')}}}"] == 3


def test_text_of_a_client_never_becomes_a_label(server: Server) -> None:
    for path in ("/api/v1/made-up", "/apis/made.up/v1/made-up", "/api/v1/namespaces/a/pods/b/made-up", "/made-up"):
        ask(server, path)
    ask(server, "/api/v1/namespaces", method="MADEUP")
    assert "made" not in "".join(metrics_of(server)).lower()


def test_requests_under_way_are_counted(server: Server) -> None:
    assert metrics_of(server)['apiserver_current_inflight_requests{request_kind="readOnly"}'] == 1
    assert server.metrics.text((), "v") != ""
    assert metrics_of(server)['apiserver_current_inflight_requests{request_kind="mutating"}'] == 0


def test_the_time_that_answers_took_falls_into_cumulated_buckets() -> None:
    metrics = Metrics(0.0)
    route = Route("get", "", "v1", "a", "pods", "b", "")
    for seconds in (0.001, 0.005, 0.03, 100.0):
        metrics.begin("GET")
        metrics.end("GET", route, 200, seconds)
    text = metrics.text((), "v1")
    name = f"apiserver_request_duration_seconds_bucket{{{labels('pods', 'GET', 'resource')}"
    assert f'{name},le="0.005"}} 2\n' in text
    assert f'{name},le="0.05"}} 3\n' in text
    assert f'{name},le="60"}} 3\n' in text
    assert f'{name},le="+Inf"}} 4\n' in text


def test_stored_objects_are_counted_by_resource(server: Server) -> None:
    found = metrics_of(server)
    assert found['apiserver_resource_objects{group="apps",resource="deployments"}'] == 0
    assert found['apiserver_registered_watchers{group="",resource="pods"}'] == 0
    assert found['apiserver_watch_events_total{group="",resource="pods"}'] == 0


# Component statuses.


def test_component_statuses_report_the_store(server: Server) -> None:
    answer = ask(server, "/api/v1/componentstatuses")
    assert ("Warning", '299 - "v1 ComponentStatus is deprecated in v1.19+"') in answer.headers
    (item,) = json.loads(answer.body)["items"]
    assert item["metadata"] == {"name": "etcd-0"}
    assert item["conditions"] == [{"type": "Healthy", "status": "True", "message": "ok"}]
    server.index.failure = "disk full"
    told = json.loads(ask(server, "/api/v1/componentstatuses/etcd-0").body)
    assert told["conditions"] == [{"type": "Healthy", "status": "False", "message": "disk full"}]
    assert status_of(ask(server, "/api/v1/componentstatuses/x")) == (404, 'componentstatus "x" not found')
