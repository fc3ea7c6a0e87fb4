"""Names of kinds, resources and objects."""

import pytest

from ostinato.api.gvk import (
    GroupKind,
    GroupResource,
    GroupVersion,
    GroupVersionKind,
    GroupVersionResource,
    NamespacedName,
)


@pytest.mark.parametrize(
    ("text", "group", "version"),
    [("", "", ""), ("/", "", ""), ("v1", "", "v1"), ("apps/v1", "apps", "v1"), ("a.b.c/v1beta1", "a.b.c", "v1beta1")],
)
def test_an_api_version_is_read_as_group_and_version(text: str, group: str, version: str) -> None:
    assert GroupVersion.parse(text) == GroupVersion(group, version)


@pytest.mark.parametrize("text", ["a/b/c", "//"])
def test_an_api_version_with_two_slashes_is_rejected(text: str) -> None:
    with pytest.raises(ValueError, match=f"unexpected GroupVersion string: {text}"):
        GroupVersion.parse(text)


def test_the_core_group_does_not_show_in_the_api_version() -> None:
    assert str(GroupVersion("", "v1")) == GroupVersionKind("", "v1", "Pod").api_version == "v1"
    assert str(GroupVersion("apps", "v1")) == GroupVersionKind("apps", "v1", "Deployment").api_version == "apps/v1"


def test_an_argument_with_two_dots_may_be_kind_version_group_or_kind_group() -> None:
    full, short = GroupVersionKind.parse("Ingress.v1.networking.k8s.io")
    assert full == GroupVersionKind("networking.k8s.io", "v1", "Ingress")
    assert short == GroupKind("v1.networking.k8s.io", "Ingress")
    resource, short_resource = GroupVersionResource.parse("ingresses.v1.networking.k8s.io")
    assert resource == GroupVersionResource("networking.k8s.io", "v1", "ingresses")
    assert short_resource == GroupResource("v1.networking.k8s.io", "ingresses")


def test_an_argument_with_one_dot_is_only_kind_group() -> None:
    assert GroupVersionKind.parse("Deployment.apps") == (None, GroupKind("apps", "Deployment"))
    assert GroupVersionResource.parse("deployments.apps") == (None, GroupResource("apps", "deployments"))
    assert GroupVersionResource.parse("pods") == (None, GroupResource("", "pods"))


def test_names_print_as_kubernetes_prints_them() -> None:
    gvk = GroupVersion("apps", "v1").kind("Deployment")
    gvr = GroupVersion("apps", "v1").resource("deployments")
    assert str(gvk) == "apps/v1, Kind=Deployment"
    assert str(GroupVersionKind("", "v1", "Pod")) == "/v1, Kind=Pod"
    assert str(gvk.group_kind) == "Deployment.apps"
    assert str(gvr) == "apps/v1, Resource=deployments"
    assert str(gvr.group_resource) == "deployments.apps"
    assert str(GroupKind("", "Pod")) == "Pod"
    assert str(GroupResource("", "pods")) == "pods"
    assert gvk.list_kind == GroupVersionKind("apps", "v1", "DeploymentList")
    assert gvk.group_version == gvr.group_version == GroupVersion("apps", "v1")
    assert GroupVersionKind.of("v1", "Pod") == GroupVersionKind("", "v1", "Pod")


def test_a_key_has_a_namespace_or_none() -> None:
    assert NamespacedName.parse("default/a") == NamespacedName("default", "a")
    assert NamespacedName.parse("node-1") == NamespacedName("", "node-1")
    assert str(NamespacedName("default", "a")) == "default/a"
    assert str(NamespacedName("", "node-1")) == "node-1"
    with pytest.raises(ValueError, match="unexpected key format: 'a/b/c'"):
        NamespacedName.parse("a/b/c")


def test_names_of_different_sorts_are_never_equal() -> None:
    assert GroupVersionKind("a", "b", "c") != GroupVersionResource("a", "b", "c")
    assert len({GroupKind("a", "b"), GroupResource("a", "b"), GroupKind("a", "b")}) == 2
