"""Webhook configurations: what an API server asks of whom before it keeps an object, and how it converts kinds.

A `Webhook` says for which kind and operations it is asked; path and name follow from that, as controller-runtime has
them, unless they are given.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, Literal

import msgspec

from ostinato.api.object import KindInfo

Json = dict[str, Any]
Operation = Literal["CREATE", "UPDATE", "DELETE", "CONNECT", "*"]

_API_VERSION: Final = "admissionregistration.k8s.io/v1"


class Endpoint(msgspec.Struct, frozen=True, kw_only=True):
    """Where webhooks are served: a Service, or (for tries from outside of a cluster) a URL."""

    service: str = ""
    namespace: str = ""
    port: int = 443
    url: str = ""  # https://host:port, without a path
    ca_bundle: str = ""  # base64; "" where somebody puts it in later

    def __post_init__(self) -> None:
        if bool(self.url) == bool(self.service):
            raise ValueError("Endpoint needs either a service (with its namespace) or a url")
        if self.service and not self.namespace:
            raise ValueError(f"Endpoint: the service {self.service} needs its namespace")

    def client_config(self, path: str) -> Json:
        config: Json = {}
        if self.url:
            config["url"] = self.url.rstrip("/") + path
        else:
            config["service"] = {
                "name": self.service,
                "namespace": self.namespace,
                "path": path,
                "port": self.port,
            }
        return config | ({"caBundle": self.ca_bundle} if self.ca_bundle else {})


class Webhook(msgspec.Struct, frozen=True, kw_only=True):
    """One admission webhook."""

    kind: type
    mutating: bool
    operations: tuple[Operation, ...] = ("CREATE", "UPDATE")
    subresources: tuple[str, ...] = ()  # asked for these as well, e.g. "status"
    path: str = ""  # /validate-example-dev-v1-widget by default
    name: str = ""  # validate.widgets.example.dev by default
    failure_policy: Literal["Fail", "Ignore"] = "Fail"
    match_policy: Literal["Equivalent", "Exact"] = "Equivalent"
    side_effects: Literal["None", "NoneOnDryRun"] = "None"
    timeout_seconds: int = 10
    reinvocation_policy: Literal["Never", "IfNeeded"] = "Never"
    object_selector: Mapping[str, Any] | None = None
    namespace_selector: Mapping[str, Any] | None = None
    match_conditions: tuple[tuple[str, str], ...] = ()  # name and CEL expression of each

    def __post_init__(self) -> None:
        if not isinstance(getattr(self.kind, "__kind__", None), KindInfo):
            raise TypeError(f"{self.kind!r} is no kind: it names no version, e.g. version='v1'")
        if not 1 <= self.timeout_seconds <= 30:
            raise ValueError(f"{self.full_name}: timeout_seconds is from 1 to 30, not {self.timeout_seconds}")
        if not self.operations:
            raise ValueError(f"{self.full_name}: without operations it would never be asked")
        if self.path and not self.path.startswith("/"):
            raise ValueError(f"{self.full_name}: the path {self.path!r} must begin with /")

    @property
    def info(self) -> KindInfo:
        info: KindInfo = self.kind.__kind__  # type: ignore[attr-defined]  # checked above
        return info

    @property
    def full_name(self) -> str:
        task = "mutate" if self.mutating else "validate"
        return self.name or f"{task}.{self.info.plural}.{self.info.gvk.group or 'core'}"

    @property
    def full_path(self) -> str:
        """As controller-runtime names it, so that an operator can be replaced without a change of its configuration."""
        task = "mutate" if self.mutating else "validate"
        gvk = self.info.gvk
        return self.path or f"/{task}-{gvk.group.replace('.', '-')}-{gvk.version}-{gvk.kind.lower()}"


def webhook_configurations(webhooks: Iterable[Webhook], *, name: str, endpoint: Endpoint) -> list[Json]:
    """The configurations, those that change objects first; webhooks are in the order of their names."""
    ordered = sorted(webhooks, key=lambda webhook: webhook.full_name)
    names = [(webhook.mutating, webhook.full_name) for webhook in ordered]
    if len(set(names)) < len(names):
        twice = next(each for each in names if names.count(each) > 1)
        raise ValueError(f"two webhooks are named {twice[1]}: give one another name")
    found: list[Json] = []
    for kind, mutating in (("MutatingWebhookConfiguration", True), ("ValidatingWebhookConfiguration", False)):
        own = [_entry(webhook, endpoint) for webhook in ordered if webhook.mutating is mutating]
        if own:
            found.append({"apiVersion": _API_VERSION, "kind": kind, "metadata": {"name": name}, "webhooks": own})
    return found


def conversion_by_webhook(endpoint: Endpoint, *, path: str = "/convert") -> Json:
    """For `crd_of(..., conversion=...)`: versions are converted by a webhook."""
    webhook = {"clientConfig": endpoint.client_config(path), "conversionReviewVersions": ["v1"]}
    return {"strategy": "Webhook", "webhook": webhook}


def _entry(webhook: Webhook, endpoint: Endpoint) -> Json:
    info = webhook.info
    entry: Json = {
        "name": webhook.full_name,
        "admissionReviewVersions": ["v1"],
        "clientConfig": endpoint.client_config(webhook.full_path),
        "failurePolicy": webhook.failure_policy,
        "matchPolicy": webhook.match_policy,
        "rules": [
            {
                "apiGroups": [info.gvk.group],
                "apiVersions": [info.gvk.version],
                "operations": list(webhook.operations),
                "resources": [info.plural, *(f"{info.plural}/{each}" for each in webhook.subresources)],
                "scope": "Namespaced" if info.namespaced else "Cluster",
            }
        ],
        "sideEffects": webhook.side_effects,
        "timeoutSeconds": webhook.timeout_seconds,
    }
    if webhook.mutating:
        entry["reinvocationPolicy"] = webhook.reinvocation_policy
    if webhook.object_selector is not None:
        entry["objectSelector"] = dict(webhook.object_selector)
    if webhook.namespace_selector is not None:
        entry["namespaceSelector"] = dict(webhook.namespace_selector)
    if webhook.match_conditions:
        entry["matchConditions"] = [{"name": name, "expression": text} for name, text in webhook.match_conditions]
    return entry
