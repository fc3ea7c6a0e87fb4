"""AuthorizationConfiguration: decode and validate the chain of authorizers, with kube-apiserver's messages."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path as FilePath
from typing import Any, Final

import msgspec

from ostinato.api.text.go_format import quote
from ostinato.api.time import Duration, TimeError
from ostinato.api.validation import names
from ostinato.api.validation.field_errors import FieldError, Path
from ostinato.server.access.messages import aggregated

Json = dict[str, Any]

TYPES: Final = ("ABAC", "AlwaysAllow", "AlwaysDeny", "Node", "RBAC", "Webhook")
_VERSIONS: Final = tuple(f"apiserver.config.k8s.io/{version}" for version in ("v1", "v1beta1", "v1alpha1"))
_MOST_CONDITIONS: Final = 64
_FIELDS: Final[dict[str, Any]] = {  # known fields, nested
    "apiVersion": None,
    "kind": None,
    "authorizers": {
        "type": None,
        "name": None,
        "webhook": {
            "authorizedTTL": None,
            "cacheAuthorizedRequests": None,
            "unauthorizedTTL": None,
            "cacheUnauthorizedRequests": None,
            "timeout": None,
            "subjectAccessReviewVersion": None,
            "matchConditionSubjectAccessReviewVersion": None,
            "failurePolicy": None,
            "connectionInfo": {"type": None, "kubeConfigFile": None},
            "matchConditions": {"expression": None},
        },
    },
}


class ConfigurationError(Exception):
    """The authorization configuration is invalid; the message names the field."""


class AuthorizationWebhookSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Webhook authorizer. `kubeconfig`: None for in-cluster; times in seconds, a TTL of 0 disables caching."""

    kubeconfig: FilePath | None
    timeout: float = 30.0
    authorized_ttl: float = 300.0
    unauthorized_ttl: float = 30.0
    version: str = "v1beta1"
    denies_on_failure: bool = False
    conditions: tuple[str, ...] = ()


class Configured(msgspec.Struct, frozen=True):
    """An authorizer of the chain. `webhook`: settings of a Webhook authorizer."""

    type: str
    name: str
    webhook: AuthorizationWebhookSettings | None = None


def load(path: FilePath, required: Collection[str] = ()) -> tuple[Configured, ...]:
    """Load the chain from a file; ConfigurationError names the invalid field.

    `required`: types that must be configured: a running server cannot drop authorizers that it started with.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise ConfigurationError(f"cannot read {path}: {error.strerror}") from None
    return read(data, required)


def read(data: bytes, required: Collection[str] = ()) -> tuple[Configured, ...]:
    """Load the chain from the content of a file."""
    try:
        raw = _decoded(data)
    except ValueError as error:
        raise ConfigurationError(f"failed to load AuthorizationConfiguration from file: {error}") from None
    authorizers = raw.get("authorizers") or []
    errors = list(_errors(authorizers))
    if errors:
        raise ConfigurationError(aggregated([str(each) for each in errors]))
    faults = [
        f"expected name {each['type'].lower()} for authorizer {each['type']} instead of {each['name']}"
        for each in authorizers
        if each["type"] not in ("Webhook", "") and each["type"].lower() != each["name"]
    ]
    missing = sorted(set(required) - {each["type"] for each in authorizers})
    if missing:
        faults.append(f"missing required types: [{' '.join(missing)}]")
    if faults:
        raise ConfigurationError(aggregated(faults))
    return tuple(
        Configured(each["type"], each["name"], _webhook(each["webhook"]) if each["type"] == "Webhook" else None)
        for each in authorizers
    )


def _decoded(data: bytes) -> Json:
    from ostinato.api.wire.yaml import decode_yaml  # noqa: PLC0415 - most servers have no such file

    raw = decode_yaml(data)
    if not isinstance(raw, dict):
        raise ValueError("Object 'Kind' is missing")
    kind, version = raw.get("kind", ""), raw.get("apiVersion", "")
    if not kind:
        raise ValueError("Object 'Kind' is missing")
    if kind != "AuthorizationConfiguration" or version not in _VERSIONS:
        raise ValueError(f"no kind {quote(kind)} is registered for version {quote(version)}")
    unknown = list(_unknown(raw, _FIELDS, ""))
    if unknown:
        raise ValueError(f"strict decoding error: {', '.join(f'unknown field {quote(each)}' for each in unknown)}")
    return raw


def _unknown(value: Any, known: Any, path: str) -> Iterator[str]:
    """The paths of unknown fields."""
    if isinstance(value, list):
        for i, each in enumerate(value):
            yield from _unknown(each, known, f"{path}[{i}]")
    elif isinstance(value, dict) and known is not None:
        for name, below in value.items():
            where = f"{path}.{name}" if path else name
            if name not in known:
                yield where
            else:
                yield from _unknown(below, known[name], where)


def _errors(authorizers: list[Json]) -> Iterator[FieldError]:
    root = Path("authorizers")
    if not authorizers:
        yield FieldError.required(root, "at least one authorization mode must be defined")
    seen_types: set[str] = set()
    seen_names: set[str] = set()
    for i, each in enumerate(authorizers):
        path, type_, name = root.index(i), each.get("type") or "", each.get("name") or ""
        if not type_:
            yield FieldError.required(path.child("type"))
            continue
        if type_ not in TYPES:
            yield FieldError.not_supported(path.child("type"), type_, TYPES)
            continue
        if type_ in seen_types and type_ != "Webhook":
            yield FieldError.duplicate(path.child("type"), type_)
            continue
        seen_types.add(type_)
        if not name:
            yield FieldError.required(path.child("name"))
        elif name in seen_names:
            yield FieldError.duplicate(path.child("name"), name)
        elif wrong := names.is_dns1123_subdomain(name):
            yield FieldError.invalid(path.child("name"), name, f"authorizer name is invalid: {', '.join(wrong)}")
        seen_names.add(name)
        webhook = each.get("webhook")
        if type_ == "ABAC":
            yield FieldError.invalid(path.child("type"), type_, "this server has no ABAC; use RBAC or Webhook")
        elif type_ != "Webhook":
            if webhook is not None:
                detail = "may only be specified when type=Webhook"
                yield FieldError.invalid(path.child("webhook"), "non-null", detail)
        elif webhook is None:
            yield FieldError.required(path.child("webhook"), "required when type=Webhook")
        else:
            yield from _webhook_errors(webhook, path)


def _webhook_errors(webhook: Json, path: Path) -> Iterator[FieldError]:
    yield from _duration_errors(webhook, path)
    for field, supported in (("subjectAccessReviewVersion", ("v1", "v1beta1")),):
        yield from _choice(webhook.get(field), path.child(field), supported)
    field = "matchConditionSubjectAccessReviewVersion"
    version, conditions = webhook.get(field), webhook.get("matchConditions") or []
    if version:
        yield from _choice(version, path.child(field), ("v1",))
    elif conditions:
        yield FieldError.required(path.child(field), "required if match conditions are specified")
    yield from _choice(webhook.get("failurePolicy"), path.child("failurePolicy"), ("NoOpinion", "Deny"))
    yield from _connection_errors(webhook.get("connectionInfo") or {}, path.child("connectionInfo"))
    if len(conditions) > _MOST_CONDITIONS:
        yield FieldError.too_many(path.child("matchConditions"), len(conditions), _MOST_CONDITIONS)
        return
    seen: set[str] = set()
    for i, condition in enumerate(conditions):
        where, text = path.child("matchConditions").index(i).child("expression"), condition.get("expression") or ""
        if not text.strip():
            yield FieldError.required(where)
        elif text in seen:
            yield FieldError.duplicate(where, text)
        else:
            seen.add(text)
            from ostinato.server.access.authorization.conditions import fault_of  # noqa: PLC0415 - loads CEL

            if fault := fault_of(text):
                yield FieldError.invalid(where, text, fault)


def _choice(value: str | None, path: Path, supported: tuple[str, ...]) -> Iterator[FieldError]:
    if not value:
        yield FieldError.required(path)
    elif value not in supported:
        yield FieldError.not_supported(path, value, supported)


def _duration_errors(webhook: Json, path: Path) -> Iterator[FieldError]:
    for field, default, most in (
        ("timeout", "0s", 30.0),
        ("authorizedTTL", "5m0s", 0.0),
        ("unauthorizedTTL", "30s", 0.0),
    ):
        text = webhook.get(field) or default
        try:
            seconds = Duration.parse(text).seconds
        except (TimeError, TypeError, AttributeError):
            yield FieldError.invalid(path.child(field), text, "want a duration, for example 30s")
            continue
        if seconds == 0:
            yield FieldError.required(path.child(field))
        elif seconds < 0 or (most and seconds > most):
            detail = f"must be > 0s and <= {most:g}s" if most else "must be > 0s"
            yield FieldError.invalid(path.child(field), text, detail)


def _connection_errors(connection: Json, path: Path) -> Iterator[FieldError]:
    type_, file = connection.get("type") or "", connection.get("kubeConfigFile")
    where = path.child("kubeConfigFile")
    if not type_:
        yield FieldError.required(path.child("type"))
    elif type_ == "InClusterConfig":
        if file is not None:
            yield FieldError.invalid(where, file, "can only be set when type=KubeConfigFile")
    elif type_ != "KubeConfigFile":
        yield FieldError.not_supported(path.child("type"), type_, ("InClusterConfig", "KubeConfigFile"))
    elif not file:
        yield FieldError.required(where)
    elif not FilePath(file).is_absolute():
        yield FieldError.invalid(where, file, "must be an absolute path")
    elif not FilePath(file).exists():
        yield FieldError.invalid(where, file, f"error loading file: stat {file}: no such file or directory")
    elif not FilePath(file).is_file():
        yield FieldError.invalid(where, file, "must be a regular file")


def _webhook(raw: Json) -> AuthorizationWebhookSettings:
    def seconds(field: str, default: str, *, cached_by: str = "") -> float:
        return Duration.parse(raw.get(field) or default).seconds if raw.get(cached_by, True) is not False else 0.0

    file = raw["connectionInfo"].get("kubeConfigFile")
    return AuthorizationWebhookSettings(
        kubeconfig=None if file is None else FilePath(file),
        timeout=seconds("timeout", "30s"),
        authorized_ttl=seconds("authorizedTTL", "5m0s", cached_by="cacheAuthorizedRequests"),
        unauthorized_ttl=seconds("unauthorizedTTL", "30s", cached_by="cacheUnauthorizedRequests"),
        version=raw["subjectAccessReviewVersion"],
        denies_on_failure=raw["failurePolicy"] == "Deny",
        conditions=tuple(each["expression"] for each in raw.get("matchConditions") or ()),
    )
