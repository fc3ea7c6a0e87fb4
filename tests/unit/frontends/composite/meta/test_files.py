"""Definitions in files and their webhooks: what is read, and what is refused with its place."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.unit.frontends.composite.meta.stage import composite_of

from ostinato.api.codec import from_dict
from ostinato.frontends.composite.meta.definitions import EndpointConfig, Webhook, definitions
from ostinato.frontends.composite.meta.endpoints import matching, timeout_of, url_of
from ostinato.frontends.composite.meta.files import DefinitionError, read_definitions
from ostinato.frontends.kernel.sync import DeciderError

HOOK = {"webhook": {"url": "http://hook/sync"}}


def written(path: Path, *documents: Any) -> Path:
    file = path / "definitions.yaml"
    file.write_text("\n---\n".join(msgspec.json.encode(each).decode() for each in documents))
    return file


def test_definitions_are_found_among_other_documents(tmp_path: Path) -> None:
    other = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "hook"}}
    file = written(tmp_path, other, composite_of("cats", {"sync": HOOK}), None)
    assert [each["metadata"]["name"] for each in read_definitions([file])] == ["cats"]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"hooks": None}, "spec.hooks.sync: is missing"),
        ({"hooks": {"sync": {}}}, "spec.hooks.sync: webhook is missing"),
        ({"hooks": {"sync": {"webhook": {}}}}, "neither url, nor service and path"),
        ({"hooks": {"sync": {"webhook": {"url": "http://a", "timeout": "soon"}}}}, "'soon' is not a duration"),
        ({"hooks": {"sync": HOOK, "final": HOOK}}, "spec.hooks.final: unknown field"),
        (
            {"childResources": [{"apiVersion": "v1", "resource": "pods", "updateStrategy": {"metod": "InPlace"}}]},
            "metod",
        ),
        ({"childResources": [{"apiVersion": "v1"}]}, "resource"),
        ({"childResources": [{"apiVersion": "v1", "resource": "pods", "updateStrategy": {"method": "Now"}}]}, "Now"),
        (
            {"parentResource": {"apiVersion": "v1", "resource": "x", "labelSelector": {"matchLabels": {"/": "a"}}}},
            "label",
        ),
    ],
)
def test_a_definition_that_cannot_run_is_refused_with_file_object_and_field(
    tmp_path: Path, change: Any, said: str
) -> None:
    definition = composite_of("cats", {"sync": HOOK})
    definition["spec"].update(change)
    with pytest.raises(DefinitionError) as error:
        read_definitions([written(tmp_path, definition)])
    assert str(error.value).startswith(f"{tmp_path}/definitions.yaml: CompositeController cats: ")
    assert said in str(error.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("kind: [", "line 1"),
        ("[]", "document 1: expected an object"),
        ("kind: Service", "has neither a CompositeController nor"),
        ("apiVersion: metacontroller.k8s.io/v1\nkind: CompositeController", "use metacontroller.k8s.io/v1alpha1"),
        ("apiVersion: metacontroller.k8s.io/v1alpha1\nkind: CompositeController", "metadata.name is missing"),
    ],
)
def test_a_file_without_a_definition_is_refused(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "x.yaml"
    file.write_text(text)
    with pytest.raises(DefinitionError) as error:
        read_definitions([file])
    assert said in str(error.value)
    with pytest.raises(DefinitionError, match=r"missing\.yaml: cannot be read"):
        read_definitions([tmp_path / "missing.yaml"])


def test_two_definitions_of_one_name_are_refused(tmp_path: Path) -> None:
    same = composite_of("cats", {"sync": HOOK})
    with pytest.raises(DefinitionError, match="defined twice"):
        read_definitions([written(tmp_path, same, same)])


def webhook(**fields: Any) -> Webhook:
    return from_dict(Webhook, fields)


def test_the_address_of_a_hook_is_its_url_or_that_of_its_service() -> None:
    service = {"name": "s", "namespace": "n"}
    assert url_of(webhook(url="http://a/b", service=service, path="/x")) == "http://a/b"
    assert url_of(webhook(service=service, path="/x")) == "http://s.n:80/x"
    assert url_of(webhook(service={**service, "port": 8443, "protocol": "https"}, path="x")) == "https://s.n:8443/x"
    for wrong in ({"service": service}, {"path": "/x"}, {"service": {"name": "s", "namespace": ""}, "path": "/"}):
        with pytest.raises(DeciderError, match="webhook"):
            url_of(webhook(**wrong))


def test_the_timeout_of_a_hook_defaults_to_ten_seconds() -> None:
    assert [timeout_of(webhook(**each)) for each in ({}, {"timeout": "1m30s"}, {"timeout": "0s"})] == [10.0, 90.0, 10.0]


def test_endpoint_configs_are_found_by_host_with_or_without_the_default_port() -> None:
    configs = [EndpointConfig(host=each) for each in ("a.n:8443", "b.n", "C.n:443", "d.n:80")]
    found = {
        url: None if (config := matching(url, configs)) is None else config.host
        for url in (
            "https://a.n:8443/x",
            "https://a.n/x",
            "https://b.n/",
            "https://B.n:443/",
            "https://b.n:8443/",
            "https://c.n/",
            "http://d.n/",
            "http://c.n/",
        )
    }
    assert list(found.values()) == ["a.n:8443", None, "b.n", "b.n", None, "C.n:443", "d.n:80", None]


def test_the_definitions_of_the_kinds_are_complete() -> None:
    names = [each["metadata"]["name"] for each in definitions()]
    assert names == [
        f"{kind}.metacontroller.k8s.io"
        for kind in ("compositecontrollers", "decoratorcontrollers", "controllerrevisions")
    ]
    revision = definitions()[2]["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]
    assert revision["parentPatch"]["x-kubernetes-preserve-unknown-fields"] is True
