"""`--admission-control-config-file`: an AdmissionConfiguration, with each plugin's configuration inline or by path.

`read` validates the file and returns typed values by plugin. A ConfigurationError names the file, the plugin and the
field. Unknown fields and plugins are rejected: a typing error would leave a policy unenforced.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path as FilePath
from typing import Any, Final, TypeVar

import msgspec

from ostinato.api.validation import names
from ostinato.api.validation.field_errors import FieldError, Path
from ostinato.api.wire.files import UnreadableFileError, read_yaml
from ostinato.client.config.error import ConfigError
from ostinato.server.admission.catalogue import NAMES
from ostinato.server.admission.cluster.event_rate_limit import LIMIT_TYPES, Limit
from ostinato.server.admission.pod_security.configuration import PodSecurityConfiguration
from ostinato.server.admission.pod_security.versions import LEVELS, is_version
from ostinato.server.admission.pods.image_policy import ImagePolicy
from ostinato.server.admission.pods.label_map import label_map
from ostinato.server.admission.pods.toleration_restriction import ClusterTolerations
from ostinato.server.admission.quota.limited import LimitedResource
from ostinato.server.resources.core.pods.spec.scheduling import validate_tolerations
from ostinato.server.resources.strategy import Json
from ostinato.server.webhooks.identity import Identities, backend_of

T = TypeVar("T")

_VERSIONS: Final = ("apiserver.config.k8s.io/v1", "apiserver.k8s.io/v1alpha1", "apiserver.config.k8s.io/v1alpha1")
_UNVERSIONED: Final = {"imagePolicy": "ImagePolicyWebhook", "podNodeSelectorPluginConfig": "PodNodeSelector"}
_NEEDED: Final = {
    "EventRateLimit": "limits: must not be empty; give at least one limit",
    "ImagePolicyWebhook": "no configuration; give imagePolicy.kubeConfigFile",
}


class ConfigurationError(ValueError):
    """The admission configuration is invalid; the message names the file, the plugin and the field."""


def read(path: FilePath | None, plugins: Sequence[str]) -> dict[str, Any]:
    """The configurations of the enabled plugins, by name."""
    found = {} if path is None else _plugins_in(path)
    configurations = {name: _PARSERS[name](value, where) for name, (value, where) in found.items() if name in plugins}
    for name, why in _NEEDED.items():
        if name in plugins and name not in configurations:
            raise ConfigurationError(f"--admission-control-config-file: {name}: {why}")
    return configurations


def _plugins_in(path: FilePath) -> dict[str, tuple[Any, str]]:
    """The raw configuration of each plugin, with its location for messages."""
    content = _content(path)
    legacy = {name: plugin for name, plugin in _UNVERSIONED.items() if name in content}
    if legacy and "kind" not in content:
        return {plugin: (content, f"{path}: {plugin}") for plugin in legacy.values()}
    version, kind = content.get("apiVersion"), content.get("kind")
    if version not in _VERSIONS or kind != "AdmissionConfiguration":
        got = f"got {kind} of {version}"
        raise ConfigurationError(f"{path}: want kind AdmissionConfiguration of {_VERSIONS[0]}, {got}")
    found: dict[str, tuple[Any, str]] = {}
    file = _typed(content, _File, str(path))
    for i, plugin in enumerate(file.plugins):
        where = f"{path}: plugins[{i}]"
        if plugin.name not in NAMES:
            known = ", ".join(sorted(_PARSERS))
            raise ConfigurationError(f'{where}.name: "{plugin.name}" is unknown; plugins with configuration: {known}')
        if plugin.name in found:
            raise ConfigurationError(f'{where}.name: "{plugin.name}" is configured twice; remove one')
        value = plugin.configuration
        if value is None and plugin.path:
            target = path.parent / plugin.path
            value, where = _content(target), str(target)
        if value is None:
            continue
        if plugin.name not in _PARSERS:
            raise ConfigurationError(f"{where}: {plugin.name} takes no configuration; remove it")
        found[plugin.name] = (value, f"{where}: {plugin.name}")
    return found


class _Plugin(msgspec.Struct, forbid_unknown_fields=True):
    name: str
    path: str = ""
    configuration: Json | None = None


class _File(msgspec.Struct, forbid_unknown_fields=True):
    plugins: list[_Plugin] = []


def _content(path: FilePath) -> Json:
    try:
        content = read_yaml(path)
    except UnreadableFileError as error:
        raise ConfigurationError(str(error)) from None
    if not isinstance(content, dict):
        raise ConfigurationError(f"{path}: want an object")
    return content


def _typed(value: Json, kind: type[T], where: str, *versions: str, of: str = "") -> T:
    """Convert a configuration to its type. `versions`, `of`: the accepted apiVersions and the kind."""
    if versions:
        version, kind_name = value.get("apiVersion"), value.get("kind")
        if version not in versions or kind_name != of:
            raise ConfigurationError(f"{where}: want kind {of} of {versions[0]}, got {kind_name} of {version}")
    fields = {name: each for name, each in value.items() if name not in ("apiVersion", "kind")}
    try:
        return msgspec.convert(fields, kind)
    except msgspec.ValidationError as error:
        why, _, place = str(error).partition(" - at `$.")
        raise ConfigurationError(f"{where}: {f'{place[:-1]}: ' if place else ''}{why}") from None


def _check(where: str, faults: list[FieldError]) -> None:
    if faults:
        raise ConfigurationError(f"{where}: {'; '.join(map(str, faults))}")


# Plugins


class _Limits(msgspec.Struct, forbid_unknown_fields=True):
    limits: list[Limit] = []


def _event_rate_limit(value: Json, where: str) -> list[Limit]:
    limits = _typed(value, _Limits, where, "eventratelimit.admission.k8s.io/v1alpha1", of="Configuration").limits
    faults = [] if limits else [FieldError.invalid(Path("limits"), [], "must not be empty")]
    for i, limit in enumerate(limits):
        at = Path("limits").index(i)
        if limit.type not in LIMIT_TYPES:
            faults.append(FieldError.not_supported(at.child("type"), limit.type, list(LIMIT_TYPES)))
        if limit.burst <= 0:
            faults.append(FieldError.invalid(at.child("burst"), limit.burst, "must be positive"))
        if limit.qps <= 0:
            faults.append(FieldError.invalid(at.child("qps"), limit.qps, "must be positive"))
        if limit.type != "Server" and limit.cache_size < 0:
            faults.append(FieldError.invalid(at.child("cacheSize"), limit.cache_size, "must not be negative"))
    _check(where, faults)
    return limits


class _ImagePolicy(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    kube_config_file: str = msgspec.field(name="kubeConfigFile")
    allow_ttl: int = msgspec.field(default=0, name="allowTTL")
    deny_ttl: int = msgspec.field(default=0, name="denyTTL")
    retry_backoff: int = msgspec.field(default=0, name="retryBackoff")
    default_allow: bool = msgspec.field(default=False, name="defaultAllow")


class _ImagePolicyFile(msgspec.Struct):
    image_policy: _ImagePolicy = msgspec.field(name="imagePolicy")


def _image_policy(value: Json, where: str) -> ImagePolicy:
    given = _typed(value, _ImagePolicyFile, where).image_policy
    at = f"{where}: imagePolicy"
    try:
        backend = backend_of(FilePath(given.kube_config_file))
    except ConfigError as error:
        raise ConfigurationError(f"{at}.kubeConfigFile: {error}") from None
    return ImagePolicy(
        backend=backend,
        allow_ttl=_seconds(f"{at}.allowTTL", given.allow_ttl, 1, 1, 1800, 300),
        deny_ttl=_seconds(f"{at}.denyTTL", given.deny_ttl, 1, 1, 1800, 30),
        retry_backoff=_seconds(f"{at}.retryBackoff", given.retry_backoff, 0.001, 0, 300, 0.5),
        default_allow=given.default_allow,
    )


def _seconds(where: str, value: int, unit: float, least: float, most: float, default: float) -> float:
    """Seconds of a value: 0 is the default, -1 disables."""
    if value == -1:
        return 0.0
    if value == 0:
        return default
    seconds = value * unit
    if not least <= seconds <= most:
        raise ConfigurationError(f"{where}: {value} is out of range; give {least / unit:g} to {most / unit:g}, or -1")
    return seconds


class _NodeSelectors(msgspec.Struct):
    selectors: dict[str, str] = msgspec.field(default_factory=dict, name="podNodeSelectorPluginConfig")


def _node_selectors(value: Json, where: str) -> Mapping[str, str]:
    selectors = _typed(value, _NodeSelectors, where).selectors
    for name, selector in selectors.items():
        try:
            label_map(selector)
        except ValueError as error:
            raise ConfigurationError(f"{where}: podNodeSelectorPluginConfig.{name}: {error}") from None
    return selectors


def _pod_security(value: Json, where: str) -> PodSecurityConfiguration:
    group = "pod-security.admission.config.k8s.io"
    versions = (f"{group}/v1", f"{group}/v1beta1", f"{group}/v1alpha1")
    given = _typed(value, PodSecurityConfiguration, where, *versions, of="PodSecurityConfiguration")
    faults: list[FieldError] = []
    for mode in ("enforce", "warn", "audit"):
        level, version = getattr(given.defaults, mode), getattr(given.defaults, f"{mode}_version")
        if level not in LEVELS:
            why = f"must be one of {', '.join(LEVELS)}"
            faults.append(FieldError.invalid(Path("defaults", mode), level, why))
        if version != "latest" and not is_version(version):
            where_ = Path("defaults", f"{mode}-version")
            faults.append(FieldError.invalid(where_, version, 'must be "latest" or "v1.x"'))
    exempt = given.exemptions
    faults += _exempt("namespaces", exempt.namespaces, names.is_dns1123_label)
    faults += _exempt("runtimeClasses", exempt.runtime_classes, names.is_dns1123_subdomain)
    faults += _exempt("usernames", exempt.usernames, lambda name: [] if name else ["username must not be empty"])
    _check(where, faults)
    return given


def _exempt(field: str, values: Sequence[str], check: Callable[[str], list[str]]) -> list[FieldError]:
    faults, seen = [], set()
    for i, value in enumerate(values):
        at, wrong = Path("exemptions", field).index(i), check(value)
        if wrong:
            faults.append(FieldError.invalid(at, value, ", ".join(wrong)))
        elif value in seen:
            faults.append(FieldError.duplicate(at, value))
        seen.add(value)
    return faults


class _Tolerations(msgspec.Struct, forbid_unknown_fields=True):
    default: list[Json] = []
    whitelist: list[Json] = []


def _tolerations(value: Json, where: str) -> ClusterTolerations:
    version = "podtolerationrestriction.admission.k8s.io/v1alpha1"
    given = _typed(value, _Tolerations, where, version, of="Configuration")
    at = Path("podtolerationrestriction")
    faults = validate_tolerations(given.default, at.child("default"))
    _check(where, faults + validate_tolerations(given.whitelist, at.child("whitelist")))
    return ClusterTolerations(default=given.default, whitelist=given.whitelist)


class _LimitedResources(msgspec.Struct, forbid_unknown_fields=True, rename="camel"):
    limited_resources: list[LimitedResource] = []


def _resource_quota(value: Json, where: str) -> list[LimitedResource]:
    if value.get("kind") == "Configuration":
        group = "resourcequota.admission.k8s.io"
        given = _typed(value, _LimitedResources, where, f"{group}/v1beta1", f"{group}/v1alpha1", of="Configuration")
    else:
        version = "apiserver.config.k8s.io/v1"
        given = _typed(value, _LimitedResources, where, version, of="ResourceQuotaConfiguration")
    missing = [i for i, each in enumerate(given.limited_resources) if not each.resource]
    _check(where, [FieldError.required(Path("limitedResources").index(i).child("resource")) for i in missing])
    return given.limited_resources


class _Webhooks(msgspec.Struct, forbid_unknown_fields=True, rename="camel"):
    kube_config_file: str = ""


def _webhooks(value: Json, where: str) -> Identities | None:
    versions = ("apiserver.config.k8s.io/v1", "apiserver.config.k8s.io/v1alpha1")
    kind = value.get("kind")
    of = "WebhookAdmission" if kind == "WebhookAdmission" else "WebhookAdmissionConfiguration"
    file = _typed(value, _Webhooks, where, *versions, of=of).kube_config_file
    if not file:
        return None
    if not FilePath(file).is_absolute():
        raise ConfigurationError(f"{where}: kubeConfigFile: {file}: must be an absolute file path")
    try:
        return Identities(FilePath(file))
    except (ConfigError, OSError) as error:
        raise ConfigurationError(f"{where}: kubeConfigFile: {error}") from None


_PARSERS: Final[dict[str, Callable[[Json, str], Any]]] = {
    "EventRateLimit": _event_rate_limit,
    "ImagePolicyWebhook": _image_policy,
    "MutatingAdmissionWebhook": _webhooks,
    "PodNodeSelector": _node_selectors,
    "PodSecurity": _pod_security,
    "PodTolerationRestriction": _tolerations,
    "ResourceQuota": _resource_quota,
    "ValidatingAdmissionWebhook": _webhooks,
}
