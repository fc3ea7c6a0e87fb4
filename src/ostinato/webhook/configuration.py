"""Webhook configurations as manifests.

An endpoint is how API servers reach the webhook server: a `ServiceEndpoint` in the cluster, or a `UrlEndpoint`. The CA
bundle may be omitted from manifests: the running server injects it (`ostinato.webhook.ca_injector`).
"""

from __future__ import annotations

import base64
from collections.abc import Iterable
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec

from ostinato.certificates.object_access import MUTATING, VALIDATING
from ostinato.webhook.conversion import CONVERT
from ostinato.webhook.hooks import AdmissionHook

_OPTIONAL: Final = {  # by field of a configuration: the option of the hook
    "namespaceSelector": "namespace_selector",
    "objectSelector": "object_selector",
    "matchConditions": "match_conditions",
}


class ServiceEndpoint(msgspec.Struct, frozen=True):
    """The webhook server behind a Service."""

    namespace: str
    name: str
    port: int = 443  # of the Service

    @property
    def hosts(self) -> list[str]:
        """The DNS names for the certificate; API servers use the first."""
        name = f"{self.name}.{self.namespace}"
        return [f"{name}.svc", f"{name}.svc.cluster.local", name, self.name]

    def client_config(self, path: str, authorities: bytes = b"") -> dict[str, Any]:
        service = {"namespace": self.namespace, "name": self.name, "path": path, "port": self.port}
        return {"service": service, **_bundle(authorities)}


class UrlEndpoint(msgspec.Struct, frozen=True):
    """The webhook server at a URL that API servers can reach, such as `https://127.0.0.1:9443`."""

    url: str

    def __post_init__(self) -> None:
        parts = urlsplit(self.url)
        if parts.scheme != "https" or not parts.hostname or parts.query or parts.fragment or parts.username:
            raise ValueError(f"UrlEndpoint() invalid URL {self.url!r}; use https://host:port")

    @property
    def hosts(self) -> list[str]:
        return [urlsplit(self.url).hostname or ""]

    def client_config(self, path: str, authorities: bytes = b"") -> dict[str, Any]:
        return {"url": self.url.rstrip("/") + path, **_bundle(authorities)}


Endpoint = ServiceEndpoint | UrlEndpoint


def webhook_configurations(
    hooks: Iterable[AdmissionHook], name: str, endpoint: Endpoint, authorities: bytes = b""
) -> list[dict[str, Any]]:
    """Return a MutatingWebhookConfiguration and a ValidatingWebhookConfiguration, if there are hooks for them.

    Raises ValueError if two hooks of one of them have the same name.
    """
    entries: dict[bool, list[dict[str, Any]]] = {True: [], False: []}
    for hook in hooks:
        if any(entry["name"] == hook.name for entry in entries[hook.mutating]):
            raise ValueError(f"{hook.callback.name}: duplicate hook name {hook.name}; set name= on one of them")
        entries[hook.mutating].append(_entry(hook, endpoint, authorities))
    return [
        {
            "apiVersion": kind.api_version,
            "kind": kind.kind,
            "metadata": {"name": name},
            "webhooks": sorted(entries[mutating], key=lambda entry: str(entry["name"])),
        }
        for mutating, kind in ((True, MUTATING), (False, VALIDATING))
        if entries[mutating]
    ]


def conversion(endpoint: Endpoint, authorities: bytes = b"") -> dict[str, Any]:
    """Return the `spec.conversion` of a CustomResourceDefinition with a conversion webhook."""
    config = endpoint.client_config(CONVERT, authorities)
    return {"strategy": "Webhook", "webhook": {"clientConfig": config, "conversionReviewVersions": ["v1"]}}


def _entry(hook: AdmissionHook, endpoint: Endpoint, authorities: bytes) -> dict[str, Any]:
    options = hook.options
    entry: dict[str, Any] = {
        "name": hook.name,
        "admissionReviewVersions": ["v1"],
        "clientConfig": endpoint.client_config(hook.path, authorities),
        "rules": _rules(hook),
        "failurePolicy": options.get("failure_policy", "Fail"),
        "matchPolicy": options.get("match_policy", "Equivalent"),
        "sideEffects": options.get("side_effects", "None"),
        "timeoutSeconds": options.get("timeout_seconds", 10),
    }
    if hook.mutating:
        entry["reinvocationPolicy"] = options.get("reinvocation_policy", "Never")
    for field, option in _OPTIONAL.items():
        if option in options:
            entry[field] = msgspec.to_builtins(options[option])  # type: ignore[literal-required]
    return entry


def _rules(hook: AdmissionHook) -> list[dict[str, Any]]:
    if "rules" in hook.options:
        return [dict(rule) for rule in hook.options["rules"]]
    kind = hook.kind
    rule: dict[str, Any] = {
        "apiGroups": [kind.gvk.group],
        "apiVersions": [kind.gvk.version],
        "operations": list(hook.operations),
        "resources": [kind.plural, *(f"{kind.plural}/{each}" for each in hook.options.get("subresources", ()))],
    }
    if hook.object_class is not None:
        rule["scope"] = "Namespaced" if kind.namespaced else "Cluster"
    return [rule]


def _bundle(authorities: bytes) -> dict[str, str]:
    return {"caBundle": base64.b64encode(authorities).decode("ascii")} if authorities else {}
