"""Issuers with different mappings and rules, and tokens for each: what kube-apiserver answers was recorded."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.unit.server.access.authentication.issuing import Json, Key

NAME = {"claim": "sub", "prefix": ""}

ISSUERS: dict[str, Json] = {
    "plain": {"claimMappings": {"username": {"claim": "sub", "prefix": "oidc:"}}},
    "groups": {
        "claimMappings": {"username": NAME, "groups": {"claim": "groups", "prefix": "g:"}, "uid": {"claim": "uid"}}
    },
    "email": {"claimMappings": {"username": {"claim": "email", "prefix": ""}}},
    "required": {
        "claimValidationRules": [{"claim": "hd", "requiredValue": "example.com"}],
        "claimMappings": {"username": NAME},
    },
    "rules": {
        "claimValidationRules": [
            {"expression": "claims.exp - claims.iat <= 3600.0", "message": "too long"},
            {"expression": "has(claims.level) && claims.level >= 2", "message": "level too low"},
        ],
        "claimMappings": {"username": NAME},
        "userValidationRules": [
            {"expression": "!user.username.startsWith('system:')", "message": "reserved name"},
            {"expression": "user.groups.all(g, !g.startsWith('system:'))"},
        ],
    },
    "mapped": {
        "claimMappings": {
            "username": {"expression": "'x:' + claims.sub"},
            "groups": {"expression": "claims.?roles.orValue([])"},
            "uid": {"expression": "claims.?uid.orValue('none')"},
            "extra": [
                {"key": "example.com/team", "valueExpression": "claims.?team.orValue('')"},
                {"key": "example.com/all", "valueExpression": "claims.?all.orValue([])"},
            ],
        }
    },
    "verified": {
        "claimMappings": {
            "username": {"expression": "claims.email_verified ? claims.email : ''"},
            "groups": {"expression": "claims.groups.split(',')"},
        }
    },
    "two": {"claimMappings": {"username": NAME}},
}


def configuration(url: str, authority: str) -> Json:
    """An AuthenticationConfiguration with all issuers."""
    listed = []
    for name, settings in ISSUERS.items():
        issuer: Json = {"url": f"{url}/{name}", "certificateAuthority": authority, "audiences": ["kube"]}
        if name == "two":
            issuer |= {"audiences": ["kube", "other"], "audienceMatchPolicy": "MatchAny"}
        listed.append({"issuer": issuer, **settings})
    anonymous = {"enabled": True, "conditions": [{"path": "/livez"}, {"path": "/readyz"}]}
    return {
        "apiVersion": "apiserver.config.k8s.io/v1",
        "kind": "AuthenticationConfiguration",
        "jwt": listed,
        "anonymous": anonymous,
    }


def cases(url: str, now: int, key: Key, forger: Key) -> Iterator[tuple[str, str]]:
    """Tokens by name."""

    def token(issuer: str, by: Key = key, header: Json | None = None, **claims: Any) -> str:
        said = {"iss": f"{url}/{issuer}", "aud": "kube", "sub": "jane", "iat": now, "exp": now + 600} | claims
        said = {name: value for name, value in said.items() if value is not REMOVED}
        return by.token(said, **(header or {}))

    yield "plain", token("plain")
    yield "plain with jti", token("plain", jti="t-1")
    yield "plain without sub", token("plain", sub=REMOVED)
    yield "plain with a number as sub", token("plain", sub=7)
    yield "plain with groups", token("plain", groups=["a"])
    yield "expired", token("plain", exp=now - 30)
    yield "without exp", token("plain", exp=REMOVED)
    yield "exp a string", token("plain", exp="soon")
    yield "nbf in 30 seconds", token("plain", nbf=now + 30)
    yield "nbf in 90 seconds", token("plain", nbf=now + 90)
    yield "iat in the future", token("plain", iat=now + 900)
    yield "audience of another", token("plain", aud="other")
    yield "audiences with another", token("plain", aud=["other", "kube"])
    yield "without audience", token("plain", aud=REMOVED)
    yield "issuer with a slash", token("plain/")
    yield "issuer that is not configured", token("unknown")
    yield "forged with the same kid", token("plain", by=forger, header={"kid": key.name})
    yield "forged with another kid", token("plain", by=forger)
    yield "without kid", token("plain", header={"kid": ""})
    yield "alg none", _unsigned(token("plain", header={"alg": "none"}))
    yield "alg HS256", token("plain", header={"alg": "HS256"})
    yield "alg RS512", token("plain", header={"alg": "RS512"})
    yield "alg PS256", token("plain", header={"alg": "PS256"})
    yield "padded", f"{token('plain')}="
    yield "groups", token("groups", groups=["a", "b"], uid="u-1")
    yield "groups a string", token("groups", groups="a", uid="u-1")
    yield "groups numbers", token("groups", groups=[1], uid="u-1")
    yield "groups missing", token("groups", uid="u-1")
    yield "groups null", token("groups", groups=None, uid="u-1")
    yield "uid missing", token("groups")
    yield "uid a number", token("groups", uid=1)
    yield "email", token("email", email="jane@example.com")
    yield "email verified", token("email", email="jane@example.com", email_verified=True)
    yield "email not verified", token("email", email="jane@example.com", email_verified=False)
    yield "email verified a string", token("email", email="jane@example.com", email_verified="true")
    yield "required claim", token("required", hd="example.com")
    yield "required claim missing", token("required")
    yield "required claim of another value", token("required", hd="example.org")
    yield "required claim a number", token("required", hd=1)
    yield "rules kept", token("rules", level=2)
    yield "rules: too long", token("rules", level=2, exp=now + 7200)
    yield "rules: level too low", token("rules", level=1)
    yield "rules: no level", token("rules")
    yield "rules: level a string", token("rules", level="2")
    yield "rules: reserved name", token("rules", level=2, sub="system:admin")
    yield "mapped", token("mapped", roles=["a", "", "b"], uid="u", team="blue", all=["x", "y"])
    yield "mapped with little", token("mapped")
    yield "mapped groups a string", token("mapped", roles="a")
    yield "mapped groups numbers", token("mapped", roles=[1])
    yield "mapped uid a number", token("mapped", uid=1)
    yield "mapped extra a number", token("mapped", team=1)
    yield "mapped without sub", token("mapped", sub=REMOVED)
    yield "mapped sub a number", token("mapped", sub=1)
    yield "verified", token("verified", email="jane@example.com", email_verified=True, groups="a,b")
    yield "verified not", token("verified", email="jane@example.com", email_verified=False, groups="a,b")
    yield "verified without groups", token("verified", email="jane@example.com", email_verified=True)
    yield "two audiences: first", token("two")
    yield "two audiences: second", token("two", aud=["other"])
    yield "two audiences: neither", token("two", aud=["x"])


REMOVED = object()


def _unsigned(token: str) -> str:
    return token.rpartition(".")[0] + "."
