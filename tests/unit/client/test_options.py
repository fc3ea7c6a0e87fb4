"""Paths, selectors, options and views: what is sent, and what is refused before it is."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import msgspec
import pytest

import ostinato.client
from ostinato.api.gvk import GroupVersion, GroupVersionKind, NamespacedName
from ostinato.api.meta import LabelSelector, LabelSelectorRequirement
from ostinato.api.object import Object, kind_of
from ostinato.api.selectors import fields, labels
from ostinato.client.discovery.paths import collection_path, object_path, root_of
from ostinato.client.options import deletion_body, selection_query
from ostinato.client.views import MetadataOf, PartialObjectMetadata, Unstructured, view_of
from ostinato.kinds.apps_v1 import Deployment
from ostinato.kinds.autoscaling_v1 import Scale
from ostinato.kinds.core_v1 import Node, Pod


@pytest.mark.parametrize(
    ("version", "path"), [(GroupVersion("", "v1"), "/api/v1"), (GroupVersion("apps", "v1"), "/apis/apps/v1")]
)
def test_the_root_of_a_version(version: GroupVersion, path: str) -> None:
    assert root_of(version) == path


@pytest.mark.parametrize(
    ("kind", "namespace", "path"),
    [
        (Pod, "", "/api/v1/pods"),
        (Pod, "a", "/api/v1/namespaces/a/pods"),
        (Deployment, "a", "/apis/apps/v1/namespaces/a/deployments"),
        (Node, "", "/api/v1/nodes"),
        (Pod, "a b?#é", "/api/v1/namespaces/a%20b%3F%23%C3%A9/pods"),
    ],
)
def test_the_path_of_a_collection(kind: type[Object], namespace: str, path: str) -> None:
    assert collection_path(kind_of(kind), namespace) == path


@pytest.mark.parametrize(
    ("kind", "key", "subresource", "path"),
    [
        (Pod, ("a", "b"), "", "/api/v1/namespaces/a/pods/b"),
        (Pod, ("a", "b"), "status", "/api/v1/namespaces/a/pods/b/status"),
        (Pod, ("a", "b"), "proxy/metrics", "/api/v1/namespaces/a/pods/b/proxy/metrics"),
        (Node, ("", "b:8080"), "", "/api/v1/nodes/b:8080"),
    ],
)
def test_the_path_of_an_object(kind: type[Object], key: tuple[str, str], subresource: str, path: str) -> None:
    assert object_path(kind_of(kind), NamespacedName(*key), subresource) == path


@pytest.mark.parametrize(
    ("kind", "key", "words"),
    [
        (Pod, ("a", ""), "Pod: name is required"),
        (Pod, ("", "b"), "Pod b: namespace is required"),
        (Node, ("a", "b"), "Node: the kind is cluster-scoped"),
        (Pod, ("a", ".."), r"Pod: name '\.\.': may not be"),
        (Pod, ("a", "b/status"), "Pod: name 'b/status': may not contain '/'"),
        (Pod, ("a", "b%2fstatus"), "Pod: name 'b%2fstatus': may not contain '%'"),
        (Pod, ("..", "b"), r"Pod: namespace '\.\.': may not be"),
        (Scale, ("a", "b"), "Scale: the kind has no resource of its own"),
    ],
)
def test_a_name_that_would_change_the_path_is_rejected(kind: type[Object], key: tuple[str, str], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        object_path(kind_of(kind), NamespacedName(*key))


STRUCT = LabelSelector(
    match_labels={"a": "b"}, match_expressions=[LabelSelectorRequirement(key="c", operator="Exists")]
)


@pytest.mark.parametrize(
    ("given", "text"),
    [
        (None, ""),
        ("", ""),
        ({}, ""),
        ("b=c, a in (y,x)", "a in (x,y),b=c"),
        ({"a": "b", "c": ""}, "a=b,c="),
        (labels.parse("a"), "a"),
        (labels.everything(), ""),
        (STRUCT, "a=b,c"),
        (LabelSelector(), ""),
    ],
)
def test_labels_are_selected_in_every_form_that_selectors_have(given: Any, text: str) -> None:
    assert selection_query(given, None) == ([("labelSelector", text)] if text else [])


@pytest.mark.parametrize(
    ("given", "text"),
    [
        (None, ""),
        ("", ""),
        ({}, ""),
        ("metadata.name=a,status.phase!=Running", "metadata.name=a,status.phase!=Running"),
        ({"metadata.name": "a,b=c"}, r"metadata.name=a\,b\=c"),
        (fields.from_set({"a": "b"}), "a=b"),
        (fields.everything(), ""),
    ],
)
def test_fields_are_selected_in_every_form_that_selectors_have(given: Any, text: str) -> None:
    assert selection_query(None, given) == ([("fieldSelector", text)] if text else [])


@pytest.mark.parametrize(
    ("by_labels", "by_fields"),
    [
        ("a in (", None),
        ({"a": "b,c=d"}, None),
        ({"-": "b"}, None),
        (labels.nothing(), None),
        (None, "nonsense"),
        (None, fields.nothing()),
    ],
)
def test_an_invalid_or_empty_selector_is_rejected(by_labels: Any, by_fields: Any) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - each in its own words
        selection_query(by_labels, by_fields)


def test_the_body_of_a_deletion() -> None:
    assert deletion_body({}) == b""
    assert deletion_body({"timeout": 3, "dry_run": False, "uid": ""}) == b""
    said = deletion_body({"dry_run": True, "grace_period": 0, "propagation": "Orphan", "uid": "u"})
    assert msgspec.json.decode(said) == {
        "apiVersion": "v1",
        "kind": "DeleteOptions",
        "dryRun": ["All"],
        "gracePeriodSeconds": 0,
        "propagationPolicy": "Orphan",
        "preconditions": {"uid": "u"},
    }
    with pytest.raises(TypeError, match="unknown option 'force'"):
        deletion_body({"force": True})  # type: ignore[typeddict-unknown-key]


def test_a_metadata_view_has_the_kind_of_its_argument() -> None:
    gvk = GroupVersionKind("", "v1", "Pod")
    for source in (Pod, Unstructured(gvk), gvk, MetadataOf(Pod)):
        view = MetadataOf(source)
        assert view.gvk == gvk
        assert "as=PartialObjectMetadata;g=meta.k8s.io;v=v1" in view.accept
        assert "as=PartialObjectMetadataList;g=meta.k8s.io;v=v1" in view.accept_list
        found = view.read(b'{"kind":"PartialObjectMetadata","metadata":{"name":"a"}}', kind_of(Pod))
        assert isinstance(found, PartialObjectMetadata)
        assert kind_of(found) == kind_of(Pod)


def test_a_class_has_one_view() -> None:
    assert view_of(Pod) is view_of(Pod)
    with pytest.raises(TypeError, match="has no version"):
        view_of(PartialObjectMetadata)


def test_a_client_connects_to_the_server_that_kubectl_would(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    kubeconfig = {
        "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u", "namespace": "apps"}}],
        "clusters": [{"name": "c", "cluster": {"server": "http://127.0.0.1:1"}}],
        "users": [{"name": "u", "user": {}}],
    }
    (tmp_path / "config").write_bytes(msgspec.json.encode(kubeconfig))
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "config"))

    async def main() -> None:
        async with ostinato.client.Client.connect(field_manager="me", field_validation="Strict") as client:
            assert client.namespace == "apps"
            assert client.transport.host == "127.0.0.1:1"
            with pytest.raises(ostinato.client.ConnectionLost):
                await client.get(Pod, "a")

    asyncio.run(main())


@pytest.mark.parametrize("name", ostinato.client.__all__)
def test_every_exported_name_is_there(name: str) -> None:
    assert getattr(ostinato.client, name) is not None
    assert name in dir(ostinato.client)


def test_other_names_are_not() -> None:
    with pytest.raises(AttributeError, match=r"module 'ostinato\.client' has no attribute 'nope'"):
        ostinato.client.nope  # noqa: B018
