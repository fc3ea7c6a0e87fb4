"""Routes: parsing of paths and methods, and responses for paths that do not exist."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.stage.api import Api, asking

from ostinato.server.core import Server
from ostinato.server.request import Request, Response
from ostinato.server.request import route as routes
from ostinato.server.request.route import Route, parse


def route(method: str, path: str, *, watch: bool = False) -> Route | None:
    return parse(method, path, watch=watch)


@pytest.mark.parametrize(
    ("method", "path", "expected"),
    [
        ("GET", "/api/v1/pods", ("list", "", "v1", "", "pods", "", "")),
        ("GET", "/api/v1/pods/", ("list", "", "v1", "", "pods", "", "")),
        ("GET", "/api/v1/namespaces/a/pods", ("list", "", "v1", "a", "pods", "", "")),
        ("GET", "/api/v1/namespaces//pods", ("list", "", "v1", "", "pods", "", "")),
        ("GET", "/api/v1/namespaces/a/pods/p", ("get", "", "v1", "a", "pods", "p", "")),
        ("HEAD", "/api/v1/namespaces/a/pods/p", ("get", "", "v1", "a", "pods", "p", "")),
        ("GET", "/api/v1/namespaces/a/pods/p/log", ("get", "", "v1", "a", "pods", "p", "log")),
        ("GET", "/api/v1/namespaces/a/pods/p%2Flog", ("get", "", "v1", "a", "pods", "p", "log")),
        ("GET", "/api/v1/namespaces/a/pods/..", ("get", "", "v1", "a", "pods", "..", "")),
        ("POST", "/api/v1/namespaces/a/pods", ("create", "", "v1", "a", "pods", "", "")),
        ("PUT", "/api/v1/namespaces/a", ("update", "", "v1", "a", "namespaces", "a", "")),
        ("PUT", "/api/v1/namespaces/a/finalize", ("update", "", "v1", "a", "namespaces", "a", "finalize")),
        ("PATCH", "/api/v1/namespaces/a/status", ("patch", "", "v1", "a", "namespaces", "a", "status")),
        ("DELETE", "/api/v1/nodes/n", ("delete", "", "v1", "", "nodes", "n", "")),
        ("DELETE", "/api/v1/nodes", ("deletecollection", "", "v1", "", "nodes", "", "")),
        ("GET", "/apis/apps/v1/deployments", ("list", "apps", "v1", "", "deployments", "", "")),
        ("GET", "/api/v1/watch/nodes", ("watch", "", "v1", "", "nodes", "", "")),
        ("GET", "/api/v1/watch/namespaces/a/pods/p", ("watch", "", "v1", "a", "pods", "p", "")),
        ("OPTIONS", "/api/v1/nodes", ("", "", "v1", "", "nodes", "", "")),
    ],
)
def test_a_path_of_a_resource(method: str, path: str, expected: tuple[str, ...]) -> None:
    found = route(method, path)
    assert found is not None
    assert (
        found.verb,
        found.group,
        found.version,
        found.namespace,
        found.resource,
        found.name,
        found.subresource,
    ) == expected


@pytest.mark.parametrize("path", ["/", "/api", "/api/v1", "/apis/apps/v1", "/apis/apps", "/healthz"])
def test_every_other_path_is_a_non_resource_path(path: str) -> None:
    assert route("GET", path) is None


@pytest.mark.parametrize("path", ["//api/v1/pods", "/apis//v1/pods"])
def test_a_path_with_an_empty_segment_at_its_start_is_authorized_and_never_served(path: str) -> None:
    found = route("GET", path)
    assert found is not None
    assert (found.resource, found.unserved) == ("pods", True)


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/api/v1/namespaces/a", False),
        ("/api/v1/namespaces/a/status", False),
        ("/api/v1/watch/namespaces/a", False),
        ("/api/v1/namespaces/a/namespaces/b", True),
        ("/api/v1/namespaces/a/namespaces/b/finalize", True),
        ("/api/v1/watch/namespaces/a/namespaces/b", True),
        ("/api/v1/namespaces/a/pods", True),
        ("/api/v1/pods", False),
    ],
)
def test_a_route_has_whether_its_resource_is_in_a_namespace(path: str, expected: bool) -> None:
    found = route("GET", path)
    assert found is not None
    assert found.in_namespace is expected


def test_only_lists_can_be_watched_by_a_parameter() -> None:
    for path, verb in (("/api/v1/pods", "watch"), ("/api/v1/namespaces/a/pods/p", "get")):
        found = route("GET", path, watch=True)
        assert found is not None
        assert found.verb == verb


_SEGMENTS = ["api", "apis", "v1", "apps", "watch", "proxy", "namespaces", "pods", "a", "b", "status", "", "%61", ".."]


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]),
            st.sampled_from(["/api/v1/", "/apis/apps/v1/", "/api/v1/namespaces/a/pods/", "//api/v1/", "/"]),
            st.lists(st.sampled_from(_SEGMENTS), max_size=6),
            st.booleans(),
        ),
        min_size=2,
        max_size=30,
    )
)
def test_a_cached_route_is_the_parsed_one(requests: list[tuple[str, str, list[str], bool]]) -> None:
    for method, start, segments, watch in requests:
        path = start + "/".join(segments)
        expected = routes._parse(method, path, watch=watch)
        assert parse(method, path, watch=watch) == expected
        assert parse(method, path, watch=watch) == expected


def test_the_cache_of_routes_is_bounded() -> None:
    for number in range(2 * routes._MAX_CACHED):
        parse("GET", f"/api/v1/namespaces/n{number}/pods/a", watch=False)
        parse("POST", f"/api/v1/namespaces/n{number}/pods", watch=False)
    parse("GET", f"/api/v1/namespaces/{'n' * routes._MAX_CACHED_PATH}/pods/a", watch=False)
    assert len(routes._objects) <= routes._MAX_CACHED
    assert len(routes._collections) <= routes._MAX_CACHED
    assert max(len(path) for _, path in routes._objects) <= routes._MAX_CACHED_PATH


@pytest.mark.parametrize(
    ("method", "path", "code"),
    [
        ("GET", "/api/v1/nonsense", 404),
        ("GET", "/api/v2/pods", 404),
        ("GET", "/apis/apps/v9/deployments", 404),
        ("GET", "/api/v1/configmaps/a", 404),
        ("GET", "/api/v1/namespaces/a/nodes", 404),
        ("GET", "/api/v1/namespaces/a/namespaces", 404),
        ("GET", "/api/v1/namespaces/a/configmaps/b/status", 404),
        ("GET", "/api/v1/pods/p/status", 404),
        ("GET", "/api/v1/watch/nodes/n/status", 404),
        ("POST", "/api/v1/configmaps", 405),
        ("DELETE", "/api/v1/configmaps", 405),
        ("PUT", "/api/v1/namespaces/a/configmaps", 405),
        ("POST", "/api/v1/namespaces/a/configmaps/b", 405),
        ("POST", "/api/v1/watch/nodes", 405),
        ("DELETE", "/api/v1/namespaces/a/pods/p/status", 405),
        ("HEAD", "/api/v1/namespaces/a/configmaps/b", 405),
        ("OPTIONS", "/api/v1/namespaces/a/configmaps", 405),
        ("GET", "/apis/authorization.k8s.io/v1/subjectaccessreviews", 405),
    ],
)
def test_a_path_is_not_found_and_a_method_not_allowed(method: str, path: str, code: int) -> None:
    @asking
    async def talk(api: Api) -> None:
        answer = await api.ask(method, path)
        assert (answer.code, answer.body["details"]) == (code, {})

    talk()


async def plain(server: Server, method: str, path: str) -> Response:
    answer = await server.handle(Request(method, path, headers={"authorization": "Bearer admin"}))
    assert isinstance(answer, Response)
    return answer


@asking
async def test_a_group_that_is_not_there_has_no_page(api: Api) -> None:
    answer = await plain(api.server, "GET", "/apis/nowhere.io/v1/things")
    assert (answer.status, answer.body) == (404, b"404 page not found\n")
    assert answer.content_type.startswith("text/plain")


@asking
async def test_custom_resources_are_routed_in_their_own_way(api: Api) -> None:
    names = {"plural": "widgets", "kind": "Widget"}
    schema = {"openAPIV3Schema": {"type": "object"}}
    version = {"name": "v1", "served": True, "storage": True, "schema": schema, "subresources": {"status": {}}}
    for scope, plural in (("Namespaced", "widgets"), ("Cluster", "globals")):
        spec = {"group": "x.dev", "names": {**names, "plural": plural, "kind": scope}, "scope": scope}
        definition = {"metadata": {"name": f"{plural}.x.dev"}, "spec": {**spec, "versions": [version]}}
        made = await api.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition)
        assert made.code == 201
    one = "/apis/x.dev/v1/namespaces/default/widgets/a"
    widget = {"apiVersion": "x.dev/v1", "kind": "Namespaced", "metadata": {"name": "a"}}
    assert (await api.post(one.removesuffix("/a"), widget)).code == 201
    for method, path in (
        ("GET", "/apis/x.dev/v1/widgets/a"),
        ("POST", "/apis/x.dev/v1/widgets"),
        ("GET", "/apis/x.dev/v1/namespaces/default/globals"),
        ("GET", "/apis/x.dev/v2/widgets"),
    ):
        assert (await plain(api.server, method, path)).body == b"404 page not found\n"
    assert (await api.ask("HEAD", one)).code == 200
    assert (await api.get(f"{one}/nonsense")).message == 'widgets.x.dev "a" not found'
    unsupported = await api.delete(f"{one}/status")
    assert unsupported.message == 'delete is not supported on resources of kind "widgets.x.dev"'
    assert (await api.put(one.removesuffix("/a"), widget)).message == "name must be provided"
