"""PodSecurityConfiguration: defaults for namespaces without labels, and exemptions."""

from __future__ import annotations

import msgspec

_PRIVILEGED, _LATEST = "privileged", "latest"


class Defaults(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    enforce: str = _PRIVILEGED
    enforce_version: str = msgspec.field(default=_LATEST, name="enforce-version")
    audit: str = _PRIVILEGED
    audit_version: str = msgspec.field(default=_LATEST, name="audit-version")
    warn: str = _PRIVILEGED
    warn_version: str = msgspec.field(default=_LATEST, name="warn-version")


class Exemptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    usernames: tuple[str, ...] = ()
    namespaces: tuple[str, ...] = ()
    runtime_classes: tuple[str, ...] = msgspec.field(default=(), name="runtimeClasses")


class PodSecurityConfiguration(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    defaults: Defaults = Defaults()
    exemptions: Exemptions = Exemptions()
