"""Reading through a client: one object, lists and pages, kinds with and without a class."""

from __future__ import annotations

import copy
from typing import NamedTuple

import pytest
from tests.stage.client import Stage, staged
from tests.stage.kinds import WIDGETS, Widget, config_map
from tests.stage.transport import Answer, in_turn, scripted

from ostinato.api.codec import ObjectError, WrongKind
from ostinato.api.errors import APIError, Expired, InternalError, NotFound, Unknown
from ostinato.api.gvk import GroupVersionKind, NamespacedName
from ostinato.api.meta import ObjectMeta
from ostinato.api.object import kind_of, origin
from ostinato.client import Client, MetadataOf, NoSuchKind, Unstructured
from ostinato.client.list_watch import ListOptions
from ostinato.kinds.core_v1 import ConfigMap, Namespace, Node, Pod
from ostinato.world import Simulation

CONFIG_MAPS = Unstructured.of("v1", "ConfigMap")


class Asked(NamedTuple):
    """What a controller is asked to reconcile."""

    namespace: str
    name: str


@staged
async def test_an_object_is_named_by_its_name_in_the_clients_namespace(stage: Stage) -> None:
    await stage.client.create(config_map("a", key="value"))
    assert (await stage.client.get(ConfigMap, "a")).data == {"key": "value"}


@staged
async def test_an_object_is_named_by_anything_that_has_a_namespace_and_a_name(stage: Stage) -> None:
    await stage.client.create(ConfigMap(metadata=ObjectMeta(name="a", namespace="kube-system")))
    for key in (NamespacedName("kube-system", "a"), Asked("kube-system", "a")):
        assert (await stage.client.get(ConfigMap, key)).metadata.namespace == "kube-system"
    assert (await stage.client.get(ConfigMap, "a", namespace="kube-system")).metadata.name == "a"


@staged
async def test_conflicting_namespaces_are_rejected(stage: Stage) -> None:
    with pytest.raises(ValueError, match="namespace='y' differs from that of the key"):
        await stage.client.get(ConfigMap, NamespacedName("x", "a"), namespace="y")


@staged
async def test_without_a_namespace_a_bare_name_is_rejected(stage: Stage) -> None:
    client = stage.new_client(namespace="")
    with pytest.raises(ValueError, match="ConfigMap a: namespace is required"):
        await client.get(ConfigMap, "a")
    with pytest.raises(ValueError, match="ConfigMap a: namespace is required"):
        await client.create(ConfigMap(metadata=ObjectMeta(name="a")))
    assert stage.transport.requests == []


@staged
async def test_cluster_scoped_objects_have_no_namespace(stage: Stage) -> None:
    assert (await stage.client.get(Namespace, "default")).metadata.name == "default"
    with pytest.raises(ValueError, match="Node: the kind is cluster-scoped; omit namespace 'x'"):
        await stage.client.get(Node, NamespacedName("x", "a"))


@staged
async def test_a_missing_object_is_an_error_with_its_name(stage: Stage) -> None:
    with pytest.raises(NotFound, match='configmaps "nope" not found'):
        await stage.client.get(ConfigMap, "nope")


@staged
async def test_missing_gives_a_default_instead(stage: Stage) -> None:
    assert await stage.client.get(ConfigMap, "nope", missing=None) is None
    assert await stage.client.get(CONFIG_MAPS, "nope", missing=7) == 7


@staged
async def test_missing_does_not_hide_that_the_kind_is_not_there(stage: Stage) -> None:
    for kind in (Widget, Unstructured.of("example.dev/v1", "Widget")):
        with pytest.raises(NoSuchKind, match=r'no matches for kind "Widget" in version "example\.dev/v1"'):
            await stage.client.get(kind, "a", missing=None)


@staged
async def test_missing_does_not_hide_other_errors(stage: Stage) -> None:
    with pytest.raises(APIError, match="invalid"):
        await stage.client.get(ConfigMap, "a", missing=None, resource_version="x")


@staged
async def test_a_redefined_kind_is_found_with_its_new_name_and_scope(stage: Stage) -> None:
    kind = Unstructured.of("example.dev/v1", "Widget")
    await stage.client.create(WIDGETS)
    assert await stage.client.list(kind) == []
    await stage.client.delete(WIDGETS)
    await stage.world.clock.sleep(5)
    anew = copy.deepcopy(WIDGETS)
    anew["metadata"]["name"], anew["spec"]["scope"] = "gizmos.example.dev", "Cluster"
    anew["spec"]["names"] = {"plural": "gizmos", "singular": "gizmo", "kind": "Widget"}
    await stage.client.create(anew)
    await stage.world.clock.sleep(5)
    with pytest.raises(NoSuchKind):
        await stage.client.list(kind)
    made = await stage.client.create({"apiVersion": "example.dev/v1", "kind": "Widget", "metadata": {"name": "a"}})
    assert "namespace" not in made["metadata"]
    assert await stage.client.get(kind, "a") == made
    assert len(await stage.client.list(kind)) == 1


@staged
async def test_a_class_needs_no_discovery(stage: Stage) -> None:
    await stage.client.create(WIDGETS)
    await stage.client.create(Widget(metadata=ObjectMeta(name="a")))
    assert (await stage.client.get(Widget, "a")).metadata.name == "a"
    assert not {request.path for request in stage.transport.requests} & {"/api", "/apis"}


@staged
async def test_a_kind_without_a_class_is_found_by_discovery_once(stage: Stage) -> None:
    await stage.client.create(WIDGETS)
    widgets = Unstructured.of("example.dev/v1", "Widget")
    await stage.client.create({"apiVersion": "example.dev/v1", "kind": "Widget", "metadata": {"name": "a"}})
    for _ in range(3):
        assert (await stage.client.get(widgets, "a"))["kind"] == "Widget"
    assert [request.path for request in stage.transport.requests].count("/apis") == 1


@staged
async def test_a_bare_group_version_kind_gives_dicts(stage: Stage) -> None:
    await stage.client.create(config_map("a"))
    found = await stage.client.get(GroupVersionKind("", "v1", "ConfigMap"), "a")  # type: ignore[call-overload]
    assert found["metadata"]["name"] == "a"


@staged
async def test_metadata_only_objects_are_of_their_kind(stage: Stage) -> None:
    await stage.client.create(config_map("a", key="value"))
    found = await stage.client.get(MetadataOf(ConfigMap), "a")
    assert found.metadata.name == "a"
    assert kind_of(found).gvk == GroupVersionKind("", "v1", "ConfigMap")
    data = origin(found)
    assert data is not None
    assert b"value" not in data
    [listed] = [each async for each in stage.client.list(MetadataOf(ConfigMap), namespace="default")]
    assert type(listed) is type(found)


@staged
async def test_metadata_of_a_kind_without_a_class(stage: Stage) -> None:
    await stage.client.create(WIDGETS)
    await stage.client.create(Widget(metadata=ObjectMeta(name="a")))
    found = await stage.client.get(MetadataOf(Unstructured.of("example.dev/v1", "Widget")), "a")
    assert kind_of(found).plural == "widgets"


def test_an_argument_that_is_not_a_kind_is_rejected() -> None:
    client, _ = scripted(Simulation(1), in_turn(Answer()))
    with pytest.raises(TypeError, match="is not a kind; pass a class"):
        client.list("pods")  # type: ignore[arg-type]


@staged
async def test_unknown_options_are_rejected(stage: Stage) -> None:
    with pytest.raises(TypeError, match="unknown option 'namspace'; use one of namespace, resource_version"):
        await stage.client.get(ConfigMap, "a", namspace="x")  # type: ignore[call-overload]


# Lists


async def _fill(client: Client, count: int) -> None:
    for number in range(count):
        await client.create(config_map(f"c{number:03}"))


@staged
async def test_a_list_is_iterated_page_by_page(stage: Stage) -> None:
    await _fill(stage.client, 7)
    listing = stage.client.list(ConfigMap, namespace="default", page_size=3)
    names = [each.metadata.name async for each in listing]
    assert names == [f"c{number:03}" for number in range(7)]
    assert sum("limit=3" in asked for asked in stage.transport.calls) == 3
    assert [each.metadata.name async for each in listing] == names, "it can be iterated again"


@staged
async def test_the_next_page_is_requested_only_when_needed(stage: Stage) -> None:
    await _fill(stage.client, 7)
    stage.transport.requests.clear()
    async for _ in stage.client.list(ConfigMap, namespace="default", page_size=3):
        break
    assert len(stage.transport.requests) == 1


@staged
async def test_an_awaited_list_is_complete_and_has_its_resource_version(stage: Stage) -> None:
    await _fill(stage.client, 7)
    found = await stage.client.list(CONFIG_MAPS, namespace="default", page_size=3)
    assert [each["metadata"]["name"] for each in found] == [f"c{number:03}" for number in range(7)]
    assert all(each["kind"] == "ConfigMap" for each in found), "built-in kinds do not say so in lists"
    assert int(found.resource_version) == int(found[-1]["metadata"]["resourceVersion"])


@staged
async def test_pages_after_the_first_are_of_the_same_state(stage: Stage) -> None:
    await _fill(stage.client, 4)
    found = []
    async for each in stage.client.list(ConfigMap, namespace="default", page_size=2, resource_version="0"):
        found.append(each.metadata.name)
        await stage.client.delete(each, missing_ok=True)
    assert found == ["c000", "c001", "c002", "c003"]
    assert sum("resourceVersion=0" in asked for asked in stage.transport.calls) == 1


@staged
async def test_a_list_selects_by_labels_and_fields(stage: Stage) -> None:
    for name in ("a", "b"):
        made = config_map(name)
        made.metadata.labels = {"app": name}
        await stage.client.create(made)
    by_label = await stage.client.list(ConfigMap, labels={"app": "a"})
    by_field = await stage.client.list(ConfigMap, fields={"metadata.name": "b"}, namespace="default")
    assert [each.metadata.name for each in [*by_label, *by_field]] == ["a", "b"]


def _page(*names: str, token: str = "", version: str = "9") -> Answer:
    items = [{"metadata": {"name": name}} for name in names]
    return Answer(
        body={
            "kind": "ConfigMapList",
            "apiVersion": "v1",
            "metadata": {"resourceVersion": version, "continue": token},
            "items": items,
        }
    )


def _expired(token: str = "") -> Answer:
    error = Expired.of("The provided continue parameter is too old to display a consistent list result.").to_dict()
    return Answer(410, {**error, "metadata": {"continue": token}})


def test_an_awaited_list_whose_token_expires_is_requested_again_without_pages() -> None:
    world = Simulation(1)
    client, transport = scripted(
        world, in_turn(_page("a", "b", token="t1"), _expired("t2"), _page("b", "c", version="12"))
    )

    async def main() -> None:
        found = await client.list(ConfigMap, page_size=2, resource_version="5", resource_version_match="NotOlderThan")
        assert [each.metadata.name for each in found] == ["b", "c"]
        assert found.resource_version == "12"

    world.run(main())
    asked = [dict(request.query) for request in transport.requests]
    assert asked == [
        {"limit": "2", "resourceVersion": "5", "resourceVersionMatch": "NotOlderThan"},
        {"limit": "2", "continue": "t1"},
        {"resourceVersion": "5", "resourceVersionMatch": "NotOlderThan"},
    ]


def test_an_iterated_list_whose_token_expires_continues_in_the_latest_state() -> None:
    world = Simulation(1)
    client, transport = scripted(world, in_turn(_page("a", "b", token="t1"), _expired("t2"), _page("c")))

    async def main() -> None:
        assert [each.metadata.name async for each in client.list(ConfigMap)] == ["a", "b", "c"]

    world.run(main())
    assert dict(transport.requests[2].query)["continue"] == "t2"


@pytest.mark.parametrize("answers", [[_expired("t2")], [_page("a", token="t1"), _expired()]])
def test_an_expired_token_without_a_replacement_is_raised(answers: list[Answer]) -> None:
    world = Simulation(1)
    client, _ = scripted(world, in_turn(*answers))

    async def main() -> None:
        with pytest.raises(Expired):
            [each async for each in client.list(ConfigMap)]

    world.run(main())


def test_an_expired_first_page_of_an_awaited_list_is_raised() -> None:
    world = Simulation(1)
    client, transport = scripted(world, in_turn(_expired("t")))

    async def main() -> None:
        with pytest.raises(Expired):
            await client.list(ConfigMap)

    world.run(main())
    assert len(transport.requests) == 1


@staged
async def test_pages_have_the_remaining_item_count(stage: Stage) -> None:
    await _fill(stage.client, 5)
    pages = [page async for page in stage.client.list(ConfigMap, namespace="default", page_size=2).pages()]
    assert [(len(page.items), page.metadata.remaining_item_count) for page in pages] == [(2, 3), (2, 1), (1, None)]


@staged
async def test_list_watch_returns_bytes(stage: Stage) -> None:
    await _fill(stage.client, 3)
    source = stage.client.list_watch(ConfigMap, namespace="default")
    page = await source.list(ListOptions(limit=2))
    assert [type(bytes(item)) for item in page.items] == [bytes, bytes]
    rest = await source.list(ListOptions(limit=2, continue_token=page.metadata.continue_))
    assert len(rest.items) == 1
    assert page.kind == "ConfigMapList"
    assert source.gvk == GroupVersionKind("", "v1", "ConfigMap")
    assert source.namespace == "default"
    assert str(source) == "configmaps in namespace default"


@staged
async def test_list_watch_requests_partial_metadata(stage: Stage) -> None:
    await stage.client.create(WIDGETS)
    await stage.client.create(Widget(metadata=ObjectMeta(name="a")))
    source = stage.client.list_watch(GroupVersionKind("example.dev", "v1", "Widget"), metadata_only=True, labels="a!=b")
    page = await source.list()
    assert page.kind == "PartialObjectMetadataList"
    assert str(source) == "Widget.example.dev with a!=b"


# Answers that are none


def test_a_body_of_another_kind_is_an_error() -> None:
    world = Simulation(1)
    client, _ = scripted(world, in_turn(Answer(body={"kind": "Pod", "apiVersion": "v1"})))

    async def main() -> None:
        with pytest.raises(WrongKind, match="expected v1, Kind=ConfigMap, got v1, Kind=Pod"):
            await client.get(ConfigMap, "a")

    world.run(main())


def test_a_success_code_with_a_failure_status_is_an_error() -> None:
    world = Simulation(1)
    failure = InternalError.of("the disk is full").to_dict()
    client, _ = scripted(world, in_turn(Answer(200, failure)))

    async def main() -> None:
        with pytest.raises(InternalError, match="the disk is full"):
            await client.get(ConfigMap, "a")

    world.run(main())


def test_an_empty_response_is_an_error() -> None:
    world = Simulation(1)
    client, _ = scripted(world, in_turn(Answer(200, b"")))

    async def main() -> None:
        with pytest.raises(Unknown, match="GET /api/v1/namespaces/default/configmaps/a: empty response body"):
            await client.get(ConfigMap, "a")

    world.run(main())


@pytest.mark.parametrize("body", [b"[1]", b'{"metadata":', b"{" * 300, b'{"a":' * 400 + b"1" + b"}" * 400])
def test_bytes_that_are_not_an_object_are_an_object_error(body: bytes) -> None:
    world = Simulation(1)
    client, _ = scripted(world, in_turn(Answer(200, body)))

    async def main() -> None:
        for kind in (CONFIG_MAPS, ConfigMap, MetadataOf(ConfigMap)):
            if kind is not CONFIG_MAPS and body.startswith(b'{"a"'):
                continue  # what is skipped over may be nested
            with pytest.raises(ObjectError):
                await client.get(kind, "a")

    world.run(main())


def test_the_error_page_of_a_proxy_is_an_error_with_the_request() -> None:
    world = Simulation(1)
    page = Answer(503, b"<h1>no server</h1>", {"content-type": "text/html", "retry-after": "7"})
    client, _ = scripted(world, in_turn(page))

    async def main() -> None:
        with pytest.raises(APIError, match="currently unable to handle the request") as caught:
            await client.get(Pod, "a")
        assert caught.value.details.name == "a"
        assert caught.value.retry_after == 7

    world.run(main())


def test_a_404_of_a_proxy_is_not_taken_for_a_missing_object() -> None:
    world = Simulation(1)
    client, _ = scripted(world, in_turn(Answer(404, b"404 page not found\n", {"content-type": "text/plain"})))

    async def main() -> None:
        with pytest.raises(NoSuchKind):
            await client.get(Pod, "a", missing=None)

    world.run(main())


def test_timeouts_are_passed_to_transport_and_server() -> None:
    world = Simulation(1)
    client, transport = scripted(world, in_turn(Answer(body={"metadata": {"name": "a"}})))

    async def main() -> None:
        await client.get(ConfigMap, "a", timeout=2.5)

    world.run(main())
    assert transport.requests[0].timeout == 2.5
    assert dict(transport.requests[0].query)["timeout"] == "2.500s"


def test_warnings_go_to_the_handler() -> None:
    world = Simulation(1)
    told: list[str] = []
    client, _ = scripted(
        world, in_turn(Answer(body={"metadata": {"name": "a"}}, warnings=["it is old"])), warn=told.append
    )

    async def main() -> None:
        await client.get(ConfigMap, "a")

    world.run(main())
    assert told == ["it is old"]


def test_warnings_are_logged_once_by_default(caplog: pytest.LogCaptureFixture) -> None:
    world = Simulation(1)
    client, _ = scripted(world, in_turn(Answer(body={"metadata": {"name": "a"}}, warnings=["it is old"])))

    async def main() -> None:
        await client.get(ConfigMap, "a")
        await client.get(ConfigMap, "a")

    world.run(main())
    assert caplog.messages == ["warning from the server text=it is old"]


def test_a_client_closes_its_transport() -> None:
    world = Simulation(1)
    client, transport = scripted(world, in_turn(Answer()))

    async def main() -> None:
        async with client as entered:
            assert entered is client

    world.run(main())
    assert transport.closed
