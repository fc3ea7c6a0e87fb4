"""Tokens of service accounts: JSON web tokens that this server signs, and that it alone can check.

A token is as good as what it is bound to: when the account, or the Pod, Secret or Node that it names, has gone, the
token is worth nothing, though its time is not over. The key is kept where the server keeps its certificates, so that
tokens outlive a restart; a server without such a place makes a new key.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from ostinato.api.quoting import quote
from ostinato.server.access.authentication.identity import DEFAULT_ISSUER, Identity, RefusedToken, authenticated
from ostinato.server.access.authorization.rules import quoted
from ostinato.server.request import User
from ostinato.world import World

if TYPE_CHECKING:
    from ostinato.server.admission.objects import Kind

ISSUER = DEFAULT_ISSUER
KEY_BYTES = 32
_HEADER = base64.urlsafe_b64encode(b'{"alg":"HS256","typ":"JWT"}').rstrip(b"=")
_LONGEST = 16 * 1024  # bytes of a token that is looked at
_CREDENTIAL = "authentication.kubernetes.io/credential-id"
_POD, _NODE = "authentication.kubernetes.io/pod-", "authentication.kubernetes.io/node-"


class AccountTokens:
    """Signs tokens, and says whose they are. `kinds` are the objects that tokens name, by their kind."""

    def __init__(self, world: World, kinds: dict[str, Kind]) -> None:
        self._world = world
        self._kinds = kinds
        self._key = b""

    @property
    def key(self) -> bytes:
        """What tokens are signed with; made when it is first asked for."""
        if not self._key:
            self._key = self._world.ids.token(KEY_BYTES)
        return self._key

    @key.setter
    def key(self, key: bytes) -> None:
        self._key = key

    def sign(self, claims: dict[str, Any]) -> str:
        body = _HEADER + b"." + _encoded(msgspec.json.encode(claims))
        return (body + b"." + _encoded(self._signature(body))).decode()

    def identify(self, token: str, digest: bytes, audiences: Sequence[str]) -> Identity | None:
        """Whose token it is; None if it is none of these, RefusedToken if it is worth nothing."""
        claims = self._claims(token)
        if claims is None:
            return None
        told: list[str] = claims.get("aud", [])
        shared = tuple(audience for audience in audiences if audience in told)
        if not shared:
            wrong = f"token audiences {quoted(told)} is invalid for the target audiences {quoted(audiences)}"
            raise RefusedToken(wrong)
        now, bound = self._world.clock.wall(), claims["kubernetes.io"]
        if now >= claims["exp"]:
            raise RefusedToken("service account token has expired")
        if now < claims["nbf"]:
            raise RefusedToken("service account token is not valid yet")
        namespace, account = bound["namespace"], bound["serviceaccount"]
        for field, kind in _BOUND.items():
            if field in bound:
                self._check(kind, bound[field], namespace)
        extra = {_CREDENTIAL: (f"JTI={claims['jti']}",)}
        for field, prefix in (("node", _NODE), ("pod", _POD)):
            if field in bound:
                extra[f"{prefix}name"] = (bound[field]["name"],)
                if bound[field].get("uid"):
                    extra[f"{prefix}uid"] = (bound[field]["uid"],)
        groups = ("system:serviceaccounts", f"system:serviceaccounts:{namespace}")
        name = f"system:serviceaccount:{namespace}:{account['name']}"
        return Identity(authenticated(User(name, account["uid"], groups, extra)), shared)

    def _check(self, kind: str, wanted: dict[str, str], namespace: str) -> None:
        """RefusedToken if what a token is bound to has gone."""
        if not wanted.get("uid"):  # a node that a Pod was bound to, and that was not there
            return
        found = self._kinds[kind].get(wanted["name"], "" if kind == "Node" else namespace)
        if found is None:
            of_account = f"serviceaccounts {quote(wanted['name'])} not found"
            raise RefusedToken(of_account if kind == "ServiceAccount" else "service account token has been invalidated")
        uid = found["metadata"]["uid"]
        if uid != wanted["uid"]:
            what, claim = _CLAIMS[kind]
            raise RefusedToken(f"{what} UID ({uid}) does not match {claim} ({wanted['uid']})")

    def _claims(self, token: str) -> dict[str, Any] | None:
        if len(token) > _LONGEST or token.count(".") != 2:
            return None
        try:
            body, signature = token.encode().rsplit(b".", 1)
            if not hmac.compare_digest(_decoded(signature), self._signature(body)):
                return None
            claims: dict[str, Any] = msgspec.json.decode(_decoded(body.split(b".")[1]))
        except (ValueError, binascii.Error, msgspec.DecodeError):
            return None
        return claims

    def _signature(self, body: bytes) -> bytes:
        return hmac.new(self.key, body, hashlib.sha256).digest()


_BOUND = {"serviceaccount": "ServiceAccount", "secret": "Secret", "pod": "Pod", "node": "Node"}
_CLAIMS = {  # how a message calls what a token is bound to, and its claim
    "ServiceAccount": ("service account", "claim"),
    "Secret": ("secret", "service account secret ref claim"),
    "Pod": ("pod", "service account pod ref claim"),
    "Node": ("node", "service account node ref claim"),
}


def _encoded(data: bytes) -> bytes:
    return base64.urlsafe_b64encode(data).rstrip(b"=")


def _decoded(data: bytes) -> bytes:
    return base64.b64decode(data + b"=" * (-len(data) % 4), b"-_", validate=True)
