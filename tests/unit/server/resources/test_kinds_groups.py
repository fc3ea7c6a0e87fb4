from __future__ import annotations

import base64
from typing import Any

import pytest
from tests.stage.api import Api, asking

NETWORK = "/apis/networking.k8s.io/v1"
RBAC = "/apis/rbac.authorization.k8s.io/v1"
STORAGE = "/apis/storage.k8s.io/v1"
ADMISSION = "/apis/admissionregistration.k8s.io/v1"
FLOW = "/apis/flowcontrol.apiserver.k8s.io/v1"
RESOURCE = "/apis/resource.k8s.io/v1"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
HPA = "/apis/autoscaling/{}/namespaces/default/horizontalpodautoscalers"
EVENTS = "/api/v1/namespaces/default/events"
NEW_EVENTS = "/apis/events.k8s.io/v1/namespaces/default/events"
TARGET = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}


def pem(kind: str, content: str) -> str:
    return base64.b64encode(f"-----BEGIN {kind}-----\n{content}\n-----END {kind}-----\n".encode()).decode()


PEM = pem(
    "CERTIFICATE REQUEST",
    "MIHGMG4CAQAwDDEKMAgGA1UEAwwBYTBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IABOjwN5aT418wke+H99XI+slh5wbYNGFk2af2"
    "8zuV+6aGSfvJ6Wlj/JcAgkWSqvjbo1V3tjaBqR3NZZ2NV6+dukSgADAKBggqhkjOPQQDAgNIADBFAiEA45+4l1lYEJ94Ox4YamHS"
    "jOco51b9oPiZV2e+3LlbYjQCIACMZhaZb2sXZ2AqcOHMD81guBBC+vcIh9YC4ShfS/U5",
)
CERTIFICATE = pem(
    "CERTIFICATE",
    "MIIBbzCCARWgAwIBAgIUV95NzSClhsMAs2uD675VqkKSsnYwCgYIKoZIzj0EAwIwDDEKMAgGA1UEAwwBYTAgFw0yNjExMTUxOTI1"
    "MjJaGA8yMTI2MTAyMjE5MjUyMlowDDEKMAgGA1UEAwwBYTBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IABOjwN5aT418wke+H99XI"
    "+slh5wbYNGFk2af28zuV+6aGSfvJ6Wlj/JcAgkWSqvjbo1V3tjaBqR3NZZ2NV6+dukSjUzBRMB0GA1UdDgQWBBRNft1+RhlUnQH0"
    "nYnlmKt/WMSJQTAfBgNVHSMEGDAWgBRNft1+RhlUnQH0nYnlmKt/WMSJQTAPBgNVHRMBAf8EBTADAQH/MAoGCCqGSM49BAMCA0gA"
    "MEUCIEpM5TBOWxQRy5UoVpKVWnynF2h//1HdBxBSoE0d6CnkAiEA6TxdJYAAZy/ob096xXmMLZYLL7QhlWcproFvLJX0ly8=",
)


def named(name: str = "a", /, **fields: Any) -> dict[str, Any]:
    return {"metadata": {"name": name}, **fields}


# Invalid new objects: path, body, message.
REFUSED: list[tuple[str, dict[str, Any], str]] = [
    (
        "/apis/policy/v1/namespaces/default/poddisruptionbudgets",
        named(spec={"minAvailable": 1, "maxUnavailable": 1}),
        '{"MinAvailable":1,"Selector":null,"MaxUnavailable":1,"UnhealthyPodEvictionPolicy":null}: minAvailable and',
    ),
    (
        "/apis/policy/v1/namespaces/default/poddisruptionbudgets",
        named(spec={"minAvailable": "101%", "unhealthyPodEvictionPolicy": "Perhaps"}),
        "must not be greater than 100%",
    ),
    (
        "/apis/policy/v1/namespaces/default/poddisruptionbudgets",
        named(spec={"minAvailable": "x", "selector": {"matchLabels": {"a": "b c"}}}),
        "a valid percent string must be a numeric string",
    ),
    (
        LEASES,
        named(spec={"leaseDurationSeconds": 0}),
        "spec.leaseDurationSeconds: Invalid value: 0: must be greater than 0",
    ),
    (LEASES, named(spec={"leaseTransitions": -1}), "spec.leaseTransitions: Invalid value: -1"),
    (
        "/apis/scheduling.k8s.io/v1/priorityclasses",
        named("system-x", value=1),
        "system-x is not a known system priority",
    ),
    (
        "/apis/scheduling.k8s.io/v1/priorityclasses",
        named("system-node-critical", value=1),
        "value of system-node-critical PriorityClass must be 2000001000",
    ),
    (
        "/apis/scheduling.k8s.io/v1/priorityclasses",
        named("system-node-critical", value=2_000_001_000, globalDefault=True),
        "globalDefault of system-node-critical PriorityClass must be false",
    ),
    (
        "/apis/scheduling.k8s.io/v1/priorityclasses",
        named(value=1_000_000_001),
        "value: Forbidden: maximum allowed value of a user defined priority is 1000000000",
    ),
    (
        "/apis/scheduling.k8s.io/v1/priorityclasses",
        named(value=1, preemptionPolicy="Maybe"),
        'supported values: "PreemptLowerPriority", "Never"',
    ),
    ("/apis/node.k8s.io/v1/runtimeclasses", named(handler=""), "handler: Required value"),
    ("/apis/node.k8s.io/v1/runtimeclasses", named(handler="A"), 'handler: Invalid value: "A"'),
    (f"{RBAC}/clusterroles", named(rules=[{"verbs": []}]), "rules[0].verbs: Required value: verbs must contain"),
    (f"{RBAC}/clusterroles", named(rules=[{"verbs": ["get"], "apiGroups": [""]}]), "must supply at least one resource"),
    (
        f"{RBAC}/clusterroles",
        named(rules=[{"verbs": ["get"], "nonResourceURLs": ["/x"], "resources": ["pods"]}]),
        "rules cannot apply to both regular resources and non-resource URLs",
    ),
    (f"{RBAC}/clusterroles", named(aggregationRule={}), "at least one clusterRoleSelector required"),
    (
        f"{RBAC}/clusterroles",
        named(aggregationRule={"clusterRoleSelectors": [{"matchLabels": {"a": "b c"}}]}),
        "aggregationRule.clusterRoleSelectors[0].matchLabels",
    ),
    (
        f"{RBAC}/namespaces/default/roles",
        named(rules=[{"verbs": ["get"], "nonResourceURLs": ["/x"]}]),
        "namespaced rules cannot apply to non-resource URLs",
    ),
    (
        f"{RBAC}/namespaces/default/rolebindings",
        named(roleRef={"kind": "Odd"}),
        'supported values: "Role", "ClusterRole"',
    ),
    (
        f"{RBAC}/clusterrolebindings",
        named(roleRef={"kind": "ClusterRole", "name": "a/b", "apiGroup": "x"}, subjects=[{"kind": "ServiceAccount"}]),
        "subjects[0].namespace: Required value",
    ),
    (
        f"{RBAC}/clusterrolebindings",
        named(roleRef={"kind": "ClusterRole", "name": "a"}, subjects=[{"kind": "User", "name": "u", "apiGroup": "x"}]),
        'subjects[0].apiGroup: Unsupported value: "x"',
    ),
    (
        f"{RBAC}/clusterrolebindings",
        named(
            roleRef={"kind": "ClusterRole", "name": "a"},
            subjects=[
                {"kind": "ServiceAccount", "name": "A", "namespace": "d", "apiGroup": "x"},
                {"kind": "Robot", "name": "r"},
            ],
        ),
        'subjects[1].kind: Unsupported value: "Robot": supported values: "ServiceAccount", "User", "Group"',
    ),
    (f"{STORAGE}/storageclasses", named(), "provisioner: Required value"),
    (f"{STORAGE}/storageclasses", named(provisioner="p", reclaimPolicy="Burn"), 'supported values: "Delete", "Retain"'),
    (
        f"{STORAGE}/volumeattributesclasses",
        named(),
        "parameters: Required value: must contain at least one key/value pair",
    ),
    (
        f"{STORAGE}/namespaces/default/csistoragecapacities",
        named(),
        'storageClassName: Invalid value: "": a lowercase RFC 1123 subdomain',
    ),
    (f"{STORAGE}/volumeattachments", named(spec={"source": {}}), "spec.attacher: Required value"),
    (
        f"{NETWORK}/namespaces/default/networkpolicies",
        named(spec={"podSelector": {}, "policyTypes": ["Sideways"], "ingress": [{"from": [{}]}]}),
        "spec.ingress[0].from[0]: Required value: must specify a peer",
    ),
    (
        f"{NETWORK}/namespaces/default/networkpolicies",
        named(
            spec={"egress": [{"to": [{"ipBlock": {"cidr": "ten"}, "podSelector": {}}], "ports": [{"protocol": "X"}]}]}
        ),
        "may not specify both ipBlock and another peer",
    ),
    (
        f"{NETWORK}/namespaces/default/networkpolicies",
        named(spec={"policyTypes": ["Ingress", "Egress", "Ingress"], "egress": [{"to": [{"ipBlock": {}}]}]}),
        "may not specify more than two policyTypes",
    ),
    (
        f"{NETWORK}/namespaces/default/ingresses",
        named(spec={}),
        "spec: Invalid value: null: either `defaultBackend` or `rules` must be specified",
    ),
    (
        f"{NETWORK}/namespaces/default/ingresses",
        named(spec={"rules": [{"host": "1.2.3.4", "http": {"paths": []}}]}),
        "must be a DNS name, not an IP address",
    ),
    (
        f"{NETWORK}/namespaces/default/ingresses",
        named(
            spec={"rules": [{"host": "*.x", "http": {"paths": [{"path": "a", "pathType": "Exact", "backend": {}}]}}]}
        ),
        "must be an absolute path",
    ),
    (
        f"{NETWORK}/namespaces/default/ingresses",
        named(spec={"ingressClassName": "_", "rules": [{"http": {"paths": [{"pathType": "Odd", "backend": {}}]}}]}),
        'pathType: Unsupported value: "Odd"',
    ),
    (
        f"{NETWORK}/namespaces/default/ingresses",
        named(
            spec={"rules": [{"http": {"paths": [{"pathType": "ImplementationSpecific", "path": "a", "backend": {}}]}}]}
        ),
        "must be an absolute path",
    ),
    (
        f"{NETWORK}/ingressclasses",
        named(spec={"controller": "a/b", "parameters": {"kind": "K", "name": "n", "scope": "Namespace"}}),
        "`parameters.scope` is set to 'Namespace'",
    ),
    (
        f"{NETWORK}/ingressclasses",
        named(spec={"controller": "a/b", "parameters": {"kind": "K", "name": "n", "namespace": "x"}}),
        "`parameters.scope` is set to 'Cluster'",
    ),
    (f"{NETWORK}/ipaddresses", named("ten", spec={}), "metadata.name: Invalid value"),
    (f"{NETWORK}/ipaddresses", named("10.0.0.9", spec={"parentRef": {}}), "spec.parentRef.resource: Required value"),
    (f"{NETWORK}/servicecidrs", named(spec={}), "spec.cidrs: Required value: at least one CIDR required"),
    (f"{NETWORK}/servicecidrs", named(spec={"cidrs": ["a", "b", "c"]}), "may only hold up to 2 values"),
    (f"{NETWORK}/servicecidrs", named(spec={"cidrs": ["ten"]}), "spec.cidrs[0]: Invalid value"),
    (
        "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices",
        named(addressType="IPv5", endpoints=[{"addresses": []}], ports=[{"name": "A"}, {"name": "A"}]),
        'ports[1].name: Duplicate value: "A"',
    ),
    (
        "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices",
        named(addressType="IPv4", endpoints=[{"addresses": ["fd00::1"], "hostname": "_"}]),
        "must be an IPv4 address",
    ),
    (
        "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices",
        named(addressType="FQDN", endpoints=[{"addresses": ["_"]}]),
        "endpoints[0].addresses[0]: Invalid value",
    ),
    ("/apis/apiregistration.k8s.io/v1/apiservices", named("x", spec={"version": "v1", "group": "g"}), '"v1.g"'),
    (
        "/apis/apiregistration.k8s.io/v1/apiservices",
        named("v2.", spec={"version": "v2", "insecureSkipTLSVerify": True}),
        "local APIServices may not have insecureSkipTLSVerify",
    ),
    (
        "/apis/apiregistration.k8s.io/v1/apiservices",
        named(
            "v1.g",
            spec={"version": "v1", "group": "g", "service": {}, "insecureSkipTLSVerify": True, "caBundle": "YQ=="},
        ),
        "spec.service.namespace: Required value",
    ),
    (HPA.format("v2"), named(spec={"scaleTargetRef": TARGET, "maxReplicas": 1, "minReplicas": 2}), "`minReplicas`"),
    (HPA.format("v2"), named(spec={"scaleTargetRef": {}, "maxReplicas": -1}), "apiVersion must specify API group"),
    (
        HPA.format("v2"),
        named(spec={"scaleTargetRef": {**TARGET, "apiVersion": "a/b/c"}, "maxReplicas": 1}),
        "unexpected",
    ),
    (HPA.format("v1"), named(spec={"scaleTargetRef": TARGET, "minReplicas": 0}), "must be greater than or equal to 1"),
    (HPA.format("v2"), named(spec={"scaleTargetRef": TARGET, "maxReplicas": 1, "metrics": [{}]}), "metric source type"),
    (HPA.format("v2"), named(spec={"scaleTargetRef": TARGET, "maxReplicas": 1, "metrics": [{"type": "X"}]}), '"X"'),
    (
        HPA.format("v2"),
        named(spec={"scaleTargetRef": TARGET, "maxReplicas": 1, "metrics": [{"type": "Pods"}]}),
        "spec.metrics[0].pods: Required value: must populate information for the given metric source",
    ),
    (
        HPA.format("v2"),
        named(
            spec={
                "scaleTargetRef": TARGET,
                "maxReplicas": 1,
                "metrics": [
                    {"type": "Resource", "resource": {"target": {"type": "Utilization"}}},
                    {
                        "type": "Resource",
                        "resource": {
                            "name": "cpu",
                            "target": {"type": "Utilization", "averageUtilization": 0, "averageValue": "1"},
                        },
                    },
                ],
            }
        ),
        "may not set both a target raw value and a target utilization",
    ),
]


@pytest.mark.parametrize(("path", "sent", "part"), REFUSED)
def test_a_bad_object_is_refused_with_the_place_of_its_fault(path: str, sent: dict[str, Any], part: str) -> None:
    @asking
    async def check(api: Api) -> None:
        refused = await api.post(path, sent)
        assert (refused.code, part in refused.message) == (422, True), refused.message

    check()


HOOK = {
    "name": "a.b.c",
    "sideEffects": "None",
    "admissionReviewVersions": ["v1"],
    "clientConfig": {"url": "https://host/path"},
}
RULE = {"operations": ["CREATE"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*"]}


@pytest.mark.parametrize(
    ("change", "part"),
    [
        ({"name": "short"}, "should be a domain with at least three segments separated by dots"),
        ({"sideEffects": None}, "sideEffects: Required value: must specify one of None, NoneOnDryRun"),
        ({"sideEffects": "Some"}, 'sideEffects: Unsupported value: "Some"'),
        ({"failurePolicy": "Maybe"}, 'failurePolicy: Unsupported value: "Maybe": supported values: "Fail", "Ignore"'),
        ({"timeoutSeconds": 31}, "the timeout value must be between 1 and 30 seconds"),
        ({"admissionReviewVersions": []}, "must specify one of v1, v1beta1"),
        ({"admissionReviewVersions": ["v9"]}, "must include at least one of v1, v1beta1"),
        ({"clientConfig": {}}, "exactly one of url or service is required"),
        ({"clientConfig": {"url": "http://host"}}, "'https' is the only allowed URL scheme"),
        ({"namespaceSelector": {"matchLabels": {"a": "b c"}}}, "namespaceSelector.matchLabels"),
        ({"rules": [{}]}, "rules[0].operations: Required value"),
        ({"rules": [{**RULE, "operations": ["*", "PATCH"]}]}, "if '*' is present, must not specify other operations"),
        ({"rules": [{**RULE, "apiGroups": ["*", "a"]}]}, "must not specify other API groups"),
        ({"rules": [{**RULE, "apiVersions": ["v1", ""]}]}, "apiVersions[1]: Required value"),
        ({"rules": [{**RULE, "scope": "Galaxy"}]}, 'scope: Unsupported value: "Galaxy"'),
        ({"rules": [{**RULE, "resources": ["*", "", "pods"]}]}, "other resources without subresources"),
        ({"rules": [{**RULE, "resources": ["*/*", "a"]}]}, "if '*/*' is present, must not specify other resources"),
        ({"rules": [{**RULE, "resources": ["a/*", "a/b"]}]}, "if 'a/*' is present, must not specify a/b"),
        ({"rules": [{**RULE, "resources": ["*/b", "a/b"]}]}, "if '*/b' is present, must not specify a/b"),
    ],
)
def test_a_bad_webhook_is_refused(change: dict[str, Any], part: str) -> None:
    @asking
    async def check(api: Api) -> None:
        path = f"{ADMISSION}/validatingwebhookconfigurations"
        refused = await api.post(path, named(webhooks=[HOOK, {**HOOK, "name": "d.e.f", **change}]))
        assert (refused.code, part in refused.message) == (422, True), refused.message

    check()


@asking
async def test_webhooks_have_names_of_their_own(api: Api) -> None:
    path = f"{ADMISSION}/mutatingwebhookconfigurations"
    refused = await api.post(path, named(webhooks=[HOOK, {**HOOK, "reinvocationPolicy": "Often"}]))
    assert 'webhooks[1].name: Duplicate value: "a.b.c"' in refused.message
    assert 'reinvocationPolicy: Unsupported value: "Often": supported values: "IfNeeded", "Never"' in refused.message
    assert (await api.post(path, named(webhooks=[{**HOOK, "rules": [RULE]}]))).code == 201


MATCH = {"resourceRules": [RULE]}


@pytest.mark.parametrize(
    ("kind", "spec", "part"),
    [
        ("validatingadmissionpolicies", {}, "spec.validations: Required value: validations or auditAnnotations must"),
        (
            "validatingadmissionpolicies",
            {"matchConstraints": {}},
            "spec.matchConstraints.resourceRules: Required value",
        ),
        (
            "validatingadmissionpolicies",
            {"matchConstraints": MATCH, "validations": [{"expression": " "}]},
            "spec.validations[0].expression: Required value: expression is not specified",
        ),
        ("mutatingadmissionpolicies", {"paramKind": {}}, "spec.paramKind.apiVersion: Required value"),
        ("mutatingadmissionpolicies", {"paramKind": {"apiVersion": "a/b/c", "kind": "-"}}, "may have mixed case, but"),
        ("mutatingadmissionpolicies", {"paramKind": {"apiVersion": "_/V"}}, 'paramKind.apiVersion: Invalid value: "_"'),
        ("validatingadmissionpolicybindings", {}, "at least one validation action is required"),
        ("validatingadmissionpolicybindings", {"validationActions": ["Deny", "Warn"]}, "both Deny and Warn"),
        ("validatingadmissionpolicybindings", {"validationActions": ["Audit", "Audit"]}, 'Duplicate value: "Audit"'),
        ("mutatingadmissionpolicybindings", {"policyName": "_", "paramRef": {}}, "one of name or selector must be"),
        (
            "mutatingadmissionpolicybindings",
            {"paramRef": {"name": "a", "selector": {}, "parameterNotFoundAction": "Shrug"}},
            "name and selector are mutually exclusive",
        ),
    ],
)
def test_a_bad_policy_is_refused(kind: str, spec: dict[str, Any], part: str) -> None:
    @asking
    async def check(api: Api) -> None:
        refused = await api.post(f"{ADMISSION}/{kind}", named(spec=spec))
        assert (refused.code, part in refused.message) == (422, True), refused.message

    check()


# Invalid updates: the object, the change, the message.
FIXED: list[tuple[str, dict[str, Any], dict[str, Any], str]] = [
    (
        "/apis/scheduling.k8s.io/v1/priorityclasses",
        named(value=1),
        {"value": 2, "preemptionPolicy": "Never"},
        "value: Forbidden: may not be changed in an update.",
    ),
    ("/apis/node.k8s.io/v1/runtimeclasses", named(handler="h"), {"handler": "i"}, 'handler: Invalid value: "i"'),
    (f"{STORAGE}/storageclasses", named(provisioner="p"), {"provisioner": "q"}, 'provisioner: Invalid value: "q"'),
    (
        f"{STORAGE}/csidrivers",
        named(spec={}),
        {"spec": {"attachRequired": False}},
        "spec.attachedRequired: Invalid value",
    ),
    (
        f"{STORAGE}/volumeattributesclasses",
        named(driverName="d", parameters={"a": "b"}),
        {"parameters": {"a": "c"}},
        "parameters: Forbidden: updates to parameters are forbidden.",
    ),
    (
        f"{STORAGE}/namespaces/default/csistoragecapacities",
        named(storageClassName="s"),
        {"storageClassName": "t"},
        "storageClassName: Invalid value",
    ),
    (
        f"{STORAGE}/volumeattachments",
        named(spec={"attacher": "a", "nodeName": "n", "source": {"persistentVolumeName": "p"}}),
        {"spec": {"nodeName": "m"}},
        "spec: Invalid value",
    ),
    (
        f"{RBAC}/clusterrolebindings",
        named(roleRef={"kind": "ClusterRole", "name": "r"}),
        {"roleRef": {"name": "s"}},
        '{"APIGroup":"rbac.authorization.k8s.io","Kind":"ClusterRole","Name":"s"}: cannot change roleRef',
    ),
    (
        f"{NETWORK}/ingressclasses",
        named(spec={"controller": "a/b"}),
        {"spec": {"controller": "a/c"}},
        "spec.controller",
    ),
    (
        f"{NETWORK}/servicecidrs",
        named(spec={"cidrs": ["10.9.0.0/24"]}),
        {"spec": {"cidrs": ["10.8.0.0/24"]}},
        "spec.cidrs",
    ),
    (
        f"{NETWORK}/ipaddresses",
        named("10.0.0.9", spec={"parentRef": {"resource": "services", "name": "s"}}),
        {"spec": {"parentRef": {"name": "t"}}},
        "spec.parentRef: Invalid value",
    ),
    (
        "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices",
        named(addressType="IPv4"),
        {"addressType": "IPv6", "endpoints": [{"addresses": ["fd00::1"]}]},
        'addressType: Invalid value: "IPv6": field is immutable',
    ),
    (
        f"{RESOURCE}/namespaces/default/resourceclaims",
        named(spec={}),
        {"spec": {"devices": {"requests": [{"name": "r"}]}}},
        "spec",
    ),
    (
        f"{RESOURCE}/namespaces/default/resourceclaimtemplates",
        named(spec={"spec": {}}),
        {"spec": {"metadata": {"labels": {"a": "b"}}}},
        "spec: Invalid value",
    ),
    (
        f"{RESOURCE}/resourceslices",
        named(spec={"driver": "d", "nodeName": "n", "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1}}),
        {"spec": {"driver": "e", "pool": {"name": "q"}}},
        'spec.pool.name: Invalid value: "q"',
    ),
]


@pytest.mark.parametrize(("path", "sent", "change", "part"), FIXED)
def test_immutable_fields_cannot_change(path: str, sent: dict[str, Any], change: dict[str, Any], part: str) -> None:
    @asking
    async def check(api: Api) -> None:
        made = await api.post(path, sent)
        assert made.code == 201, made.message
        refused = await api.merge(f"{path}/{sent['metadata']['name']}", change)
        assert (refused.code, part in refused.message) == (422, True), refused.message

    check()


@pytest.mark.parametrize(
    "path",
    [
        "/apis/policy/v1/namespaces/default/poddisruptionbudgets",
        LEASES,
        f"{ADMISSION}/validatingwebhookconfigurations",
        f"{STORAGE}/csinodes",
    ],
)
def test_some_kinds_are_not_updated_without_a_version(path: str) -> None:
    @asking
    async def check(api: Api) -> None:
        made = (await api.post(path, named(spec={}))).body
        refused = await api.put(f"{path}/a", named(spec={}))
        assert "metadata.resourceVersion: Invalid value: 0: must be specified for an update" in refused.message
        assert (await api.put(f"{path}/a", made)).code == 200

    check()


@pytest.mark.parametrize(
    ("path", "sent"),
    [
        (LEASES, named(spec={})),
        (f"{RBAC}/clusterroles", named(rules=[])),
        ("/apis/node.k8s.io/v1/runtimeclasses", named(handler="h")),
        (EVENTS, named(involvedObject={"namespace": "default"})),
    ],
)
def test_some_kinds_can_be_created_by_an_update(path: str, sent: dict[str, Any]) -> None:
    @asking
    async def check(api: Api) -> None:
        assert (await api.put(f"{path}/a", sent)).code == 201

    check()


@asking
async def test_most_kinds_do_not(api: Api) -> None:
    assert (await api.put(f"{STORAGE}/storageclasses/a", named(provisioner="p"))).code == 404


@pytest.mark.parametrize("path", [f"{STORAGE}/storageclasses", f"{RESOURCE}/deviceclasses"])
def test_some_kinds_are_shown_when_they_are_deleted(path: str) -> None:
    @asking
    async def check(api: Api) -> None:
        await api.post(path, named(provisioner="p", spec={}))
        assert (await api.delete(f"{path}/a")).body["metadata"]["name"] == "a"

    check()


@asking
async def test_the_fields_of_coordinated_election_are_dropped(api: Api) -> None:
    made = await api.post(LEASES, named(spec={"strategy": "OldestEmulationVersion", "preferredHolder": "x"}))
    assert made.body["spec"] == {}


@asking
async def test_a_csi_driver_counts_its_changes_from_the_first(api: Api) -> None:
    made = await api.post(f"{STORAGE}/csidrivers", named(spec={"tokenRequests": [{"audience": ""}]}))
    assert "generation" not in made.body["metadata"]
    assert "spec.serviceAccountTokenInSecrets is unset" in made.warnings[0]
    changed = await api.merge(f"{STORAGE}/csidrivers/a", {"spec": {"storageCapacity": True}})
    assert changed.body["metadata"]["generation"] == 1
    assert changed.warnings == ()


@asking
async def test_the_generation_of_webhooks_counts_changes_of_them(api: Api) -> None:
    path = f"{ADMISSION}/mutatingwebhookconfigurations"
    await api.post(path, named())
    labelled = await api.merge(f"{path}/a", {"metadata": {"labels": {"a": "b"}}})
    assert labelled.body["metadata"]["generation"] == 1


@asking
async def test_the_generation_of_a_slice_counts_labels_too(api: Api) -> None:
    path = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices"
    sent = named(addressType="FQDN", endpoints=[{"addresses": ["a.b"], "deprecatedTopology": {"x": "y"}}])
    made = await api.post(path, sent)
    assert "FQDN endpoints are deprecated" in made.warnings[0]
    assert made.body["endpoints"] == [{"addresses": ["a.b"], "conditions": {}}]
    labelled = await api.merge(f"{path}/a", {"metadata": {"labels": {"a": "b"}}})
    assert labelled.body["metadata"]["generation"] == 2
    odd = await api.merge(f"{path}/a", {"endpoints": [{"addresses": ["010.1.1.1"]}]})
    assert odd.code == 200


@asking
async def test_a_status_of_some_kinds_is_written_without_metadata(api: Api) -> None:
    await api.post(f"{FLOW}/flowschemas", named(spec={"priorityLevelConfiguration": {"name": "p"}}))
    conditions = [{"type": "Dangling", "status": "True"}]
    change = {
        "metadata": {"labels": {"a": "b"}},
        "spec": {"matchingPrecedence": 7},
        "status": {"conditions": conditions},
    }
    written = (await api.merge(f"{FLOW}/flowschemas/a/status", change)).body
    assert "labels" not in written["metadata"]
    assert written["spec"]["matchingPrecedence"] == 1000
    assert written["status"]["conditions"][0]["type"] == "Dangling"
    await api.merge(f"{FLOW}/flowschemas/a", {"metadata": {"labels": {"c": "d"}}})
    written = (await api.merge(f"{FLOW}/flowschemas/a/status", change)).body
    assert written["metadata"]["labels"] == {"c": "d"}


@asking
async def test_an_ingress_that_names_its_class_in_an_annotation_is_warned(api: Api) -> None:
    sent = named(spec={"defaultBackend": {"service": {"name": "s", "port": {"number": 1}}}})
    sent["metadata"]["annotations"] = {"kubernetes.io/ingress.class": "x"}
    made = await api.post(f"{NETWORK}/namespaces/default/ingresses", sent)
    assert "please use 'spec.ingressClassName' instead" in made.warnings[0]
    assert made.body["status"] == {"loadBalancer": {}}


@asking
async def test_an_address_of_odd_form_in_a_policy_is_warned_of(api: Api) -> None:
    block = {"ipBlock": {"cidr": "FD00::/64", "except": ["FD00::/80"]}}
    path = f"{NETWORK}/namespaces/default/networkpolicies"
    made = await api.post(path, named(spec={"podSelector": {}, "ingress": [{"from": [block]}]}))
    assert "spec.ingress[0].from[0].ipBlock.cidr" in made.warnings[0]
    assert "spec.ingress[0].from[0].ipBlock.except[0]" in made.warnings[1]


@asking
async def test_a_local_api_service_is_available_at_once(api: Api) -> None:
    spec = {"version": "v1", "group": "g", "groupPriorityMinimum": 1, "versionPriority": 1}
    made = await api.post("/apis/apiregistration.k8s.io/v1/apiservices", named("v1.g", spec=spec))
    assert made.body["status"]["conditions"][0]["message"] == "Local APIServices are always available"
    other = {**spec, "group": "h", "service": {"namespace": "n", "name": "s"}}
    made = await api.post("/apis/apiregistration.k8s.io/v1/apiservices", named("v1.h", spec=other))
    assert (made.body["status"], made.body["spec"]["service"]["port"]) == ({}, 443)
    assert await api.cells("/apis/apiregistration.k8s.io/v1/apiservices/v1.h") == [["v1.h", "n/s", "Unknown", "0s"]]
    condition = {"type": "Available", "status": "False", "reason": "Missing", "lastTransitionTime": None}
    await api.merge("/apis/apiregistration.k8s.io/v1/apiservices/v1.h/status", {"status": {"conditions": [condition]}})
    assert (await api.cells("/apis/apiregistration.k8s.io/v1/apiservices/v1.h"))[0][2] == "False (Missing)"
    assert (await api.cells("/apis/apiregistration.k8s.io/v1/apiservices/v1.apps"))[0][1:3] == ["Local", "True"]


@asking
async def test_a_device_taint_defaults_to_the_current_time(api: Api) -> None:
    spec = {
        "driver": "d",
        "nodeName": "n",
        "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1},
        "devices": [{"name": "x", "taints": [{"key": "k", "effect": "NoExecute"}]}],
    }
    made = await api.post(f"{RESOURCE}/resourceslices", named(spec=spec))
    assert made.body["spec"]["devices"][0]["taints"][0]["timeAdded"] == made.body["metadata"]["creationTimestamp"]
    found = await api.get(f"{RESOURCE}/resourceslices?fieldSelector=spec.driver%3Dd,spec.nodeName%3Dm")
    assert found.body["items"] == []


REQUESTS = "/apis/certificates.k8s.io/v1/certificatesigningrequests"


@asking
async def test_a_signing_request_has_the_requesting_user(api: Api) -> None:
    spec = {"request": PEM, "signerName": "a.b/c", "usages": ["client auth"], "username": "forged", "groups": ["x"]}
    made = (await api.post(REQUESTS, named(spec=spec))).body
    assert made["spec"]["username"] == "admin"
    assert made["spec"]["uid"] == "u-1"
    assert made["spec"]["groups"] == ["system:masters", "system:authenticated"]
    changed = (
        await api.merge(f"{REQUESTS}/a", {"spec": {"signerName": "x.y/z"}, "status": {"certificate": "YQ=="}})
    ).body
    assert (changed["spec"], changed["status"]) == (made["spec"], made["status"])


@asking
async def test_a_signing_request_is_approved_once_and_then_signed(api: Api) -> None:
    await api.post(REQUESTS, named(spec={"request": PEM, "signerName": "a.b/c", "usages": ["client auth"]}))
    approved = {"type": "Approved", "status": "True", "reason": "Ok"}
    refused = await api.merge(f"{REQUESTS}/a/status", {"status": {"conditions": [approved]}})
    assert 'updates may not add a condition of type "Approved"' in refused.message
    done = await api.merge(f"{REQUESTS}/a/approval", {"status": {"conditions": [approved], "certificate": "YQ=="}})
    assert "certificate" not in done.body["status"]
    assert done.body["status"]["conditions"][0]["lastTransitionTime"]
    refused = await api.merge(f"{REQUESTS}/a/approval", {"status": {"conditions": []}})
    assert 'updates may not remove a condition of type "Approved"' in refused.message
    both = [approved, {"type": "Denied", "status": "True"}]
    refused = await api.merge(f"{REQUESTS}/a/approval", {"status": {"conditions": both}})
    assert "mutually exclusive" in refused.message
    reworded = {"status": {"certificate": CERTIFICATE, "conditions": [{**approved, "reason": "Mine"}]}}
    signed = await api.merge(f"{REQUESTS}/a/status", reworded)
    assert signed.body["status"]["conditions"][0]["reason"] == "Ok"
    assert (await api.cells(REQUESTS))[0][5] == "Approved,Issued"
    found = await api.get(f"{REQUESTS}?fieldSelector=spec.signerName%3Da.b/c")
    assert len(found.body["items"]) == 1


@asking
async def test_a_bad_signing_request_is_refused(api: Api) -> None:
    spec = {"request": PEM, "usages": ["eat", "any", "any"], "expirationSeconds": 5}
    refused = await api.post(REQUESTS, named(spec=spec))
    for part in (
        'spec.usages[0]: Unsupported value: "eat"',
        'spec.usages[2]: Duplicate value: "any"',
        "spec.signerName: Required value",
        "may not specify a duration less than 600 seconds (10 minutes)",
    ):
        assert part in refused.message
    refused = await api.post(REQUESTS, named(spec={"request": "YQ==", "signerName": "nodomain"}))
    assert 'spec.request: Invalid value: "YQ==": PEM block type must be CERTIFICATE REQUEST' in refused.message
    assert "must be a fully qualified domain and path of the form 'example.com/signer-name'" in refused.message


@asking
async def test_an_event_is_seen_in_both_groups(api: Api) -> None:
    about = {"kind": "Pod", "name": "p", "namespace": "default"}
    await api.post(EVENTS, named(involvedObject=about, message="m", reason="R", source={"component": "c"}))
    seen = (await api.get(f"{NEW_EVENTS}/a")).body
    assert (seen["apiVersion"], seen["note"], seen["regarding"]) == ("events.k8s.io/v1", "m", about)
    assert seen["deprecatedSource"] == {"component": "c"}
    found = await api.get(f"{NEW_EVENTS}?fieldSelector=regarding.name%3Dp,reason%3DR")
    assert len(found.body["items"]) == 1
    found = await api.get(f"{EVENTS}?fieldSelector=involvedObject.name%3Dq")
    assert found.body["items"] == []
    refused = await api.get(f"{NEW_EVENTS}?fieldSelector=involvedObject.name%3Dq")
    assert refused.code == 400
    assert (await api.cells(NEW_EVENTS))[0][3] == "pod/p"


@asking
async def test_events_of_the_new_group_are_held_to_stricter_rules(api: Api) -> None:
    refused = await api.post(NEW_EVENTS, named(regarding={"namespace": "default"}, deprecatedCount=1, type="Loud"))
    assert refused.message == (
        'Event "a" is invalid: [eventTime: Required value, type: Invalid value: "": has invalid value: Loud, '
        'count: Invalid value: "": needs to be unset]'
    )
    event = named(
        regarding={"namespace": "default"},
        eventTime="2024-01-01T00:00:00.000000Z",
        type="Normal",
        reason="R",
        action="A",
        reportingController="a.b/c",
        reportingInstance="i",
    )
    for change, part in (
        ({"action": "x" * 129}, "can have at most 128 characters"),
        ({"note": "x" * 1025}, "can have at most 1024 characters"),
        ({"reportingController": ""}, "reportingController: Required value"),
        ({"reportingInstance": ""}, "reportingInstance: Required value"),
        ({"series": {"count": 1, "lastObservedTime": None}}, "should be at least 2"),
    ):
        assert part in (await api.post(NEW_EVENTS, {**event, **change})).message
    assert (await api.post(NEW_EVENTS, event)).code == 201
    assert "reason: Invalid value" in (await api.merge(f"{NEW_EVENTS}/a", {"reason": "S"})).message
    series = {"series": {"count": 2, "lastObservedTime": "2024-01-01T00:00:01.000000Z"}}
    assert (await api.merge(f"{NEW_EVENTS}/a", series)).code == 200


@asking
async def test_an_event_is_in_the_namespace_of_the_involved_object(api: Api) -> None:
    refused = await api.post(EVENTS, named(involvedObject={"namespace": "other"}))
    assert 'involvedObject.namespace: Invalid value: "other": does not match event.namespace' in refused.message
    await api.post("/api/v1/namespaces", named("other"))
    event = named(
        eventTime="2024-01-01T00:00:00.000000Z", reason="R", action="A", reportingComponent="a/b", reportingInstance="i"
    )
    refused = await api.post("/api/v1/namespaces/other/events", event)
    assert "does not match event.namespace" in refused.message


@asking
async def test_field_ownership_of_an_event_is_converted_between_its_groups(api: Api) -> None:
    about = {"kind": "Pod", "name": "p", "namespace": "default"}
    config = {"apiVersion": "v1", "kind": "Event", **named(involvedObject=about, message="m")}
    assert (await api.apply(f"{EVENTS}/a?fieldManager=one", config)).code == 201
    other = {"apiVersion": "events.k8s.io/v1", "kind": "Event", **named(regarding=about, note="n")}
    refused = await api.apply(f"{NEW_EVENTS}/a?fieldManager=two", other)
    assert (refused.code, 'conflict with "one": .message' in refused.message) == (409, True)


@asking
async def test_an_autoscaler_of_v1_keeps_v2_fields_in_annotations(api: Api) -> None:
    memory = {
        "type": "Resource",
        "resource": {"name": "memory", "target": {"type": "AverageValue", "averageValue": "1Gi"}},
    }
    await api.post(HPA.format("v2"), named(spec={"scaleTargetRef": TARGET, "maxReplicas": 3, "metrics": [memory]}))
    old = (await api.get(f"{HPA.format('v1')}/a")).body
    assert "autoscaling.alpha.kubernetes.io/metrics" in old["metadata"]["annotations"]
    old["spec"]["maxReplicas"] = 4
    assert (await api.put(f"{HPA.format('v1')}/a", old)).body["spec"]["maxReplicas"] == 4
    new = (await api.get(f"{HPA.format('v2')}/a")).body
    assert (new["spec"]["metrics"], new["spec"]["maxReplicas"]) == ([memory], 4)
    assert "annotations" not in new["metadata"]
    old["metadata"]["annotations"] = {"autoscaling.alpha.kubernetes.io/metrics": "{", "a": "b"}
    old["metadata"].pop("resourceVersion")
    assert (await api.put(f"{HPA.format('v1')}/a", old)).body["spec"]["targetCPUUtilizationPercentage"] == 80
    assert (await api.cells(HPA.format("v1")))[0][2] == "cpu: <unknown>/80%"
    assert (await api.merge(f"{HPA.format('v2')}/a", {"spec": {"minReplicas": 9}})).code == 422


@asking
async def test_a_flow_schema_reports_a_missing_priority_level(api: Api) -> None:
    flow = "/apis/flowcontrol.apiserver.k8s.io/v1"
    level = {"priorityLevelConfiguration": {"name": "mine"}, "matchingPrecedence": 5}
    assert (await api.post(f"{flow}/flowschemas", named(spec=level))).body["status"] == {}

    async def told() -> tuple[str, str]:
        condition = (await api.get(f"{flow}/flowschemas/a")).body["status"]["conditions"][0]
        return condition["status"], condition["reason"]

    assert await told() == ("True", "NotFound")
    limited = {"type": "Limited", "limited": {"limitResponse": {"type": "Reject"}}}
    await api.post(f"{flow}/prioritylevelconfigurations", named("mine", spec=limited))
    assert await told() == ("False", "Found")
    await api.delete(f"{flow}/prioritylevelconfigurations/mine")
    assert await told() == ("True", "NotFound")
