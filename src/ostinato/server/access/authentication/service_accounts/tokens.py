"""Service account tokens: JSON web tokens signed by this server, valid while the objects they are bound to exist.

- A token is bound to its service account, and possibly to a Pod, a Secret or a Node. It stops being valid when one of
  them is deleted or recreated. The bound objects are looked up for each request.
- Verified claims are cached by the token's digest, for up to `REMEMBERED` tokens. Tokens without a valid signature are
  never cached.
- Tokens of the legacy issuer are kept in Secrets; see `legacy_tokens`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from ostinato.server.access.authentication.identity import Identity, RefusedToken, authenticated
from ostinato.server.access.authentication.service_accounts.bindings import LEEWAY, Bindings, Kubernetes
from ostinato.server.access.authentication.service_accounts.legacy_tokens import LEGACY_ISSUER, LegacyTokenValidator
from ostinato.server.access.authentication.tokens import jwt
from ostinato.server.access.messages import quoted
from ostinato.server.request import User
from ostinato.world import Clock

if TYPE_CHECKING:
    from ostinato.server.access.authentication.tokens.keys import ServiceAccountKeys
    from ostinato.server.resources.lister import Lister

REMEMBERED = 4096  # size of the cache of verified tokens
_CREDENTIAL = "authentication.kubernetes.io/credential-id"
_STALE, _LEGACY = "authentication.k8s.io/stale-token", "authentication.k8s.io/legacy-token"  # audit annotations
_POD, _NODE = "authentication.kubernetes.io/pod-", "authentication.kubernetes.io/node-"


class ServiceAccountTokens:
    """
    - `keys`: the signing and verification keys.
    - `issuers`: the first issues new tokens; tokens of all are accepted.
    - `audiences`: the API server's, for tokens without an audience.
    - `kinds`: listers of the objects that tokens are bound to, by kind.
    """

    def __init__(
        self,
        clock: Clock,
        keys: ServiceAccountKeys,
        issuers: Sequence[str],
        audiences: Sequence[str],
        kinds: Mapping[str, Lister],
        legacy: LegacyTokenValidator,
    ) -> None:
        self.keys = keys
        self.issuer = issuers[0]
        self.audiences = tuple(audiences)
        self._issuers = frozenset((*issuers, LEGACY_ISSUER))
        self._clock = clock
        self._kinds = kinds
        self._legacy = legacy
        self._verified: dict[bytes, _Verified] = {}  # by the token's digest, the oldest first

    def sign(self, claims: dict[str, Any]) -> str:
        """Sign a token with these claims and the server as its issuer."""
        named = {**claims, "iss": self.issuer}
        return self.keys.signing.sign(msgspec.json.encode(dict(sorted(named.items()))))

    def authenticate_token(self, token: str, digest: bytes, audiences: Sequence[str]) -> Identity | None:
        verified = self._verified.get(digest)
        if verified is None:
            verified = self._verify(token)
            if verified is None:
                return None
            if len(self._verified) >= REMEMBERED:
                del self._verified[next(iter(self._verified))]
            self._verified[digest] = verified
        own = verified.audiences or self.audiences
        shared = own if own == audiences else tuple(audience for audience in own if audience in audiences)
        if not shared:
            raise RefusedToken(f"token audiences {quoted(own)} is invalid for the target audiences {quoted(audiences)}")
        now = self._clock.wall()
        if verified.bindings is None:
            found = self._legacy.validate(token, verified.claims, now)
            return Identity(found.user, shared, _annotations(verified, now) | found.annotations, found.warning)
        if now + LEEWAY < verified.not_before:
            raise RefusedToken("service account token is not valid yet")
        if now - LEEWAY > verified.expires:
            raise RefusedToken("service account token has expired")
        if now + LEEWAY < verified.issued:
            raise RefusedToken("service account token is issued in the future")
        verified.bindings.check(now)
        return Identity(verified.user, shared, _annotations(verified, now))

    def _verify(self, text: str) -> _Verified | None:
        """The claims of a token; None if another issuer issued it, RefusedToken if the signature is invalid."""
        try:
            token = jwt.parse(text)
        except jwt.MalformedToken:
            return None
        issuer = token.claims.get("iss")
        if not isinstance(issuer, str) or issuer not in self._issuers:
            return None
        keys = self.keys.by_id(token.key_id)
        if not keys:
            raise RefusedToken("invalid signature, no keys found")
        if not any(key.verifies(token) for key in keys):
            raise RefusedToken("go-jose/go-jose: error in cryptographic primitive")
        try:
            return _Verified(token.claims, None if issuer == LEGACY_ISSUER else self._kinds)
        except (jwt.MalformedToken, msgspec.ValidationError) as error:
            raise RefusedToken(f"go-jose/go-jose/jwt: {error}") from None


class _Verified:
    """Claims of a token with a valid signature. `kinds`: None for a legacy token, which is checked by its Secret."""

    __slots__ = (
        "audiences",
        "bindings",
        "claims",
        "expires",
        "issued",
        "not_before",
        "subject",
        "user",
        "warn_after",
    )

    def __init__(self, claims: dict[str, Any], kinds: Mapping[str, Lister] | None) -> None:
        for name in ("sub", "jti"):
            if not isinstance(claims.get(name), str | None):
                raise jwt.MalformedToken(f"claim {name} is not a string")
        self.claims = claims
        self.audiences = tuple(jwt.audiences(claims))
        self.not_before = _time(claims, "nbf", -float("inf"))
        self.issued = _time(claims, "iat", -float("inf"))
        self.expires = _time(claims, "exp", float("inf"))
        self.subject: str = claims.get("sub") or ""
        self.warn_after = 0.0  # use after this time is stale; 0: never
        self.bindings: Bindings | None = None
        self.user = User("")
        if kinds is not None:
            bound = msgspec.convert(claims.get("kubernetes.io") or {}, Kubernetes)
            self.bindings = Bindings(bound, kinds)
            self.warn_after = bound.warnafter or 0.0
            self.user = authenticated(_user(bound, claims.get("jti")))


def _annotations(verified: _Verified, now: float) -> dict[str, str]:
    """The audit annotations of a valid token."""
    found: dict[str, str] = {}
    if not verified.audiences:
        found[_LEGACY] = verified.subject
    if verified.warn_after and now > verified.warn_after:
        late = int(now) - int(verified.warn_after)
        found[_STALE] = f"subject: {verified.subject}, seconds after warning threshold: {late}"
    return found


def _time(claims: dict[str, Any], name: str, otherwise: float) -> float:
    found = jwt.numeric_date(claims, name)
    return otherwise if found is None else found


def _user(bound: Kubernetes, token_id: object) -> User:
    extra: dict[str, tuple[str, ...]] = {}
    if isinstance(token_id, str) and token_id:
        extra[_CREDENTIAL] = (f"JTI={token_id}",)
    for reference, prefix in ((bound.node, _NODE), (bound.pod, _POD)):
        if reference is not None:
            extra[f"{prefix}name"] = (reference.name,)
            if reference.uid:
                extra[f"{prefix}uid"] = (reference.uid,)
    return account_user(bound.namespace, bound.serviceaccount.name, bound.serviceaccount.uid, extra)


def account_user(namespace: str, name: str, uid: str, extra: Mapping[str, tuple[str, ...]] | None = None) -> User:
    groups = ("system:serviceaccounts", f"system:serviceaccounts:{namespace}")
    return User(f"system:serviceaccount:{namespace}:{name}", uid, groups, extra or {})
