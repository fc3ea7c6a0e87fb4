"""Validation of AuthenticationConfiguration with kube-apiserver's messages; compiles its expressions."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from urllib.parse import urlsplit

import msgspec

from ostinato.api.validation import names
from ostinato.api.validation.field_errors import FieldError, Path
from ostinato.cel.expression import Expression
from ostinato.server.access.authentication.oidc.configuration import (
    AuthenticationConfiguration,
    ClaimMappings,
    ClaimValidationRule,
    Issuer,
    JWTAuthenticator,
    PrefixedClaimOrExpression,
    UserValidationRule,
)
from ostinato.server.access.authentication.oidc.expressions import (
    ExpressionError,
    compile_claim_rule,
    compile_mapping,
    compile_user_rule,
    selects,
)

_MOST_ISSUERS = 64
_HTTP_PATH = r"[A-Za-z0-9/\-._~%!$&'()*+,;=:]+"
_RESERVED = ("k8s.io", "kubernetes.io")
_BOTH = "claim and expression can't both be set"
_EITHER = "claim or expression is required"


class Compiled(msgspec.Struct, kw_only=True):
    """Compiled expressions of one authenticator; None where a claim is mapped by name or not mapped."""

    username: Expression | None = None
    groups: Expression | None = None
    uid: Expression | None = None
    extra: list[tuple[str, Expression]] = []
    claim_rules: list[tuple[Expression, str]] = []  # with their messages
    user_rules: list[tuple[Expression, str]] = []


def validate(
    configuration: AuthenticationConfiguration, own_issuers: Collection[str]
) -> tuple[list[Compiled], list[FieldError]]:
    """The expressions of each authenticator, and all errors. `own_issuers`: service account issuers."""
    root, errors = Path("jwt"), []
    if len(configuration.jwt) > _MOST_ISSUERS:
        return [], [FieldError.too_many(root, len(configuration.jwt), _MOST_ISSUERS)]
    compiled, urls, discovery_urls = [], set(), set()
    for i, authenticator in enumerate(configuration.jwt):
        path, issuer = root.index(i), authenticator.issuer
        found, faults = _authenticator(authenticator, path, own_issuers)
        compiled.append(found)
        errors += faults
        if issuer.url in urls:
            errors.append(FieldError.duplicate(path.child("issuer", "url"), issuer.url))
        urls.add(issuer.url)
        if issuer.discovery_url:
            if issuer.discovery_url in discovery_urls:
                errors.append(FieldError.duplicate(path.child("issuer", "discoveryURL"), issuer.discovery_url))
            discovery_urls.add(issuer.discovery_url)
    anonymous = configuration.anonymous
    if anonymous is not None and not anonymous.enabled and anonymous.conditions:
        shown = [{"Path": condition.path} for condition in anonymous.conditions]
        why = "enabled should be set to true when conditions are defined"
        errors.append(FieldError.invalid(Path("anonymous", "conditions"), shown, why))
    return compiled, errors


def _authenticator(
    authenticator: JWTAuthenticator, path: Path, own_issuers: Collection[str]
) -> tuple[Compiled, list[FieldError]]:
    found = Compiled()
    errors = _issuer(authenticator.issuer, path.child("issuer"), own_issuers)
    errors += _claim_rules(authenticator.claim_validation_rules, path.child("claimValidationRules"), found)
    errors += _mappings(authenticator.claim_mappings, path.child("claimMappings"), found)
    errors += _user_rules(authenticator.user_validation_rules, path.child("userValidationRules"), found)
    return found, errors


# Issuer


def _issuer(issuer: Issuer, path: Path, own_issuers: Collection[str]) -> list[FieldError]:
    url = path.child("url")
    errors = _url(issuer.url, own_issuers, url) if issuer.url else [FieldError.required(url)]
    if issuer.discovery_url:
        place = path.child("discoveryURL")
        if issuer.url and issuer.url.rstrip("/") == issuer.discovery_url.rstrip("/"):
            errors.append(FieldError.invalid(place, issuer.discovery_url, "discoveryURL must be different from URL"))
        errors += _url(issuer.discovery_url, (), place)
    errors += _audiences(issuer, path)
    if issuer.certificate_authority and not _has_certificate(issuer.certificate_authority):
        why = "data does not contain any valid RSA or ECDSA certificates"
        errors.append(FieldError.invalid(path.child("certificateAuthority"), "<omitted>", why))
    if issuer.egress_selector_type:
        place, kind = path.child("egressSelectorType"), issuer.egress_selector_type
        if kind not in ("controlplane", "cluster"):
            why = "egress selector must be either controlplane or cluster"
        else:
            why = "egress selectors are not supported by this server; remove the field to connect directly"
        errors.append(FieldError.invalid(place, kind, why))
    return errors


def _url(text: str, disallowed: Collection[str], path: Path) -> list[FieldError]:
    faults = []
    if text in disallowed:
        shown = " ".join(sorted(disallowed))
        faults.append(f"URL must not overlap with disallowed issuers: [{shown}]")
    try:
        url = urlsplit(text)
        _ = url.port
    except ValueError as error:
        return [FieldError.invalid(path, text, why) for why in (*faults, str(error))]
    if url.scheme != "https":
        faults.append("URL scheme must be https")
    if url.username is not None:
        faults.append("URL must not contain a username or password")
    if url.query:
        faults.append("URL must not contain a query")
    if url.fragment:
        faults.append("URL must not contain a fragment")
    return [FieldError.invalid(path, text, why) for why in faults]


def _audiences(issuer: Issuer, path: Path) -> list[FieldError]:
    place, errors, seen = path.child("audiences"), [], set()
    if not issuer.audiences:
        return [FieldError.required(place, f"at least one {place} is required")]
    for i, audience in enumerate(issuer.audiences):
        if not audience:
            errors.append(FieldError.required(place.index(i)))
        if audience in seen:
            errors.append(FieldError.duplicate(place.index(i), audience))
        seen.add(audience)
    policy = issuer.audience_match_policy
    if len(issuer.audiences) > 1 and policy != "MatchAny":
        why = "audienceMatchPolicy must be MatchAny for multiple audiences"
        errors.append(FieldError.invalid(path.child("audienceMatchPolicy"), policy, why))
    if len(issuer.audiences) == 1 and policy not in ("", "MatchAny"):
        why = "audienceMatchPolicy must be empty or MatchAny for single audience"
        errors.append(FieldError.invalid(path.child("audienceMatchPolicy"), policy, why))
    return errors


def _has_certificate(text: str) -> bool:
    from cryptography import x509  # noqa: PLC0415 - loads only where it is needed

    try:
        return bool(x509.load_pem_x509_certificates(text.encode()))
    except ValueError:
        return False


# Rules and mappings


def _claim_rules(rules: tuple[ClaimValidationRule, ...], path: Path, found: Compiled) -> list[FieldError]:
    errors: list[FieldError] = []
    claims, expressions = set(), set()
    for i, rule in enumerate(rules):
        place = path.index(i)
        if rule.claim and rule.expression:
            errors.append(FieldError.invalid(place, rule.claim, _BOTH))
        elif rule.claim:
            if rule.message:
                why = "may not be specified when claim is set"
                errors.append(FieldError.invalid(place.child("message"), rule.message, why))
            if rule.claim in claims:
                errors.append(FieldError.duplicate(place.child("claim"), rule.claim))
            claims.add(rule.claim)
        elif rule.expression:
            if rule.required_value:
                why = "may not be specified when expression is set"
                errors.append(FieldError.invalid(place.child("requiredValue"), rule.required_value, why))
            if rule.expression in expressions:
                errors.append(FieldError.duplicate(place.child("expression"), rule.expression))
                continue
            expressions.add(rule.expression)
            expression = _compiled(compile_claim_rule, rule.expression, place.child("expression"), errors)
            if expression is not None:
                found.claim_rules.append((expression, rule.message))
        else:
            errors.append(FieldError.required(place, _EITHER))
    return errors


def _mappings(mappings: ClaimMappings, path: Path, found: Compiled) -> list[FieldError]:
    errors: list[FieldError] = []
    found.username = _prefixed(mappings.username, path.child("username"), errors, required=True)
    found.groups = _prefixed(mappings.groups, path.child("groups"), errors, required=False)
    uid = path.child("uid")
    if mappings.uid.claim and mappings.uid.expression:
        errors.append(FieldError.invalid(uid, "", _BOTH))
    elif mappings.uid.expression:
        found.uid = _compiled(compile_mapping, mappings.uid.expression, uid.child("expression"), errors)
    seen = set()
    for i, mapping in enumerate(mappings.extra):
        place = path.child("extra").index(i)
        errors += _extra_key(mapping.key, place.child("key"))
        if mapping.key in seen:
            errors.append(FieldError.duplicate(place.child("key"), mapping.key))
            continue
        seen.add(mapping.key)
        if not mapping.value_expression:
            errors.append(FieldError.required(place.child("valueExpression")))
            continue
        expression = _compiled(compile_mapping, mapping.value_expression, place.child("valueExpression"), errors)
        if expression is not None:
            found.extra.append((mapping.key, expression))
    if found.username is not None and selects(found.username, "claims", "email") and not _checks_email(found):
        text, place = mappings.username.expression, path.child("username", "expression")
        errors.append(FieldError.invalid(place, text, _EMAIL))
    return errors


_EMAIL = (
    "claims.email_verified must be used in claimMappings.username.expression or "
    "claimMappings.extra[*].valueExpression or claimValidationRules[*].expression when claims.email is used in "
    "claimMappings.username.expression"
)


def _checks_email(found: Compiled) -> bool:
    """Whether some expression selects claims.email_verified."""
    assert found.username is not None
    others = (*(each for _, each in found.extra), *(each for each, _ in found.claim_rules))
    return any(selects(each, "claims", "email_verified") for each in (found.username, *others))


def _extra_key(key: str, path: Path) -> list[FieldError]:
    errors = _domain_prefixed(key, path)
    if key != key.lower():
        errors.append(FieldError.invalid(path, key, "must be lowercase"))
    domain = key.partition("/")[0] if "/" in key else ""
    if any(domain == each or domain.endswith(f".{each}") for each in _RESERVED):
        why = "k8s.io, kubernetes.io and their subdomains are reserved for Kubernetes use"
        errors.append(FieldError.invalid(path, key, why))
    return errors


def _domain_prefixed(key: str, path: Path) -> list[FieldError]:
    if not key:
        return [FieldError.required(path)]
    domain, _, rest = key.partition("/")
    if not domain or not rest:
        return [FieldError.invalid(path, key, 'must be a domain-prefixed path (such as "acme.io/foo")')]
    errors = [FieldError.invalid(path, domain, why) for why in names.is_dns1123_subdomain(domain)]
    if not re.fullmatch(_HTTP_PATH, rest):
        why = f"Invalid path (regex used for validation is '{_HTTP_PATH}')"
        errors.append(FieldError.invalid(path, rest, why))
    return errors


def _prefixed(
    mapping: PrefixedClaimOrExpression, path: Path, errors: list[FieldError], *, required: bool
) -> Expression | None:
    if mapping.expression and mapping.claim:
        errors.append(FieldError.invalid(path, "", _BOTH))
    elif mapping.expression:
        if mapping.prefix is not None:
            why = "may not be specified when expression is set"
            errors.append(FieldError.invalid(path.child("prefix"), mapping.prefix, why))
        return _compiled(compile_mapping, mapping.expression, path.child("expression"), errors)
    elif mapping.claim:
        if mapping.prefix is None:
            why = "prefix is required when claim is set. It can be set to an empty string to disable prefixing"
            errors.append(FieldError.required(path.child("prefix"), why))
    elif required:
        errors.append(FieldError.required(path, _EITHER))
    return None


def _user_rules(rules: tuple[UserValidationRule, ...], path: Path, found: Compiled) -> list[FieldError]:
    errors: list[FieldError] = []
    seen = set()
    for i, rule in enumerate(rules):
        place = path.index(i).child("expression")
        if not rule.expression:
            errors.append(FieldError.required(place))
            continue
        if rule.expression in seen:
            errors.append(FieldError.duplicate(place, rule.expression))
            continue
        seen.add(rule.expression)
        expression = _compiled(compile_user_rule, rule.expression, place, errors)
        if expression is not None:
            found.user_rules.append((expression, rule.message))
    return errors


def _compiled(
    compile_: Callable[[str], Expression], text: str, path: Path, errors: list[FieldError]
) -> Expression | None:
    try:
        return compile_(text)
    except ExpressionError as error:
        fault = FieldError.internal(path, str(error)) if error.internal else FieldError.invalid(path, text, str(error))
        errors.append(fault)
        return None
