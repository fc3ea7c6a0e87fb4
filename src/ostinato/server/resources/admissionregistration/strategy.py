"""Strategies of the admissionregistration.k8s.io group: webhook configurations and admission policies."""

from __future__ import annotations

from typing import Any, ClassVar

from ostinato.api.validation.field_errors import FieldError
from ostinato.server.resources.admissionregistration import validation
from ostinato.server.resources.strategy import Json, Strategy

_GROUP = "admissionregistration.k8s.io"


def _default_match(match: Json) -> None:
    match.setdefault("matchPolicy", "Equivalent")
    match.setdefault("namespaceSelector", {})
    match.setdefault("objectSelector", {})
    for field in ("resourceRules", "excludeResourceRules"):
        _default_rules(match.get(field))


def _default_rules(rules: Any) -> None:
    for rule in rules or ():
        rule.setdefault("scope", "*")


class WebhookConfiguration(Strategy):
    generation = True
    allow_unconditional_update = False

    def default(self, obj: Json) -> None:
        for webhook in obj.get("webhooks") or ():
            self.default_webhook(webhook)

    def default_webhook(self, webhook: Json) -> None:
        webhook.setdefault("failurePolicy", "Fail")
        webhook.setdefault("matchPolicy", "Equivalent")
        webhook.setdefault("namespaceSelector", {})
        webhook.setdefault("objectSelector", {})
        webhook.setdefault("timeoutSeconds", 10)
        _default_rules(webhook.get("rules"))
        service = (webhook.get("clientConfig") or {}).get("service")
        if service is not None:
            service.setdefault("port", 443)

    def desired(self, obj: Json) -> Any:
        return obj.get("webhooks")

    def validate(self, obj: Json) -> list[FieldError]:
        return validation.webhooks(obj.get("webhooks") or ())


class MutatingWebhookConfiguration(WebhookConfiguration):
    def default_webhook(self, webhook: Json) -> None:
        super().default_webhook(webhook)
        webhook.setdefault("reinvocationPolicy", "Never")


class Policy(Strategy):
    generation = True
    allow_unconditional_update = False

    def default(self, obj: Json) -> None:
        spec = obj.setdefault("spec", {})
        spec.setdefault("failurePolicy", "Fail")
        if spec.get("matchConstraints") is not None:
            _default_match(spec["matchConstraints"])


class ValidatingAdmissionPolicy(Policy):
    empty_status: ClassVar[Json] = {}
    status_keeps_metadata = True

    def validate(self, obj: Json) -> list[FieldError]:
        return validation.validating_policy(obj["metadata"].get("name", ""), obj["spec"])

    def validate_status_update(self, new: Json, old: Json) -> list[FieldError]:
        return validation.validating_policy_status(new.get("status") or {})


class MutatingAdmissionPolicy(Policy):
    def validate(self, obj: Json) -> list[FieldError]:
        return validation.mutating_policy(obj["spec"])


class PolicyBinding(Strategy):
    generation = True
    allow_unconditional_update = False

    def default(self, obj: Json) -> None:
        match = obj.setdefault("spec", {}).get("matchResources")
        if match is not None:
            _default_match(match)

    def validate(self, obj: Json) -> list[FieldError]:
        return validation.binding(obj["spec"])


class ValidatingAdmissionPolicyBinding(PolicyBinding):
    def validate(self, obj: Json) -> list[FieldError]:
        return super().validate(obj) + validation.actions(obj["spec"].get("validationActions") or [])


class MutatingAdmissionPolicyBinding(PolicyBinding):
    def validate(self, obj: Json) -> list[FieldError]:
        return validation.mutating_binding(obj["spec"])


STRATEGIES: dict[tuple[str, str], Strategy] = {
    (_GROUP, "validatingwebhookconfigurations"): WebhookConfiguration(),
    (_GROUP, "mutatingwebhookconfigurations"): MutatingWebhookConfiguration(),
    (_GROUP, "validatingadmissionpolicies"): ValidatingAdmissionPolicy(),
    (_GROUP, "mutatingadmissionpolicies"): MutatingAdmissionPolicy(),
    (_GROUP, "validatingadmissionpolicybindings"): ValidatingAdmissionPolicyBinding(),
    (_GROUP, "mutatingadmissionpolicybindings"): MutatingAdmissionPolicyBinding(),
}
