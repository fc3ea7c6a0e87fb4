"""install.yaml: all objects, as they are configured."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from tests.stage.packages import operator, package, server

from ostinato.crd import Access
from ostinato.packaging import install_yaml


def objects(**overrides: Any) -> dict[str, Any]:
    """The objects by kind and name."""
    text = install_yaml(package(**overrides))
    return {f"{each['kind']}/{each['metadata']['name']}": each for each in yaml.load_all(text, yaml.CSafeLoader)}


def container(found: dict[str, Any]) -> dict[str, Any]:
    spec: dict[str, Any] = found["Deployment/widgets"]["spec"]["template"]["spec"]
    return spec["containers"][0]  # type: ignore[no-any-return]


def test_the_objects_of_a_package() -> None:
    assert list(objects(replicas=2)) == [
        "Namespace/widgets-system",
        "CustomResourceDefinition/widgets.example.dev",
        "ServiceAccount/widgets",
        "ClusterRole/widgets",
        "ClusterRoleBinding/widgets",
        "Role/widgets",
        "RoleBinding/widgets",
        "Role/widgets-leader-election",
        "RoleBinding/widgets-leader-election",
        "ClusterRole/widgets-view",
        "ClusterRole/widgets-edit",
        "Service/widgets-metrics",
        "Deployment/widgets",
        "PodDisruptionBudget/widgets",
        "NetworkPolicy/widgets",
    ]


def test_the_output_is_the_same_every_time() -> None:
    texts = {install_yaml(package(env={"B": "1", "A": "2"}, labels={"y": "1", "x": "2"})) for _ in range(3)}
    assert len(texts) == 1


def test_one_replica_needs_no_leader_election_and_never_runs_twice() -> None:
    found = objects()
    assert "Role/widgets-leader-election" not in found
    assert found["Deployment/widgets"]["spec"]["strategy"] == {"type": "Recreate"}
    assert not [each for each in container(found)["args"] if "leader" in each]


def test_several_replicas_elect_a_leader_with_the_permissions_for_it() -> None:
    found = objects(replicas=3)
    assert found["Deployment/widgets"]["spec"]["strategy"] == {"type": "RollingUpdate"}
    assert "--leader-election=widgets" in container(found)["args"]
    rules = found["Role/widgets-leader-election"]["rules"]
    assert {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["create"]} in rules
    named = [rule for rule in rules if rule.get("resourceNames") == ["widgets"]]
    assert named[0]["verbs"] == ["get", "update"]
    assert found["Role/widgets-leader-election"]["metadata"]["namespace"] == "widgets-system"


def test_a_program_with_its_own_leader_election_keeps_its_name() -> None:
    found = objects(of=operator(lease="mine"), replicas=2)
    assert "Role/widgets-leader-election" not in found
    assert not [each for each in container(found)["args"] if "leader" in each]


def test_roles_are_in_their_namespaces_and_bound_to_the_account() -> None:
    documents = [
        each for each in yaml.load_all(install_yaml(package()), yaml.CSafeLoader) if each["kind"] == "RoleBinding"
    ]
    assert sorted(each["metadata"]["namespace"] for each in documents) == ["vault", "widgets-system"]
    for each in documents:
        assert each["subjects"] == [{"kind": "ServiceAccount", "name": "widgets", "namespace": "widgets-system"}]


def test_the_container_is_restricted_and_probed() -> None:
    found = container(objects())
    assert found["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "readOnlyRootFilesystem": True,
    }
    assert found["command"] == ["ostinato", "run", "shop.widgets"]
    assert found["args"] == ["--health=:8081", "--log-format=json", "--metrics=:8080"]
    assert found["livenessProbe"]["httpGet"] == {"path": "/healthz", "port": "health", "scheme": "HTTP"}
    assert found["readinessProbe"]["httpGet"]["path"] == "/readyz"
    assert found["volumeMounts"] == [{"name": "writable-0", "mountPath": "/tmp"}]


def test_overrides_reach_the_deployment() -> None:
    found = objects(
        env={"B": {"secretKeyRef": {"name": "s", "key": "k"}}, "A": "{{ x }}"},
        args=["-v"],
        nodeSelector={"disk": "ssd"},
        tolerations=[{"operator": "Exists"}],
        priorityClassName="system-cluster-critical",
        podSecurityContext={"runAsUser": 65532, "runAsNonRoot": False},
        imagePullSecrets=[{"name": "registry"}],
        labels={"team": "shop"},
        podAnnotations={"note": "#: {{"},
        namespaced=True,
    )
    pod = found["Deployment/widgets"]["spec"]["template"]
    assert [each["name"] for each in container(found)["env"]] == ["POD_NAMESPACE", "A", "B"]
    assert container(found)["env"][1]["value"] == "{{ x }}"
    assert container(found)["args"][-2:] == ["--namespace=$(POD_NAMESPACE)", "-v"]
    assert pod["spec"]["securityContext"] == {
        "runAsUser": 65532,
        "runAsNonRoot": True,
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    assert pod["spec"]["nodeSelector"] == {"disk": "ssd"}
    assert pod["spec"]["imagePullSecrets"] == [{"name": "registry"}]
    assert pod["metadata"]["labels"]["team"] == "shop"
    assert pod["metadata"]["annotations"] == {"note": "#: {{"}
    assert found["Service/widgets-metrics"]["metadata"]["labels"]["team"] == "shop"


@pytest.mark.parametrize(
    ("switch", "absent"),
    [
        ("namespace", "Namespace/widgets-system"),
        ("crds", "CustomResourceDefinition/widgets.example.dev"),
        ("rbac", "ClusterRole/widgets"),
        ("userRoles", "ClusterRole/widgets-view"),
        ("podDisruptionBudget", "PodDisruptionBudget/widgets"),
        ("networkPolicy", "NetworkPolicy/widgets"),
        ("metrics", "Service/widgets-metrics"),
    ],
)
def test_a_feature_is_switched_off(switch: str, absent: str) -> None:
    assert absent in objects()
    assert absent not in objects(features={switch: False})


def test_without_metrics_nothing_listens_for_them() -> None:
    found = objects(features={"metrics": False})
    assert found["NetworkPolicy/widgets"]["spec"]["ingress"] == []
    assert [each["name"] for each in container(found)["ports"]] == ["health"]


def test_monitoring_is_switched_on() -> None:
    found = objects(features={"serviceMonitor": True, "alerts": True, "dashboard": True})
    rules = found["PrometheusRule/widgets"]["spec"]["groups"][0]["rules"]
    assert rules[0]["expr"] == 'absent(up{namespace="widgets-system",job="widgets-metrics"} == 1)'
    assert found["ServiceMonitor/widgets"]["spec"]["endpoints"][0]["port"] == "metrics"
    assert "ConfigMap/widgets-dashboard" in found


def test_secure_metrics_are_for_scrapers_with_a_role() -> None:
    found = objects(features={"secureMetrics": True, "serviceMonitor": True})
    assert "--metrics-secure" in container(found)["args"]
    reviews = {
        resource for rule in found["ClusterRole/widgets-metrics-auth"]["rules"] for resource in rule["resources"]
    }
    assert reviews == {"tokenreviews", "subjectaccessreviews"}
    reader = found["ClusterRole/widgets-metrics-reader"]["rules"]
    assert reader == [{"nonResourceURLs": ["/metrics"], "verbs": ["get"]}]
    (endpoint,) = found["ServiceMonitor/widgets"]["spec"]["endpoints"]
    assert endpoint["scheme"] == "https"
    assert "scheme" not in objects(features={"serviceMonitor": True})["ServiceMonitor/widgets"]["spec"]["endpoints"][0]


def test_webhooks_that_make_their_certificates_need_a_service_alone() -> None:
    found = objects(of=operator(webhooks=[server()]))
    service = found["Service/widgets-webhooks"]["spec"]["ports"][0]
    assert (service["port"], service["targetPort"]) == (443, "webhook-9443")
    assert {"name": "webhook-9443", "containerPort": 9443, "protocol": "TCP"} in container(found)["ports"]
    assert {"ports": [{"port": 9443, "protocol": "TCP"}]} in found["NetworkPolicy/widgets"]["spec"]["ingress"]
    assert "ValidatingWebhookConfiguration/widgets" in found
    assert not [name for name in found if name.startswith(("Certificate/", "Issuer/"))]


def test_webhooks_that_read_files_get_a_certificate_of_cert_manager() -> None:
    found = objects(of=operator(webhooks=[server("/etc/webhook")]))
    assert found["Certificate/widgets-webhook"]["spec"]["dnsNames"] == [
        "widgets-webhooks.widgets-system.svc",
        "widgets-webhooks.widgets-system.svc.cluster.local",
    ]
    assert found["Certificate/widgets-webhook"]["spec"]["issuerRef"]["name"] == "widgets-issuer"
    assert found["Issuer/widgets-issuer"]["spec"] == {"selfSigned": {}}
    annotations = found["ValidatingWebhookConfiguration/widgets"]["metadata"]["annotations"]
    assert annotations == {"cert-manager.io/inject-ca-from": "widgets-system/widgets-webhook"}
    mounts = {each["mountPath"]: each for each in container(found)["volumeMounts"]}
    assert mounts["/etc/webhook"] == {"name": "webhook-certificate", "mountPath": "/etc/webhook", "readOnly": True}
    volumes = found["Deployment/widgets"]["spec"]["template"]["spec"]["volumes"]
    assert {"name": "webhook-certificate", "secret": {"secretName": "widgets-webhook-certificate"}} in volumes


def test_cert_manager_takes_the_place_of_certificates_that_the_program_would_make() -> None:
    secrets = [Access(groups=("",), resources=("secrets",), verbs=("create",), namespace="{own}")]
    of = operator(webhooks=[server()], certificate_rules=secrets)
    assert "secrets" in str(objects(of=of)["Role/widgets"]["rules"])
    found = objects(of=of, certificates={"certManager": True})
    assert "--webhook-certificates=/etc/webhook-certificate" in container(found)["args"]
    assert "/etc/webhook-certificate" in [each["mountPath"] for each in container(found)["volumeMounts"]]
    assert "Certificate/widgets-webhook" in found
    roles = [each for name, each in found.items() if name.startswith("Role/")]
    assert "create" not in str([each["rules"] for each in roles])


def test_an_existing_secret_or_issuer_takes_the_place_of_ours() -> None:
    webhooks = operator(webhooks=[server("/etc/webhook")])
    found = objects(of=webhooks, certificates={"secret": "mine"})
    assert not [name for name in found if name.startswith(("Certificate/", "Issuer/"))]
    assert "annotations" not in found["ValidatingWebhookConfiguration/widgets"]["metadata"]
    found = objects(of=webhooks, certificates={"issuer": "corp", "issuerKind": "ClusterIssuer"})
    assert "Issuer/widgets-issuer" not in found
    issuer = found["Certificate/widgets-webhook"]["spec"]["issuerRef"]
    assert issuer == {"kind": "ClusterIssuer", "group": "cert-manager.io", "name": "corp"}


def test_users_of_the_kinds_get_roles_that_are_aggregated() -> None:
    found = objects()
    labels = found["ClusterRole/widgets-view"]["metadata"]["labels"]
    aggregated = {f"rbac.authorization.k8s.io/aggregate-to-{word}" for word in ("view", "edit", "admin")}
    assert {label for label, value in labels.items() if value == "true"} == aggregated
    assert found["ClusterRole/widgets-edit"]["rules"] == [
        {
            "apiGroups": ["example.dev"],
            "resources": ["widgets"],
            "verbs": ["create", "delete", "deletecollection", "patch", "update"],
        }
    ]
