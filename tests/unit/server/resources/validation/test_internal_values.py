"""Values in messages: field names and order of kube-apiserver's internal types."""

from __future__ import annotations

import pytest

from ostinato.api.text.go_format import json_text
from ostinato.server.resources.validation.checks import difference
from ostinato.server.resources.validation.internal_values import as_internal


@pytest.mark.parametrize(
    ("model", "value", "text"),
    [
        (
            "meta.v1.LabelSelector",
            {"matchExpressions": [{"key": "c", "operator": "Exists"}], "matchLabels": {"b": "1", "a": "2"}},
            '{"matchLabels":{"a":"2","b":"1"},"matchExpressions":[{"key":"c","operator":"Exists"}]}',
        ),
        (
            "apps.v1.DeploymentStrategy",
            {"type": "No", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": "25%"}},
            '{"Type":"No","RollingUpdate":{"MaxUnavailable":"25%","MaxSurge":1}}',
        ),
        (
            "core.v1.PodResourceClaim",
            {},
            '{"Name":"","ResourceClaimName":null,"ResourceClaimTemplateName":null}',
        ),
        (
            "batch.v1.PodFailurePolicyRule",
            {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]},
            '{"Action":"Ignore","OnExitCodes":null,"OnPodConditions":[{"Type":"DisruptionTarget","Status":"True"}]}',
        ),
        (
            "admissionregistration.v1.NamedRuleWithOperations",
            {"operations": ["*"], "resources": ["pods"]},
            (
                '{"ResourceNames":null,"RuleWithOperations":'
                '{"Operations":["*"],"APIGroups":null,"APIVersions":null,"Resources":["pods"],"Scope":null}}'
            ),
        ),
    ],
)
def test_a_value_is_shown_as_a_kube_apiserver_holds_it(model: str, value: dict[str, object], text: str) -> None:
    assert json_text(as_internal(model, value)) == text


def test_host_fields_of_a_pod_are_shown_in_its_security_context() -> None:
    shown = as_internal("core.v1.PodSpec", {"hostNetwork": True, "containers": []})
    assert shown["SecurityContext"]["HostNetwork"] is True
    assert "HostNetwork" not in shown


def test_metadata_of_a_template_stands_among_its_fields() -> None:
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": []}}
    assert list(as_internal("core.v1.PodTemplateSpec", template)) == ["labels", "Spec"]


def test_a_difference_names_the_fields_as_they_are_shown() -> None:
    old, new = (as_internal("core.v1.Taint", {"key": key, "effect": "NoSchedule"}) for key in "ab")
    assert difference(old, new).startswith('@@ -1,5 +1,5 @@\n {\n- "Key": "a",\n+ "Key": "b",\n')


def test_a_number_that_was_given_is_shown_even_if_it_is_zero() -> None:
    template = {"metadata": {"deletionGracePeriodSeconds": 0, "labels": {}}, "spec": {"containers": []}}
    assert list(as_internal("core.v1.PodTemplateSpec", template)) == ["deletionGracePeriodSeconds", "Spec"]
