"""Roles, and the files that hold definitions, roles and webhook configurations."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.stage.api import Api, asking
from tests.unit.crd.sample_kinds import Gadget, Widget

from ostinato.api.gvk import NamespacedName
from ostinato.api.wire.yaml import decode_yaml_documents
from ostinato.client import MetadataOf, Unstructured
from ostinato.controllers import controller
from ostinato.crd import (
    Access,
    access_of,
    check_manifests,
    crd_of,
    event_access,
    leader_election_access,
    manifest_files,
    roles_of,
    write_manifests,
)
from ostinato.crd.rbac import certificate_access, merged
from ostinato.kinds.apps_v1 import Deployment
from ostinato.kinds.core_v1 import ConfigMap, Node
from ostinato.webhook import Certificate, ServiceEndpoint, Webhooks, defaulter, validator, webhook_configurations


class Controller(msgspec.Struct):
    reconciles: tuple[type, ...] = (Widget,)
    owns: tuple[type, ...] = (Deployment, ConfigMap)
    watches: tuple[type, ...] = (Node, Gadget)
    access: tuple[Access, ...] = (Access(groups=("core",), resources=("pods/exec",), verbs=("create",)),)


# Roles


def test_a_role_follows_from_what_a_controller_does() -> None:
    needs = [*access_of(Controller()), event_access(), *leader_election_access(NamespacedName("ops", "widgets"))]
    assert roles_of(needs, name="widgets", service_account=NamespacedName("ops", "widgets")) == [
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRole",
            "metadata": {"name": "widgets"},
            "rules": [
                {
                    "apiGroups": [""],
                    "resources": ["configmaps"],
                    "verbs": ["create", "delete", "get", "list", "patch", "watch"],
                },
                {"apiGroups": [""], "resources": ["nodes"], "verbs": ["get", "list", "watch"]},
                {"apiGroups": [""], "resources": ["pods/exec"], "verbs": ["create"]},
                {
                    "apiGroups": ["apps"],
                    "resources": ["deployments"],
                    "verbs": ["create", "delete", "get", "list", "patch", "watch"],
                },
                {"apiGroups": ["events.k8s.io"], "resources": ["events"], "verbs": ["create", "patch"]},
                {"apiGroups": ["example.dev"], "resources": ["gadgets"], "verbs": ["get", "list", "watch"]},
                {"apiGroups": ["example.dev"], "resources": ["widgets"], "verbs": ["get", "list", "patch", "watch"]},
                {"apiGroups": ["example.dev"], "resources": ["widgets/finalizers"], "verbs": ["update"]},
                {"apiGroups": ["example.dev"], "resources": ["widgets/status"], "verbs": ["patch", "update"]},
            ],
        },
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": "widgets"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "widgets"},
            "subjects": [{"kind": "ServiceAccount", "name": "widgets", "namespace": "ops"}],
        },
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "Role",
            "metadata": {"name": "widgets", "namespace": "ops"},
            "rules": [
                {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["create"]},
                {
                    "apiGroups": ["coordination.k8s.io"],
                    "resources": ["leases"],
                    "resourceNames": ["widgets"],
                    "verbs": ["get", "update"],
                },
            ],
        },
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "RoleBinding",
            "metadata": {"name": "widgets", "namespace": "ops"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "widgets"},
            "subjects": [{"kind": "ServiceAccount", "name": "widgets", "namespace": "ops"}],
        },
    ]


def test_a_controller_in_one_namespace_gets_a_role_there_but_for_what_is_in_none() -> None:
    kinds = [
        (role["kind"], role["metadata"].get("namespace"))
        for role in roles_of(access_of(Controller(), where=lambda kind: ["a"]), name="w")
    ]
    assert kinds == [("ClusterRole", None), ("Role", "a")]


def test_what_is_owned_is_allowed_where_it_is_followed_and_where_its_owners_are() -> None:
    where = {Widget: ["a"], ConfigMap: ["b"], Node: ["a"]}

    def needs(*reconciles: Any) -> set[tuple[str, str]]:
        controller = Controller(reconciles=reconciles, owns=(ConfigMap,), watches=(), access=())
        return {(rule.resources[0], rule.namespace) for rule in access_of(controller, where=where.__getitem__)}

    assert {place for name, place in needs(Widget) if name == "configmaps"} == {"a", "b"}
    assert {place for name, place in needs(Node) if name == "configmaps"} == {"b"}, "Nodes are in no namespace"


def test_kinds_that_are_no_classes_have_the_usual_names() -> None:
    @controller(Unstructured.of("example.dev/v1", "Policy"), name="policies", owns=[MetadataOf(Node)])
    async def policies(policy: dict[str, Any], ctx: Any) -> None: ...

    found = {
        (rule.groups[0], rule.resources[0], rule.namespace) for rule in access_of(policies, where=lambda kind: ["ns"])
    }
    assert found == {
        ("example.dev", "policies", "ns"),
        ("example.dev", "policies/status", "ns"),
        ("example.dev", "policies/finalizers", "ns"),
        ("", "nodes", ""),
    }


def on(groups: str, resources: str, *verbs: str, names: tuple[str, ...] = ()) -> Access:
    return Access(groups=tuple(groups), resources=tuple(resources), verbs=verbs, names=names)


def test_a_webhook_server_may_keep_and_make_known_what_it_makes() -> None:
    @validator(Widget)
    def check(widget: Widget) -> None: ...

    class Own:
        interval = 60.0

        async def current(self) -> Certificate:
            raise NotImplementedError

    def resources(certificates: Any) -> list[str]:
        endpoint = ServiceEndpoint("widgets-system", "widgets")
        webhooks = Webhooks(check, endpoint=endpoint, name="widgets", certificates=certificates)
        return sorted(resource for access in certificate_access(webhooks) for resource in access.resources)

    assert resources(None) == ["secrets", "secrets", "validatingwebhookconfigurations"]
    assert resources(Own()) == ["validatingwebhookconfigurations"], "it keeps them where it likes"
    assert resources("/etc/webhook") == [], "whoever writes the files makes them known"


@pytest.mark.parametrize(
    ("rules", "expected"),
    [
        ([on("a", "x", "get"), on("a", "x", "list")], [on("a", "x", "get", "list")]),
        ([on("a", "x", "get"), on("a", "x", "*")], [on("a", "x", "*")]),
        ([on("a", "x", "get"), on("b", "x", "get")], [on("ab", "x", "get")]),
        ([on("a", "x", "get"), on("a", "y", "get")], [on("a", "xy", "get")]),
        ([on("a", "xy", "get"), on("a", "x", "list")], [on("a", "x", "get", "list"), on("a", "y", "get")]),
        (
            [Access(urls=("/metrics",), verbs=("get",)), Access(urls=("/healthz",), verbs=("get",))],
            [Access(urls=("/healthz", "/metrics"), verbs=("get",))],
        ),
        (
            [on("a", "x", "get", names=("n",)), on("a", "x", "get")],
            [on("a", "x", "get"), on("a", "x", "get", names=("n",))],
        ),
    ],
)
def test_rules_are_merged(rules: list[Access], expected: list[Access]) -> None:
    assert merged(rules) == expected
    assert merged(reversed(rules)) == expected


def some(values: str) -> st.SearchStrategy[tuple[str, ...]]:
    return st.lists(st.sampled_from(values), min_size=1, max_size=3).map(tuple)


ACCESS = st.builds(
    Access,
    groups=some("ab"),
    resources=some("xyz"),
    verbs=st.one_of(some("gl"), st.just(("*",))),
    names=st.one_of(st.just(()), some("n")),
    namespace=st.sampled_from(["", "d"]),
)


def granted(rules: Iterable[Access]) -> set[tuple[str, ...]]:
    """Each single thing that rules allow."""
    return {
        (rule.namespace, group, resource, name, verb)
        for rule in rules
        for group in rule.groups
        for resource in rule.resources
        for name in rule.names or ("",)
        for verb in (("g", "l", "*") if "*" in rule.verbs else rule.verbs)
    }


@settings(max_examples=150, deadline=None)
@given(st.lists(ACCESS, max_size=6))
def test_merged_rules_allow_the_same_whatever_their_order(rules: list[Access]) -> None:
    found = merged(rules)
    assert granted(found) == granted(rules)
    assert merged(found) == found


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ({"verbs": ()}, "Access needs verbs"),
        ({"verbs": ("get",)}, "either resources or urls"),
        ({"verbs": ("get",), "resources": ("x",)}, "resources need their group"),
        ({"verbs": ("get",), "urls": ("/x",), "namespace": "a"}, "urls cannot be combined"),
        ({"verbs": "get", "urls": ("/x",)}, "verbs must be a tuple of strings"),
    ],
)
def test_access_that_makes_no_sense_is_rejected(words: Any, told: str) -> None:
    with pytest.raises((TypeError, ValueError), match=told):
        Access(**words)


def test_only_kinds_are_reconciled() -> None:
    with pytest.raises(TypeError, match="is not a kind"):
        access_of(Controller(reconciles=(int,)))


# Files


@defaulter
def fill_in(widget: Widget) -> None: ...


@validator
def check(widget: Widget) -> None: ...


def files() -> dict[str, str]:
    needs = [*access_of(Controller()), *leader_election_access(NamespacedName("default", "widgets"))]
    return manifest_files(
        definitions=[crd_of(Widget), crd_of(Gadget)],
        roles=roles_of(needs, name="widgets", service_account=NamespacedName("default", "widgets")),
        webhooks=webhook_configurations([fill_in, check], "widgets", ServiceEndpoint("ops", "hooks")),
    )


def test_every_definition_has_a_file_and_roles_and_webhooks_have_one_each() -> None:
    definitions = ["crds/widgets.example.dev.yaml", "crds/gadgets.example.dev.yaml"]
    assert list(files()) == [*definitions, "rbac.yaml", "webhooks.yaml"]
    assert manifest_files() == {}
    assert decode_yaml_documents(files()["crds/widgets.example.dev.yaml"]) == [crd_of(Widget)]
    assert len(decode_yaml_documents(files()["rbac.yaml"])) == 4


def test_files_are_written_once_and_checked(tmp_path: Path) -> None:
    wanted = files()
    assert len(check_manifests(wanted, tmp_path)) == 4
    assert "rbac.yaml: missing\n" in check_manifests(wanted, tmp_path)
    assert write_manifests(wanted, tmp_path) == sorted(wanted)
    assert check_manifests(wanted, tmp_path) == []
    assert write_manifests(wanted, tmp_path) == []


def test_a_change_is_shown_as_a_difference(tmp_path: Path) -> None:
    wanted = files()
    write_manifests(wanted, tmp_path)
    path = tmp_path / "crds" / "gadgets.example.dev.yaml"
    path.write_text(path.read_text().replace("default: x", "default: y"))
    (told,) = check_manifests(wanted, tmp_path)
    assert "crds/gadgets.example.dev.yaml (on disk)" in told
    assert "default: y\n" in told
    assert "default: x\n" in told
    assert write_manifests(wanted, tmp_path) == ["crds/gadgets.example.dev.yaml"]


def test_stale_generated_files_are_removed_and_others_kept(tmp_path: Path) -> None:
    write_manifests(files(), tmp_path)
    (tmp_path / "crds" / "others.yaml").write_text("kind: CustomResourceDefinition\n")
    less = manifest_files(definitions=[crd_of(Widget)])
    assert check_manifests(less, tmp_path) == [
        f"{name}: no class is of this kind any more\n"
        for name in ("crds/gadgets.example.dev.yaml", "rbac.yaml", "webhooks.yaml")
    ]
    assert len(write_manifests(less, tmp_path)) == 3
    assert sorted(path.name for path in tmp_path.rglob("*.yaml")) == ["others.yaml", "widgets.example.dev.yaml"]


PATHS = {
    "ClusterRole": "/apis/rbac.authorization.k8s.io/v1/clusterroles",
    "ClusterRoleBinding": "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
    "Role": "/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles",
    "RoleBinding": "/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings",
    "MutatingWebhookConfiguration": "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations",
    "ValidatingWebhookConfiguration": "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations",
    "CustomResourceDefinition": "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
}


@asking
async def test_a_server_takes_all_that_is_written(api: Api) -> None:
    for text in files().values():
        for document in decode_yaml_documents(text):
            made = await api.post(f"{PATHS[document['kind']]}?fieldValidation=Strict", document)
            assert made.code == 201, made.message
