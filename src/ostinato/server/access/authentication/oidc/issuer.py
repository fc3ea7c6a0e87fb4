"""OIDC authenticator of one issuer: verify the token, map its claims, check the validation rules."""

from __future__ import annotations

from collections.abc import Collection
from datetime import UTC, datetime
from typing import Any

from ostinato.api.text.go_format import quote
from ostinato.server.access.authentication.identity import RefusedToken, authenticated
from ostinato.server.access.authentication.oidc.configuration import JWTAuthenticator
from ostinato.server.access.authentication.oidc.expressions import EvaluationError, evaluate, user_value
from ostinato.server.access.authentication.oidc.key_set import KeySet, KeysUnavailable
from ostinato.server.access.authentication.oidc.validation import Compiled
from ostinato.server.access.authentication.tokens import jwt
from ostinato.server.access.messages import quoted
from ostinato.server.request import User
from ostinato.world import Clock

_LEEWAY = 60.0  # seconds of clock skew allowed for `nbf`
_CREDENTIAL = "authentication.kubernetes.io/credential-id"
_GOOGLE, _GOOGLE_CLAIM = "https://accounts.google.com", "accounts.google.com"  # Google's iss claim has no scheme


class OidcAuthenticator:
    """
    - `keys`: the issuer's public keys.
    - `algorithms`: allowed signing algorithms.
    """

    def __init__(
        self, clock: Clock, settings: JWTAuthenticator, compiled: Compiled, keys: KeySet, algorithms: Collection[str]
    ) -> None:
        self._clock = clock
        self._settings = settings
        self._compiled = compiled
        self._algorithms = tuple(algorithms)
        self.keys = keys

    def issued(self, token: jwt.Token) -> bool:
        """Whether the issuer claim names this issuer."""
        issuer = token.claims.get("iss")
        return self._settings.issuer.url == (_GOOGLE if issuer == _GOOGLE_CLAIM else issuer)

    async def user(self, token: jwt.Token) -> User:
        """Authenticate a token of this issuer; RefusedToken with the reason if it is rejected."""
        if not self.keys.is_ready:
            raise RefusedToken("oidc: authenticator not initialized")
        await self._verify(token)
        claims = token.claims
        try:
            user = self._mapped(claims)
            self._check_claims(claims)
            self._check_user(user)
        except EvaluationError as error:
            raise RefusedToken(str(error)) from None
        return authenticated(user)

    # Verification

    async def _verify(self, token: jwt.Token) -> None:
        try:
            if token.algorithm not in self._algorithms:
                expected = f"expected {quoted(self._algorithms)} got {quote(token.algorithm)}"
                raise RefusedToken(f"oidc: id token signed with unsupported algorithm, {expected}")
            if not await self.keys.verifies(token):
                raise RefusedToken("failed to verify signature: failed to verify id token signature")
            self._check_audience(jwt.audiences(token.claims))
            self._check_time(token.claims)
        except KeysUnavailable as error:
            raise RefusedToken(f"oidc: verify token: failed to verify signature: fetching keys {error}") from None
        except jwt.MalformedToken as error:
            raise RefusedToken(f"oidc: verify token: oidc: failed to unmarshal claims: {error}") from None
        except RefusedToken as error:
            raise RefusedToken(f"oidc: verify token: {error}") from None

    def _check_audience(self, audiences: list[str]) -> None:
        wanted = self._settings.issuer.audiences
        if any(audience in audiences for audience in wanted):
            return
        if len(wanted) == 1:
            raise RefusedToken(f"oidc: expected audience {quote(wanted[0])} got {quoted(audiences)}")
        raise RefusedToken(f"oidc: expected audience in {quoted(sorted(wanted))} got {quoted(audiences)}")

    def _check_time(self, claims: dict[str, Any]) -> None:
        now = self._clock.wall()
        expires, begins = jwt.numeric_date(claims, "exp"), jwt.numeric_date(claims, "nbf")
        if expires is None or expires < now:
            shown = "0001-01-01 00:00:00 +0000 UTC" if expires is None else _shown(expires)
            raise RefusedToken(f"oidc: token is expired (Token Expiry: {shown})")
        if begins is not None and now + _LEEWAY < begins:
            message = f"oidc: current time {_shown(now)} before the nbf (not before) time: {_shown(begins)}"
            raise RefusedToken(message)

    # Mapping

    def _mapped(self, claims: dict[str, Any]) -> User:
        values = _floats(claims)
        return User(
            self._username(claims, values), self._uid(claims, values), self._groups(claims, values), self._extra(values)
        )

    def _username(self, claims: dict[str, Any], values: Any) -> str:
        mapping = self._settings.claim_mappings.username
        if self._compiled.username is not None:
            try:
                found = evaluate(self._compiled.username, values)
            except EvaluationError as error:
                raise RefusedToken(f"oidc: error evaluating username claim expression: {error}") from None
            if not isinstance(found, str):
                raise RefusedToken(
                    "oidc: error evaluating username claim expression: username claim expression must return a string"
                )
            if not found:
                raise RefusedToken("oidc: empty username via CEL expression is not allowed")
            return found
        if mapping.claim not in claims:
            raise RefusedToken(f"oidc: parse username claims {quote(mapping.claim)}: claim not present")
        name = claims[mapping.claim]
        if not isinstance(name, str):
            raise RefusedToken(f"oidc: parse username claims {quote(mapping.claim)}: {_no_text(name)}")
        if mapping.claim == "email" and "email_verified" in claims:
            verified = claims["email_verified"]
            if not isinstance(verified, bool):
                raise RefusedToken(f"oidc: parse 'email_verified' claim: {_unusable(verified, 'bool')}")
            if not verified:
                raise RefusedToken("oidc: email not verified")
        return f"{mapping.prefix or ''}{name}"

    def _groups(self, claims: dict[str, Any], values: Any) -> tuple[str, ...]:
        mapping = self._settings.claim_mappings.groups
        if self._compiled.groups is not None:
            try:
                return _texts(evaluate(self._compiled.groups, values))
            except (EvaluationError, TypeError) as error:
                raise RefusedToken(f"oidc: error evaluating group claim expression: {error}") from None
        if not mapping.claim:
            return ()
        if mapping.claim not in claims:
            if mapping.claim in (claims.get("_claim_names") or {}):
                raise RefusedToken("oidc: could not expand distributed claims: not supported by this server")
            return ()
        found = claims[mapping.claim]
        groups = [found] if isinstance(found, str) else found
        if groups is None:
            return ()
        if not isinstance(groups, list) or not all(isinstance(group, str) for group in groups):
            raise RefusedToken(f"oidc: parse groups claim {quote(mapping.claim)}: {_no_text(found)}")
        return tuple(f"{mapping.prefix or ''}{group}" for group in groups)

    def _uid(self, claims: dict[str, Any], values: Any) -> str:
        claim = self._settings.claim_mappings.uid.claim
        if claim:
            if claim not in claims:
                raise RefusedToken(f"oidc: parse uid claim {quote(claim)}: claim not present")
            if not isinstance(claims[claim], str):
                raise RefusedToken(f"oidc: parse uid claim {quote(claim)}: {_no_text(claims[claim])}")
            return str(claims[claim])
        if self._compiled.uid is None:
            return ""
        try:
            found = evaluate(self._compiled.uid, values)
        except EvaluationError as error:
            raise RefusedToken(f"oidc: error evaluating uid claim expression: {error}") from None
        if not isinstance(found, str):
            why = "uid claim expression must return a string"
            raise RefusedToken(f"oidc: error evaluating uid claim expression: {why}")
        return found

    def _extra(self, values: Any) -> dict[str, tuple[str, ...]]:
        token_id = values.get("jti")
        extra: dict[str, tuple[str, ...]] = {}
        if isinstance(token_id, str) and token_id:
            extra[_CREDENTIAL] = (f"JTI={token_id}",)
        for key, expression in self._compiled.extra:
            value = evaluate(expression, values)
            try:
                texts = _texts(value)
            except TypeError as error:
                message = f"oidc: error evaluating extra claim expression: {expression.text}: {error}"
                raise RefusedToken(message) from None
            if texts:
                extra[key] = texts
        return extra

    # Rules

    def _check_claims(self, claims: dict[str, Any]) -> None:
        for rule in self._settings.claim_validation_rules:
            if not rule.claim:
                continue
            if rule.claim not in claims:
                raise RefusedToken(f"oidc: required claim {rule.claim} not present in ID token")
            value = claims[rule.claim]
            if not isinstance(value, str):
                raise RefusedToken(f"oidc: parse claim {rule.claim}: {_no_text(value)}")
            if value != rule.required_value:
                message = f"Got = {value}, want = {rule.required_value}"
                raise RefusedToken(f"oidc: required claim {rule.claim} value does not match. {message}")
        self._check(self._compiled.claim_rules, _floats(claims), "claim validation expression")

    def _check_user(self, user: User) -> None:
        if self._compiled.user_rules:
            self._check(self._compiled.user_rules, user_value(user), "user info validation rule")

    def _check(self, rules: list[tuple[Any, str]], value: Any, kind: str) -> None:
        for expression, message in rules:
            try:
                holds = evaluate(expression, value)
            except EvaluationError as error:
                raise RefusedToken(f"oidc: error evaluating {kind}: {error}") from None
            if holds is not True:
                why = f"validation expression '{expression.text}' failed: {message}"
                raise RefusedToken(f"oidc: error evaluating {kind}: {why}")


def _texts(value: Any) -> tuple[str, ...]:
    """A string or list of strings without empty values; TypeError for other types."""
    if value is None:
        return ()
    listed = [value] if isinstance(value, str) else value
    if not isinstance(listed, list | tuple) or not all(isinstance(each, str) for each in listed):
        raise TypeError("expression must return a string or a list of strings")
    return tuple(each for each in listed if each)


def _floats(value: Any) -> Any:
    """Claims as Go decodes them for expressions: all numbers are doubles."""
    if isinstance(value, dict):
        return {key: _floats(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_floats(each) for each in value]
    return float(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _no_text(value: Any) -> str:
    return _unusable(value, "string")


def _unusable(value: Any, wanted: str) -> str:
    kind = {dict: "object", list: "array", bool: "bool", str: "string"}.get(type(value), "number")
    return f"json: cannot unmarshal {kind} into Go value of type {wanted}"


def _shown(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S +0000 UTC")
