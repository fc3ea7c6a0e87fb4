"""Rules of core kinds that no recorded scenario covers, tested directly."""

from __future__ import annotations

from typing import Any

import pytest

from ostinato.api.gvk import GroupResource
from ostinato.api.quantity import Quantity
from ostinato.api.validation.field_errors import Path
from ostinato.server.admission.quota.limit_ranger import _problems
from ostinato.server.admission.quota.scopes import in_scope
from ostinato.server.admission.quota.usage import usage
from ostinato.server.resources.core.configuration import MOST_BYTES, decoded_length
from ostinato.server.resources.core.pods.spec.defaults import default_pod_spec
from ostinato.server.resources.core.pods.spec.images import pull_policy, tag_of
from ostinato.server.resources.core.pods.spec.validation import validate_pod_spec
from ostinato.server.resources.core.pods.spec.warnings import pod_warnings
from ostinato.server.resources.core.pods.update import validate_spec_change
from ostinato.server.resources.core.services.validation import validate_load_balancer, validate_update
from ostinato.server.resources.core.strategy import STRATEGIES
from ostinato.server.resources.validation import quantities as amounts
from ostinato.server.resources.validation.checks import difference

_DIGEST = "sha256:" + "0123456789abcdef" * 4


PODS = GroupResource("", "pods")


@pytest.mark.parametrize(
    ("image", "tag"),
    [
        ("nginx", "latest"),
        ("nginx:latest", "latest"),
        ("nginx:1", "1"),
        (f"nginx@{_DIGEST}", ""),
        (f"nginx:1@{_DIGEST}", "1"),
        ("localhost:5000/nginx", "latest"),
        ("localhost/nginx:2", "2"),
        ("example.com/a/b", "latest"),
        ("Example/nginx", "latest"),
        ("a_.b:5000/nginx", ""),
        ("nginx@sha256:01", ""),
        ("Nginx", ""),
        ("", ""),
        (_DIGEST[7:], ""),
        ("a" * 256, ""),
    ],
)
def test_an_image_stands_for_a_tag(image: str, tag: str) -> None:
    assert tag_of(image) == tag


def test_an_image_that_may_change_under_its_name_is_pulled_every_time() -> None:
    assert pull_policy("nginx") == "Always"
    assert pull_policy("nginx:1") == "IfNotPresent"
    assert pull_policy("example.com/" + "a/" * 120 + "b" * 400) == "IfNotPresent"
    assert pull_policy(f"{'a' * 240}.example.com/{'b/' * 100}c" + "d" * 50) == "Always"


def _warnings(**spec: Any) -> list[str]:
    return pod_warnings({"containers": [], **spec}, {})


def test_ports_that_get_in_each_others_way_are_warned_of() -> None:
    ports = [
        {"containerPort": 80, "hostPort": 80},
        {"containerPort": 80, "hostPort": 80},
        {"containerPort": 80},
        {"containerPort": 80, "hostPort": 80, "hostIP": "1.2.3.4"},
    ]
    found = _warnings(containers=[{"name": "c", "ports": ports}])
    at = "spec.containers[0].ports"
    assert found == [
        f"{at}[1]: duplicate port definition with {at}[0]",
        f"{at}[2]: overlapping port definition with {at}[0]",
        f"{at}[2]: overlapping port definition with {at}[1]",
        f"{at}[3]: dangerously ambiguous port definition with {at}[0]",
        f"{at}[3]: dangerously ambiguous port definition with {at}[1]",
        f"{at}[3]: overlapping port definition with {at}[2]",
    ]


def test_deprecated_fields_and_empty_selectors_are_warned_of() -> None:
    expression = {"matchExpressions": [{"key": "beta.kubernetes.io/os", "operator": "Exists"}]}
    required, preferred = (f"{how}DuringSchedulingIgnoredDuringExecution" for how in ("required", "preferred"))
    old = 'deprecated since v1.14; use "kubernetes.io/os" instead'
    found = _warnings(
        affinity={
            "nodeAffinity": {
                required: {"nodeSelectorTerms": [expression]},
                preferred: [{"weight": 1, "preference": expression}],
            },
            "podAntiAffinity": {required: [{}], preferred: [{"podAffinityTerm": {}}]},
        },
        topologySpreadConstraints=[{"topologyKey": "beta.kubernetes.io/os", "labelSelector": {}}],
        terminationGracePeriodSeconds=-1,
        overhead={"memory": "1500m"},
        volumes=[
            {"ephemeral": {"volumeClaimTemplate": {"spec": {"resources": {"requests": {"storage": "1500m"}}}}}},
            {"storageos": {}},
        ],
        dnsConfig={"nameservers": ["01.1.1.1"]},
        hostAliases=[{"ip": "::ffff:1.2.3.4"}],
    )
    affinity = "spec.affinity"
    storage = "spec.volumes[0].ephemeral.volumeClaimTemplate.spec.resources.requests[storage]"
    nothing = "a null labelSelector results in matching no pod"
    key = "matchExpressions[0].key: beta.kubernetes.io/os is"
    assert found == [
        f"{affinity}.nodeAffinity.{required}.nodeSelectorTerms[0].{key} {old}",
        f"{affinity}.nodeAffinity.{preferred}[0].preference.{key} {old}",
        f"spec.topologySpreadConstraints[0].topologyKey: beta.kubernetes.io/os is {old}",
        f'{storage}: fractional byte value "1500m" is invalid, must be an integer',
        "spec.volumes[1].storageOS: deprecated in v1.22, non-functional in v1.25+",
        'spec.overhead[memory]: fractional byte value "1500m" is invalid, must be an integer',
        "spec.terminationGracePeriodSeconds: must be >= 0; negative values are invalid and will be treated as 1",
        f"{affinity}.podAntiAffinity.{required}[0].labelSelector: {nothing}",
        f"{affinity}.podAntiAffinity.{preferred}[0].podAffinityTerm.labelSelector: {nothing}",
        'spec.dnsConfig.nameservers[0]: non-standard IP address "01.1.1.1" is invalid: use "1.1.1.1"',
        'spec.hostAliases[0].ip: non-standard IP address "::ffff:1.2.3.4" is invalid: use "1.2.3.4"',
    ]


def _pod_errors(**spec: Any) -> list[str]:
    made = {"containers": [{"name": "c", "image": "i"}], **spec}
    default_pod_spec(made)
    return [str(error) for error in validate_pod_spec(made, "a", Path("spec"))]


def test_a_resolver_takes_only_so_much() -> None:
    errors = _pod_errors(dnsConfig={"searches": [f"{'a' * 60}.{'b' * 60}"] * 33})
    assert [error.partition(": must")[2] for error in errors] == [
        " not have more than 32 search paths",
        " not have more than 2048 characters (including spaces) in the search list",
    ]


def test_a_container_takes_no_more_than_its_pod() -> None:
    container = {"name": "c", "image": "i", "resources": {"limits": {"cpu": "2", "hugepages-2Mi": "4Mi"}}}
    errors = _pod_errors(containers=[container], resources={"limits": {"cpu": "1", "hugepages-2Mi": "2Mi"}})
    at, least, most = "spec.resources", "must be greater than or equal to", "must be less than or equal to"
    assert errors == [
        f'{at}.limits[hugepages-2Mi]: Invalid value: "2Mi": {least} aggregate container limits of 4Mi',
        f'{at}.containers[0][cpu].limits: Invalid value: "2": {most} pod limits of 1',
        f'{at}.containers[0][hugepages-2Mi].limits: Invalid value: "4Mi": {most} pod limits of 2Mi',
    ]
    assert _pod_errors(resources={"limits": {"example.com/x": "1"}, "requests": {"example.com/x": "1"}})[0] == (
        'spec.resources.limits[example.com/x]: Unsupported value: "example.com/x": '
        'supported values: "cpu", "hugepages-", "memory"'
    )
    assert _pod_errors(os={})[0] == "spec.os.name: Required value"


def test_a_gate_is_not_replaced_and_a_negative_grace_becomes_one() -> None:
    old: dict[str, Any] = {"containers": [{"name": "c", "image": "i"}], "terminationGracePeriodSeconds": -1}
    assert validate_spec_change({**old, "terminationGracePeriodSeconds": 1}, old) == []
    without_image = {**old, "containers": [{"name": "c"}]}
    assert str(validate_spec_change(without_image, old)[0]) == "spec.containers[0].image: Required value"


_SERVICE: dict[str, Any] = {
    "type": "ClusterIP",
    "ports": [{"port": 80, "protocol": "TCP", "targetPort": 80}],
    "sessionAffinity": "None",
    "internalTrafficPolicy": "Cluster",
    "clusterIP": "10.0.0.9",
    "clusterIPs": ["10.0.0.9", "fd00::9"],
    "ipFamilies": ["IPv4", "IPv6"],
    "ipFamilyPolicy": "PreferDualStack",
}


def _service_errors(**spec: Any) -> list[str]:
    new, old = ({"metadata": {}, "spec": each} for each in ({**_SERVICE, **spec}, _SERVICE))
    return [str(error) for error in validate_update(new, old)]


def test_a_service_with_two_addresses_keeps_the_first() -> None:
    assert _service_errors() == []
    released = "spec.ipFamilyPolicy: Invalid value: \"PreferDualStack\": must be set to 'SingleStack' when releasing"
    assert _service_errors(clusterIPs=["10.0.0.9"], ipFamilies=["IPv4"]) == [
        f"{released} the secondary clusterIP",
        f"{released} the secondary ipFamily",
    ]
    changed = _service_errors(clusterIP="10.0.0.8", clusterIPs=["10.0.0.8"], ipFamilyPolicy="SingleStack")
    assert changed == ['spec.clusterIPs[0]: Invalid value: ["10.0.0.8"]: may not change once set']
    unset = _service_errors(clusterIP="", clusterIPs=[])
    assert "spec.clusterIPs[0]: Invalid value: null: primary clusterIP can not be unset" in unset
    assert 'spec.ipFamilies[0]: Invalid value: ["10.0.0.9","fd00::9"]: may not change once set' in _service_errors(
        ipFamilies=["IPv6"]
    )


def test_linked_fields_of_services_must_match() -> None:
    two = [{**port, "name": "x", "nodePort": 30001} for port in _SERVICE["ports"] * 2]
    errors = _service_errors(
        sessionAffinity="ClientIP", sessionAffinityConfig={}, ports=two, type="NodePort", externalTrafficPolicy="Local"
    )
    assert errors[0] == 'spec.ports[1].name: Duplicate value: "x"'
    assert "spec.sessionAffinityConfig: Required value: when session affinity type is ClientIP" in errors
    assert "spec.ports[1].nodePort: Duplicate value: 30001" in errors
    assert _service_errors(sessionAffinityConfig={"clientIP": {}}) == [
        "spec.sessionAffinityConfig: Forbidden: must not be set when session affinity is None"
    ]
    local = _service_errors(type="LoadBalancer", externalTrafficPolicy="Local", allocateLoadBalancerNodePorts=True)
    assert local == ["spec.healthCheckNodePort: Required value"]


def test_a_load_balancer_status_has_an_address_and_its_mode() -> None:
    status = {"loadBalancer": {"ingress": [{"ip": "1.2.3.4"}, {"hostname": "a", "ipMode": "VIP"}]}}
    service = {"spec": {"type": "LoadBalancer"}, "status": status}
    assert [str(error) for error in validate_load_balancer(service, {})] == [
        "status.loadBalancer.ingress[0].ipMode: Required value: must be specified when `ip` is set",
        "status.loadBalancer.ingress[1].ipMode: Forbidden: may not be specified when `ip` is not set",
    ]


def test_a_volume_keeps_the_time_of_its_phase() -> None:
    volume = STRATEGIES["", "persistentvolumes"]
    old = {"spec": {}, "status": {"phase": "Bound", "lastPhaseTransitionTime": "2020-01-01T00:00:00Z"}, "metadata": {}}
    new = {"spec": {}, "status": {"phase": "Bound"}, "metadata": {}}
    volume.prepare_status_update(new, old)
    assert new == old


def test_configuration_has_a_size() -> None:
    assert [decoded_length(text) for text in ("", "YQ==", "YWI=", "YWJj")] == [0, 1, 2, 3]
    fits = {"metadata": {}, "binaryData": {"a": "A" * 4}, "data": {"b": "é" * (MOST_BYTES // 2 - 2)}}
    config = STRATEGIES["", "configmaps"]
    assert config.validate(fits) == []
    more = {**fits, "data": {"b": "é" * (MOST_BYTES // 2)}}
    assert [str(error) for error in config.validate(more)] == ["[]: Too long: may not be more than 1048576 bytes"]
    secret = {"metadata": {}, "type": "Opaque", "data": {"a": "AAAA" * (MOST_BYTES // 3 + 1)}}
    assert [str(error) for error in STRATEGIES["", "secrets"].validate(secret)] == [
        "data: Too long: may not be more than 1048576 bytes"
    ]


def test_pages_have_a_size_in_their_name() -> None:
    path = Path("x")
    assert amounts.validate_huge_pages("hugepages-2Mi", "4Mi", path) == []
    assert len(amounts.validate_huge_pages("hugepages-odd", "4Mi", path)) == 1
    assert amounts.validate_huge_pages("cpu", "1", path) == []
    assert [str(error) for error in amounts.validate_container_name("kubernetes.io/x", path)] == []


def test_limits_are_held_one_by_one() -> None:
    limit = {"type": "Container", "min": {"cpu": "2"}, "max": {"cpu": "1"}, "maxLimitRequestRatio": {"cpu": "1"}}
    assert list(_problems(limit, {}, {})) == [
        "minimum cpu usage per Container is 2.  No request is specified",
        "maximum cpu usage per Container is 1.  No limit is specified",
        "cpu max limit to request ratio per Container is 1, but no request is specified or request is 0",
    ]
    three = {"cpu": Quantity.of(3)}
    assert list(_problems(limit, three, {"cpu": Quantity.of(1)})) == [
        "minimum cpu usage per Container is 2, but limit is 1",
        "maximum cpu usage per Container is 1, but request is 3",
    ]
    assert list(_problems({"type": "Pod", "maxLimitRequestRatio": {"cpu": "1"}}, three, {})) == [
        "cpu max limit to request ratio per Pod is 1, but no limit is specified or limit is 0"
    ]


@pytest.mark.parametrize(
    ("term", "name", "matches"),
    [
        ({"operator": "Exists"}, "a", True),
        ({"operator": "DoesNotExist"}, "a", False),
        ({"operator": "In", "values": ["a"]}, "a", True),
        ({"operator": "In", "values": ["a"]}, "", False),
        ({"operator": "NotIn", "values": ["a"]}, "b", True),
    ],
)
def test_a_quota_can_be_about_some_priorities(term: dict[str, Any], name: str, *, matches: bool) -> None:
    selector = {"matchExpressions": [{"scopeName": "PriorityClass", **term}]}
    assert in_scope(PODS, {"spec": {"priorityClassName": name}}, {"scopeSelector": selector}) is matches


def test_a_pod_is_counted_in_its_quota_scopes() -> None:
    pod = {"spec": {"activeDeadlineSeconds": 5, "containers": []}}
    scopes = ("Terminating", "NotTerminating", "BestEffort", "NotBestEffort", "CrossNamespacePodAffinity")
    assert [in_scope(PODS, pod, {"scopes": [scope]}) for scope in scopes] == [True, False, True, False, False]
    near = {"podAffinityTerm": {"namespaceSelector": {}}}
    pod["spec"]["affinity"] = {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [near]}}
    assert in_scope(PODS, pod, {"scopes": ["CrossNamespacePodAffinity"]})


def test_a_quota_of_claims_can_be_about_those_with_a_class_of_attributes() -> None:
    claims, quota = GroupResource("", "persistentvolumeclaims"), {"scopes": ["VolumeAttributesClass"]}
    assert not in_scope(claims, {"spec": {}}, quota)
    assert in_scope(claims, {"spec": {"volumeAttributesClassName": "gold"}}, quota)
    assert in_scope(claims, {"spec": {}, "status": {"currentVolumeAttributesClassName": "gold"}}, quota)
    assert not in_scope(GroupResource("", "services"), {"spec": {}}, quota)


def test_a_finished_pod_counts_only_as_an_object() -> None:
    used = usage(GroupResource("", "pods"), {"spec": {"containers": []}, "status": {"phase": "Failed"}})
    assert {name: str(amount) for name, amount in used.items()} == {"count/pods": "1"}


def test_a_difference_is_shown_by_lines_unless_it_is_too_long() -> None:
    assert difference({"a": 1, "b": 2}, {"a": 1, "b": 3}) == '@@ -1,4 +1,4 @@\n {\n  "a": 1,\n- "b": 2\n+ "b": 3\n }\n'
    assert difference(list(range(5000)), []) == ""
