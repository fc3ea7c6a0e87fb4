"""The core: deadlines, errors in the negotiated form, warnings, limits, synchronous gets."""

from __future__ import annotations

import asyncio

import pytest
from tests.stage.api import Api, asking

from ostinato.server.core import Server
from ostinato.server.request import MAX_BODY, Request, Response
from ostinato.server.request.context import Context
from ostinato.server.request.warning import warning_headers

MAPS = "/api/v1/namespaces/default/configmaps"


async def ask(server: Server, path: str, query: str = "", **headers: str) -> Response:
    told = {"authorization": "Bearer admin", **headers}
    answer = await server.handle(Request("GET", path, query, told))
    assert isinstance(answer, Response)
    return answer


@pytest.mark.parametrize("timeout", ["x", "5", "1s2", ""])
def test_a_timeout_that_is_no_duration_is_refused(timeout: str) -> None:
    @asking
    async def talk(api: Api) -> None:
        answer = await api.get(f"{MAPS}?timeout={timeout}")
        if not timeout:
            assert answer.code == 200
            return
        assert answer.code == 400
        assert answer.message.startswith("invalid timeout specified in the request URL - time: ")

    talk()


@asking
async def test_a_get_of_an_object_is_handled_synchronously_with_the_response_of_handle(api: Api) -> None:
    await api.post(MAPS, {"metadata": {"name": "a"}, "data": {"b": "c"}})
    paths = [
        (f"{MAPS}/a", "admin", 200),
        (f"{MAPS}/a/", "admin", 200),
        ("/api/v1/namespaces/default", "admin", 200),
        ("/api/v1/namespaces/default/endpoints/kubernetes", "admin", 200),  # with a deprecation warning
        ("/apis/rbac.authorization.k8s.io/v1/clusterroles/admin", "admin", 200),
        (f"{MAPS}/b", "admin", 404),
        (f"{MAPS}/a/status", "admin", 404),
        ("/apis/apps/v1/namespaces/default/nothings/a", "admin", 404),
        (f"{MAPS}/a", "", 403),
    ]
    for path, token, status in paths:
        for accept in ("", "*/*", "application/yaml", "application/json;as=Table;v=v1;g=meta.k8s.io"):
            headers = {"authorization": f"Bearer {token}", "accept": accept} if token else {"accept": accept}
            now = api.server.handle_now(Request("GET", path, "", headers))
            later = await api.server.handle(Request("GET", path, "", headers))
            assert isinstance(later, Response)
            assert isinstance(now, Response)
            assert now.status == status
            found = (now.status, now.body, now.content_type, list(now.headers))
            assert found == (later.status, later.body, later.content_type, list(later.headers))
    text = (await ask(api.server, "/metrics")).body.decode()
    counted = 'dry_run="",group="",resource="configmaps",scope="resource",subresource="",verb="GET",version="v1"}'
    assert f'code="200",component="apiserver",{counted} 16' in text
    assert f'code="404",component="apiserver",{counted} 8' in text


@asking
async def test_an_internal_error_is_reported_synchronously(api: Api) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("broken")

    api.server.dispatcher.verb_of = broken  # type: ignore[assignment]
    answer = api.server.handle_now(Request("GET", f"{MAPS}/a", "", {"authorization": "Bearer admin"}))
    assert isinstance(answer, Response)
    assert answer.status == 500
    assert b"internal error; see the server log" in answer.body


@pytest.mark.parametrize(
    ("method", "path", "query", "token"),
    [
        ("GET", f"{MAPS}/a", "pretty=1", "admin"),
        ("HEAD", f"{MAPS}/a", "", "admin"),
        ("DELETE", f"{MAPS}/a", "", "admin"),
        ("GET", MAPS, "", "admin"),
        ("GET", "/api/v1/watch/namespaces/default/configmaps/a", "", "admin"),
        ("GET", "/api/v1/namespaces/default/pods/a/log", "", "admin"),
        ("GET", "/api/v1/componentstatuses/etcd-0", "", "admin"),
        ("GET", "/healthz", "", "admin"),
    ],
)
def test_all_requests_but_a_plain_get_of_an_object_wait(method: str, path: str, query: str, token: str) -> None:
    @asking
    async def talk(api: Api) -> None:
        await api.post(MAPS, {"metadata": {"name": "a"}})
        headers = {"authorization": f"Bearer {token}"} if token else {}
        assert api.server.handle_now(Request(method, path, query, headers)) is None

    talk()


@asking
async def test_a_request_that_takes_longer_than_its_client_waits_is_given_up(api: Api) -> None:
    async def forever(_: Context) -> Response:
        await asyncio.Event().wait()
        raise AssertionError

    api.server.dispatcher.add({("", "configmaps", "", "list"): forever})
    answer = await api.get(f"{MAPS}?timeout=5s")
    assert (answer.code, answer.body["reason"]) == (504, "Timeout")


@asking
async def test_a_mistake_of_the_server_is_an_internal_error(api: Api) -> None:
    async def broken(_: Context) -> Response:
        raise RuntimeError("oops")

    api.server.dispatcher.add({("", "configmaps", "", "list"): broken})
    answer = await api.get(MAPS)
    assert (answer.code, answer.body["reason"]) == (500, "InternalError")
    assert "oops" not in answer.message


@asking
async def test_errors_come_in_the_form_that_was_asked_for(api: Api) -> None:
    server = api.server
    plain = await ask(server, f"{MAPS}/a")
    assert plain.body.endswith(b'"code":404}\n')
    yaml = await ask(server, f"{MAPS}/a", accept="application/yaml")
    assert (yaml.content_type, yaml.body[:15]) == ("application/yaml", b"apiVersion: v1\n")
    protobuf = await ask(server, f"{MAPS}/a", accept="application/vnd.kubernetes.protobuf")
    assert protobuf.body.startswith(b"k8s\x00")
    pretty = await ask(server, f"{MAPS}/a", **{"user-agent": "curl/8"})
    assert pretty.body.startswith(b'{\n  "kind": "Status"')


@asking
async def test_objects_and_lists_come_in_the_form_that_was_asked_for(api: Api) -> None:
    server = api.server
    await api.post(MAPS, {"metadata": {"name": "a"}})
    for path in (f"{MAPS}/a", MAPS):
        assert b"kind: ConfigMap" in (await ask(server, path, accept="application/yaml")).body
        assert (await ask(server, path, accept="application/vnd.kubernetes.protobuf")).body.startswith(b"k8s\x00")
        assert (await ask(server, path, "pretty=1")).body.startswith(b'{\n  "kind": "ConfigMap')


@pytest.mark.parametrize(
    ("path", "kind", "message"),
    [
        (MAPS, "PartialObjectMetadata", "the requested object is a list (*core.ConfigMapList)"),
        (f"{MAPS}/a", "PartialObjectMetadataList", "the requested object is not a list (*core.ConfigMap)"),
    ],
)
def test_a_list_is_no_object_and_an_object_no_list(path: str, kind: str, message: str) -> None:
    @asking
    async def talk(api: Api) -> None:
        await api.post(MAPS, {"metadata": {"name": "a"}})
        answer = await api.get(path, accept=f"application/json;as={kind};g=meta.k8s.io;v=v1")
        assert (answer.code, answer.message) == (406, f"you requested {kind}, but {message}")

    talk()


@asking
async def test_a_body_that_is_larger_than_any_object_is_refused(api: Api) -> None:
    told = {"authorization": "Bearer admin"}
    answer = await api.server.handle(Request("POST", MAPS, headers=told, body=b" " * (MAX_BODY + 1)))
    assert answer.status == 413


@asking
async def test_who_may_nothing_is_told_so_before_the_body_is_read(api: Api) -> None:
    async def read() -> bytes:
        raise AssertionError

    answer = await api.server.handle(Request("POST", MAPS, headers={"authorization": "Bearer jane"}, read=read))
    assert answer.status == 403


def test_query_parameters_that_are_not_well_formed_are_left_out() -> None:
    request = Request("GET", "/", "a=1;b=2&c=%zz&d=%41&e&d=2&f=1%2B1+1")
    assert request.query == {"d": ["A", "2"], "e": [""], "f": ["1+1 1"]}
    assert request.parameter("d") == "A"
    assert request.parameter("none") == ""
    assert Request("GET", "/").parameter("a") == ""


def test_warnings_are_told_once_in_order_and_quoted() -> None:
    assert warning_headers(['say "x"', "b", 'say "x"', "", "a\nb", "\u00e9"]) == [
        ("Warning", '299 - "say \\"x\\""'),
        ("Warning", '299 - "b"'),
        ("Warning", '299 - "\u00e9"'),
    ]


def test_warnings_that_are_too_long_in_all_are_cut() -> None:
    headers = warning_headers([f"{i}" + "x" * 1000 for i in range(30)])
    assert len(headers) == 16
    assert all(len(value) == len('299 - ""') + 256 for _, value in headers)
