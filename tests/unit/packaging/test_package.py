"""Packages: completed from the project, and refused by field where they are impossible."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.stage.packages import operator, package, server

from ostinato.packaging import PackageError, Project, read_project
from ostinato.packaging.image import Image, parse_image
from ostinato.packaging.project import semantic_version
from ostinato.webhook.configuration import UrlEndpoint


def test_name_version_and_namespace_come_from_the_project() -> None:
    made = package(project=Project(name="Widget_Shop", version="1.0rc1"))
    assert (made.name, made.version, made.namespace) == ("widget-shop", "1.0.0-rc.1", "widget-shop-system")


def test_a_package_with_webhooks_is_in_the_namespace_of_their_service() -> None:
    assert package(of=operator(webhooks=[server(namespace="shop")])).namespace == "shop"


def test_several_replicas_elect_a_leader() -> None:
    assert not package().elects
    assert package(replicas=2).elects
    assert package(leaderElection=True).elects
    assert package(of=operator(lease="mine")).elects


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"image": ""}, "image: not set; set image: REGISTRY/NAME:TAG, or pass --image"),
        ({"image": "Example.com/UPPER:1"}, "image: image 'Example.com/UPPER:1' is not an image reference"),
        ({"image": "a:b\nspec: {}"}, "is not an image reference"),
        ({"name": "a_b"}, "name: 'a_b' is not a valid name"),
        ({"name": "{{ .Release.Name }}"}, "is not a valid name"),
        ({"name": "../x"}, "name: '../x' is not a valid name"),
        ({"name": "9lives"}, "name: '9lives' is not a valid name"),
        ({"name": "a" * 46}, "has more than 45 characters"),
        ({"namespace": "a.b"}, "namespace: 'a.b' is not a valid name"),
        ({"version": "one"}, "version: version 'one' is not a semantic version"),
        ({"version": "1.0.post1"}, "is not a semantic version"),
        ({"replicas": -1}, "replicas: -1 is less than 0"),
        ({"labels": {"a b": "c"}}, "labels: 'a b' is not a valid key"),
        ({"labels": {"a": "b c"}}, "labels.a: 'b c' is not a label value"),
        ({"podLabels": {"app.kubernetes.io/name": "x"}}, "podLabels.app.kubernetes.io/name: set by the package"),
        ({"env": {"A=B": "x"}}, "env: 'A=B' is not a variable name"),
        ({"env": {"A": {"secret": {}}}}, "env.A: want a text, or one of configMapKeyRef"),
        ({"namespaced": True, "env": {"POD_NAMESPACE": "x"}}, "env.POD_NAMESPACE: set by the package"),
        ({"resources": {"limits": {"memory": "a lot"}}}, "resources.limits.memory: "),
        ({"writableDirectories": ["tmp"]}, "writableDirectories[0]: 'tmp' is not an absolute path"),
        ({"writableDirectories": ["/a/../b"]}, "is not an absolute path"),
        ({"writableDirectories": ["/a", "/a"]}, "writableDirectories: a directory is listed twice"),
        ({"features": {"metrics": False, "alerts": True}}, "features.alerts: needs features.metrics: true"),
        ({"serviceAccount": {"create": False}}, "serviceAccount.name: not set; name the existing account"),
        ({"program": "../escape.py"}, "program: '../escape.py' is not a module"),
        ({"program": "--help"}, "program: '--help' is not a module"),
        ({"certificates": {"secret": "A"}}, "certificates.secret: 'A' is not a valid name"),
    ],
)
def test_impossible_input_is_refused_by_field(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(PackageError) as error:
        package(**fields)
    assert message in str(error.value)
    assert str(error.value).startswith("overrides.yaml: ")


def test_webhooks_that_a_service_cannot_reach_are_refused() -> None:
    with pytest.raises(
        PackageError, match="namespace: 'a' is not the namespace of webhooks 'widgets'; set namespace: b"
    ):
        package(of=operator(webhooks=[server(namespace="b")]), namespace="a")

    at_url = msgspec.structs.replace(server(), endpoint=UrlEndpoint("https://127.0.0.1:9443"))
    with pytest.raises(PackageError, match="not by a Service of the cluster"):
        package(of=operator(webhooks=[at_url]))
    with pytest.raises(PackageError, match="port 8080 is that of health or metrics"):
        package(of=operator(webhooks=[msgspec.structs.replace(server(), port=8080)]))


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        ("1.2.3", "1.2.3"),
        ("1.2.3-rc.1+build", "1.2.3-rc.1+build"),
        ("1", "1.0.0"),
        ("2026.1", "2026.1.0"),
        ("1.2.3a4", "1.2.3-alpha.4"),
        ("1.2.3b4.dev5", "1.2.3-beta.4.dev.5"),
        ("0.1.0.dev0", "0.1.0-dev.0"),
        ("1.0+abc.1", "1.0.0+abc.1"),
    ],
)
def test_versions_of_python_become_semantic_versions(version: str, expected: str) -> None:
    assert semantic_version(version) == expected


@pytest.mark.parametrize(
    ("text", "image"),
    [
        ("nginx", Image("nginx")),
        ("localhost:5000/a/b:1", Image("localhost:5000/a/b", "1")),
        ("a/b@sha256:" + "0" * 64, Image("a/b", "", "sha256:" + "0" * 64)),
        ("ghcr.io/a/b__c:v1.0-x@sha256:" + "f" * 64, Image("ghcr.io/a/b__c", "v1.0-x", "sha256:" + "f" * 64)),
    ],
)
def test_images_are_parsed(text: str, image: Image) -> None:
    assert parse_image(text) == image
    assert str(image) == text


def test_a_project_is_read_from_pyproject(tmp_path: Path) -> None:
    file = tmp_path / "pyproject.toml"
    assert read_project(file) == Project()
    file.write_text('[project]\nname = "a"\nversion = "1.0"\nauthors = [{name = "Ann", email = "ann@example.com"}]\n')
    assert read_project(file).authors[0].email == "ann@example.com"
    for text, problem in (("[project", "cannot be read"), ("[project]\nname = 1\n", r"\[project\]: Expected `str`")):
        file.write_text(text)
        with pytest.raises(PackageError, match=problem):
            read_project(file)
