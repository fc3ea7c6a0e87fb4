"""OLM bundles: the ClusterServiceVersion, and the checker of the format's rules."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
import yaml
from tests.stage.packages import RULES, operator, package, server

from ostinato.crd import Access
from ostinato.packaging import PackageError, olm_bundle
from ostinato.packaging.formats.olm import check_bundle
from ostinato.packaging.formats.olm.bundle import CERTIFICATES
from ostinato.packaging.formats.olm.descriptors import spaced
from ostinato.packaging.package import Package

SAMPLE = {"apiVersion": "example.dev/v1", "kind": "Widget", "metadata": {"name": "a"}, "spec": {"size": 2}}
OLM = operator(rules=[each for each in RULES if each.namespace != "vault"])
CSV = "manifests/widgets.clusterserviceversion.yaml"


def bundle(made: Package | None = None, **overrides: Any) -> dict[str, str]:
    made = made or package(of=overrides.pop("of", OLM), **overrides)
    return olm_bundle(msgspec.structs.replace(made, samples=[SAMPLE]))


def service_version(files: dict[str, str]) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(files[CSV])
    return found


def test_a_bundle_follows_the_rules_and_is_the_same_every_time() -> None:
    files = bundle(replicas=2)
    assert check_bundle(files) == []
    assert files == bundle(replicas=2)
    assert sorted(files) == [
        "bundle.Dockerfile",
        "manifests/widgets-edit_clusterrole.yaml",
        "manifests/widgets-metrics_service.yaml",
        "manifests/widgets-view_clusterrole.yaml",
        "manifests/widgets.clusterserviceversion.yaml",
        "manifests/widgets.example.dev_customresourcedefinition.yaml",
        "manifests/widgets_poddisruptionbudget.yaml",
        "metadata/annotations.yaml",
        "tests/scorecard/config.yaml",
    ]


def test_the_service_version_has_deployment_permissions_and_kinds() -> None:
    version = service_version(bundle(replicas=2))
    spec = version["spec"]
    assert version["metadata"]["name"] == "widgets.v1.2.3"
    assert json.loads(version["metadata"]["annotations"]["alm-examples"]) == [SAMPLE]
    (granted,) = spec["install"]["spec"]["clusterPermissions"]
    assert granted["rules"] == [
        {"apiGroups": ["example.dev"], "resources": ["widgets"], "verbs": ["get", "list", "patch", "watch"]}
    ]
    (own,) = spec["install"]["spec"]["permissions"]
    assert {resource for rule in own["rules"] for resource in rule["resources"]} == {"configmaps", "events", "leases"}
    (owned,) = spec["customresourcedefinitions"]["owned"]
    assert owned["resources"] == [{"kind": "Deployment", "version": "apps/v1", "name": ""}]
    assert owned["specDescriptors"][0] == {
        "path": "size",
        "displayName": "Size",
        "description": "How large it is.",
        "x-descriptors": ["urn:alm:descriptor:com.tectonic.ui:podCount"],
    }
    assert owned["statusDescriptors"][0]["path"] == "ready"
    assert {each["type"] for each in spec["installModes"] if each["supported"]} == {"AllNamespaces"}


def test_a_namespaced_operator_is_installed_for_its_own_namespace() -> None:
    rules = [Access(groups=("example.dev",), resources=("widgets",), verbs=("get",), namespace="{own}")]
    spec = service_version(bundle(of=operator(rules=rules), namespaced=True))["spec"]
    assert {each["type"] for each in spec["installModes"] if each["supported"]} == {"OwnNamespace"}
    assert "clusterPermissions" not in spec["install"]["spec"]


@pytest.mark.parametrize("certificates", ["", "/etc/webhook", CERTIFICATES])
def test_webhooks_become_definitions_of_the_service_version(certificates: str) -> None:
    files = bundle(of=msgspec.structs.replace(OLM, webhooks=[server(certificates)]))
    (hook,) = service_version(files)["spec"]["webhookdefinitions"]
    assert (hook["type"], hook["deploymentName"], hook["containerPort"], hook["targetPort"]) == (
        "ValidatingAdmissionWebhook",
        "widgets",
        443,
        9443,
    )
    assert not [name for name in files if "webhook" in name or "certificate" in name]
    (deployment,) = service_version(files)["spec"]["install"]["spec"]["deployments"]
    assert '"webhook-certificate"' not in json.dumps(deployment)
    assert f'"--webhook-certificates={CERTIFICATES}"' in json.dumps(deployment)
    assert check_bundle(files) == []


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (lambda: package(of=operator()), "permissions in the namespace 'vault'"),
        (lambda: package(of=OLM, version="1.0.0+build"), "OLM accepts no build metadata"),
        (lambda: package(of=OLM, olm={"channels": []}), r"olm\.channels: not set"),
        (lambda: package(of=OLM, olm={"channels": ["a b\nLABEL x=y"]}), "is not a channel name"),
    ],
)
def test_what_olm_cannot_install_is_refused(made: Any, message: str) -> None:
    with pytest.raises(PackageError, match=message):
        bundle(made())


def changed(files: dict[str, str], **spec: Any) -> dict[str, str]:
    version = service_version(files)
    version["spec"] |= spec
    return {**files, CSV: json.dumps(version)}


@pytest.mark.parametrize(
    ("break_it", "problem"),
    [
        (lambda files: {**files, CSV: ""}, "want one ClusterServiceVersion, found 0"),
        (lambda files: {**files, CSV: "a: ["}, "not YAML"),
        (lambda files: changed(files, version="1"), "spec.version: not a semantic version"),
        (lambda files: changed(files, provider={}), "spec.provider.name: not set"),
        (lambda files: changed(files, installModes=[]), "spec.installModes: want all four modes"),
        (lambda files: changed(files, install={}), "spec.install.spec.deployments: empty"),
        (lambda files: changed(files, customresourcedefinitions={}), "not owned by the ClusterServiceVersion"),
        (lambda files: changed(files, icon=[{"mediatype": "image/bmp"}]), "spec.icon"),
        (lambda files: changed(files, links=[{"name": "x"}]), "spec.links"),
        (
            lambda files: changed(
                files, customresourcedefinitions={"owned": [{"name": "b.c", "version": "v1", "kind": "B"}]}
            ),
            "B v1: owned, but no CustomResourceDefinition b.c has it",
        ),
        (
            lambda files: changed(files, webhookdefinitions=[{"deploymentName": "x", "generateName": "h"}]),
            "webhook h: no Deployment x",
        ),
        (lambda files: {**files, "metadata/annotations.yaml": ""}, "mediatype.v1: want registry+v1"),
        (lambda files: {**files, "bundle.Dockerfile": "FROM scratch"}, "its labels are not those of"),
        (
            lambda files: {**files, "manifests/x.yaml": "{kind: ServiceAccount, metadata: {name: widgets}}"},
            "ServiceAccount widgets: created by OLM",
        ),
        (
            lambda files: {**files, "manifests/x.yaml": "{kind: Deployment, metadata: {name: a, namespace: b}}"},
            "Deployment a: not a kind that a bundle may contain",
        ),
    ],
)
def test_a_rule_that_is_broken_is_reported(break_it: Any, problem: str) -> None:
    problems = check_bundle(break_it(bundle()))
    assert [each for each in problems if problem in each], problems


def test_names_are_spaced_for_people() -> None:
    assert [spaced(name) for name in ("minReadySeconds", "my-operator", "podIPs", "URLPath")] == [
        "Min Ready Seconds",
        "My Operator",
        "Pod IPs",
        "URL Path",
    ]
