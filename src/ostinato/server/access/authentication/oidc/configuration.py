"""Decoding of the AuthenticationConfiguration in --authentication-config."""

from __future__ import annotations

from typing import Any

import msgspec

from ostinato.api.wire import DecodeError
from ostinato.api.wire.yaml import decode_yaml

VERSIONS = (
    "apiserver.config.k8s.io/v1",
    "apiserver.config.k8s.io/v1beta1",
    "apiserver.config.k8s.io/v1alpha1",
)


class ConfigurationError(ValueError):
    """The file is not an AuthenticationConfiguration."""


class _Part(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    pass


class Issuer(_Part, frozen=True, kw_only=True):
    url: str = ""
    discovery_url: str = msgspec.field(default="", name="discoveryURL")
    certificate_authority: str = ""
    audiences: tuple[str, ...] = ()
    audience_match_policy: str = ""
    egress_selector_type: str = ""


class ClaimValidationRule(_Part, frozen=True, kw_only=True):
    claim: str = ""
    required_value: str = ""
    expression: str = ""
    message: str = ""


class PrefixedClaimOrExpression(_Part, frozen=True, kw_only=True):
    claim: str = ""
    prefix: str | None = None
    expression: str = ""


class ClaimOrExpression(_Part, frozen=True, kw_only=True):
    claim: str = ""
    expression: str = ""


class ExtraMapping(_Part, frozen=True, kw_only=True):
    key: str = ""
    value_expression: str = ""


class ClaimMappings(_Part, frozen=True, kw_only=True):
    username: PrefixedClaimOrExpression = PrefixedClaimOrExpression()
    groups: PrefixedClaimOrExpression = PrefixedClaimOrExpression()
    uid: ClaimOrExpression = ClaimOrExpression()
    extra: tuple[ExtraMapping, ...] = ()


class UserValidationRule(_Part, frozen=True, kw_only=True):
    expression: str = ""
    message: str = ""


class JWTAuthenticator(_Part, frozen=True, kw_only=True):
    issuer: Issuer = Issuer()
    claim_validation_rules: tuple[ClaimValidationRule, ...] = ()
    claim_mappings: ClaimMappings = ClaimMappings()
    user_validation_rules: tuple[UserValidationRule, ...] = ()


class AnonymousCondition(_Part, frozen=True, kw_only=True):
    path: str = ""


class AnonymousConfiguration(_Part, frozen=True, kw_only=True):
    enabled: bool = False
    conditions: tuple[AnonymousCondition, ...] = ()


class AuthenticationConfiguration(_Part, frozen=True, kw_only=True):
    jwt: tuple[JWTAuthenticator, ...] = ()
    anonymous: AnonymousConfiguration | None = None


def read(data: bytes) -> AuthenticationConfiguration:
    """Decode a file; ConfigurationError for another kind or unknown fields."""
    if not data:
        raise ConfigurationError("empty config data")
    try:
        content: Any = decode_yaml(data, strict=True)
    except DecodeError as error:
        raise ConfigurationError(str(error)) from None
    if not isinstance(content, dict):
        raise ConfigurationError("want an object of kind AuthenticationConfiguration")
    version, kind = content.pop("apiVersion", ""), content.pop("kind", "")
    if version not in VERSIONS or kind != "AuthenticationConfiguration":
        raise ConfigurationError(f"want kind AuthenticationConfiguration of {VERSIONS[0]}, got {kind!r} of {version!r}")
    try:
        return msgspec.convert(_without_nulls(content), AuthenticationConfiguration)
    except msgspec.ValidationError as error:
        why, _, place = str(error).partition(" - at `$.")
        raise ConfigurationError(f"{place[:-1]}: {why}" if place else why) from None


def _without_nulls(value: Any) -> Any:
    """Drop null fields, which Go decodes as absent."""
    if isinstance(value, dict):
        return {key: _without_nulls(each) for key, each in value.items() if each is not None}
    return [_without_nulls(each) for each in value] if isinstance(value, list) else value
