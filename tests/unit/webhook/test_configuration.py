"""Webhook configurations: what follows from declarations, and that API servers take it."""

from __future__ import annotations

from typing import Any

import pytest
from tests.stage.api import Api, asking
from tests.unit.webhook.samples import Widget, WidgetV2, WidgetV2Spec

from ostinato.api.gvk import GroupVersionKind
from ostinato.certificates.object_access import DEFINITION, MUTATING, VALIDATING
from ostinato.kinds.core_v1 import Namespace
from ostinato.webhook import (
    ServiceEndpoint,
    UrlEndpoint,
    Webhooks,
    conversion,
    converter,
    defaulter,
    validator,
    webhook_configurations,
)
from ostinato.webhook.ca_injector import BundleTarget

SERVICE = ServiceEndpoint("widgets-system", "widgets")


@defaulter(Widget, reinvocation_policy="IfNeeded")
def fill_in(widget: Widget) -> None: ...


@validator(
    Widget,
    operations=["CREATE", "UPDATE", "DELETE"],
    failure_policy="Ignore",
    match_policy="Exact",
    side_effects="NoneOnDryRun",
    timeout_seconds=3,
    namespace_selector={"matchLabels": {"widgets": "yes"}},
    object_selector={"matchExpressions": [{"key": "skip", "operator": "DoesNotExist"}]},
    match_conditions=[{"name": "not-nodes", "expression": "!('system:nodes' in request.userInfo.groups)"}],
)
def check(widget: Widget) -> None: ...


@validator(Namespace)
def check_namespace(namespace: Namespace) -> None: ...


@converter
def up(old: Widget) -> WidgetV2:
    return WidgetV2(spec=WidgetV2Spec(count=1))


@converter
def down(new: WidgetV2) -> Widget:
    return Widget()


def test_a_declaration_becomes_a_configuration() -> None:
    mutating, validating = webhook_configurations([check, fill_in, check_namespace], "widgets", SERVICE)
    assert mutating == {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "MutatingWebhookConfiguration",
        "metadata": {"name": "widgets"},
        "webhooks": [
            {
                "name": "mutate.v1.widgets.example.dev",
                "admissionReviewVersions": ["v1"],
                "clientConfig": {
                    "service": {
                        "namespace": "widgets-system",
                        "name": "widgets",
                        "path": "/mutate-example-dev-v1-widget",
                        "port": 443,
                    }
                },
                "rules": [
                    {
                        "apiGroups": ["example.dev"],
                        "apiVersions": ["v1"],
                        "operations": ["CREATE", "UPDATE"],
                        "resources": ["widgets"],
                        "scope": "Namespaced",
                    }
                ],
                "failurePolicy": "Fail",
                "matchPolicy": "Equivalent",
                "sideEffects": "None",
                "timeoutSeconds": 10,
                "reinvocationPolicy": "IfNeeded",
            }
        ],
    }
    assert validating["kind"] == "ValidatingWebhookConfiguration"
    namespaces, widgets = validating["webhooks"]
    assert namespaces["rules"][0]["scope"] == "Cluster"
    assert widgets["rules"][0]["operations"] == ["CREATE", "UPDATE", "DELETE"]
    assert widgets["failurePolicy"] == "Ignore"
    assert widgets["matchPolicy"] == "Exact"
    assert widgets["sideEffects"] == "NoneOnDryRun"
    assert widgets["timeoutSeconds"] == 3
    assert widgets["namespaceSelector"] == {"matchLabels": {"widgets": "yes"}}
    assert widgets["objectSelector"]["matchExpressions"][0]["key"] == "skip"
    assert widgets["matchConditions"][0]["name"] == "not-nodes"
    assert "reinvocationPolicy" not in widgets


def test_hooks_may_handle_subresources() -> None:
    @validator(Widget, subresources=["status", "scale"])
    def hook(widget: dict[str, Any]) -> None: ...

    (configuration,) = webhook_configurations([hook], "widgets", SERVICE)
    resources = ["widgets", "widgets/status", "widgets/scale"]
    assert configuration["webhooks"][0]["rules"][0]["resources"] == resources
    with pytest.raises(ValueError, match="rules and subresources are both set"):
        validator(Widget, subresources=["status"], rules=[])(lambda widget: None)


def test_an_endpoint_given_as_a_string_is_rejected() -> None:
    hook = validator(Widget)(lambda widget: None)
    with pytest.raises(
        TypeError, match=r"invalid endpoint; pass ServiceEndpoint\(namespace, name\) or UrlEndpoint\('https://x'\)"
    ):
        Webhooks(hook, endpoint="https://x")  # type: ignore[arg-type]


def test_two_hooks_of_one_name_are_refused() -> None:
    hooks = [validator(Widget)(lambda widget: None), validator(Widget, path="/again")(lambda widget: None)]
    with pytest.raises(ValueError, match=r"duplicate hook name validate\.v1\.widgets\.example\.dev"):
        webhook_configurations(hooks, "widgets", SERVICE)
    with pytest.raises(ValueError, match=r"duplicate hook name validate\.v1\.widgets\.example\.dev"):
        Webhooks(*hooks, endpoint=SERVICE)


def test_rules_may_be_given() -> None:
    rule = {
        "apiGroups": ["apps"],
        "apiVersions": ["v1"],
        "operations": ["UPDATE"],
        "resources": ["deployments/scale"],
    }
    hook = validator(GroupVersionKind("autoscaling", "v1", "Scale"), rules=[rule])(lambda scale: None)
    (configuration,) = webhook_configurations([hook], "scales", SERVICE)
    assert configuration["webhooks"][0]["rules"] == [rule]


def test_a_kind_without_a_class_has_no_scope() -> None:
    hook = validator(GroupVersionKind("example.dev", "v1", "Gadget"))(lambda gadget: None)
    (configuration,) = webhook_configurations([hook], "gadgets", SERVICE)
    rule = configuration["webhooks"][0]["rules"][0]
    assert "scope" not in rule
    assert rule["resources"] == ["gadgets"]


def test_an_endpoint_may_be_a_url_and_the_bundle_given() -> None:
    endpoint = UrlEndpoint("https://127.0.0.1:9443/")
    (configuration,) = webhook_configurations([check_namespace], "namespaces", endpoint, b"authorities")
    assert configuration["webhooks"][0]["clientConfig"] == {
        "url": "https://127.0.0.1:9443/validate--v1-namespace",
        "caBundle": "YXV0aG9yaXRpZXM=",
    }
    assert conversion(endpoint) == {
        "strategy": "Webhook",
        "webhook": {
            "clientConfig": {"url": "https://127.0.0.1:9443/convert"},
            "conversionReviewVersions": ["v1"],
        },
    }


@pytest.mark.parametrize("url", ["http://a", "https://", "a", "https://a/?b=c", "https://a/#b", "https://u@a"])
def test_a_url_that_servers_would_not_take_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match="invalid URL"):
        UrlEndpoint(url)


def test_the_names_of_a_service_are_those_under_which_it_is_called() -> None:
    assert SERVICE.hosts[0] == "widgets.widgets-system.svc"
    assert UrlEndpoint("https://[::1]:9443").hosts == ["::1"]


def test_webhooks_know_their_manifests_and_the_places_of_their_bundle() -> None:
    webhooks = Webhooks(check, fill_in, up, down, endpoint=SERVICE, name="widgets")
    assert [each["kind"] for each in webhooks.configurations()] == [MUTATING.kind, VALIDATING.kind]
    assert webhooks.definitions == ["widgets.example.dev"]
    assert webhooks.conversion()["webhook"]["clientConfig"]["service"]["path"] == "/convert"
    assert webhooks.bundle_targets == [
        BundleTarget(VALIDATING, "widgets"),
        BundleTarget(MUTATING, "widgets"),
        BundleTarget(DEFINITION, "widgets.example.dev"),
    ]


@asking
async def test_an_api_server_takes_the_configurations(api: Api) -> None:
    for configuration in Webhooks(check, fill_in, check_namespace, endpoint=SERVICE, name="w").configurations():
        plural = configuration["kind"].lower() + "s"
        answer = await api.post(f"/apis/admissionregistration.k8s.io/v1/{plural}", configuration)
        assert answer.code == 201, answer.message
        for sent, stored in zip(configuration["webhooks"], answer.body["webhooks"], strict=True):
            assert {key: stored[key] for key in sent} == sent
