"""Legacy tokens: service account tokens without expiry, kept in Secrets of type kubernetes.io/service-account-token.

- A token is valid while its Secret holds it and its service account exists.
- The Secret's label `kubernetes.io/legacy-token-last-used` holds the date of the last use, by which
  `legacy-serviceaccount-token-cleaner-controller` finds unused ones.
- The label `kubernetes.io/legacy-token-invalid-since` makes a token invalid without deleting it.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import hmac
import logging
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import msgspec

from ostinato.api.text.go_format import quote
from ostinato.server.access.authentication.identity import RefusedToken, authenticated
from ostinato.server.request import Peer, Request, User

if TYPE_CHECKING:
    from ostinato.server.request import Answer
    from ostinato.server.resources.lister import Lister

LEGACY_ISSUER = "kubernetes/serviceaccount"
LAST_USED = "kubernetes.io/legacy-token-last-used"
INVALID_SINCE = "kubernetes.io/legacy-token-invalid-since"
_CLAIM = "kubernetes.io/serviceaccount/"
_LOOPBACK = Peer("system:apiserver", ("system:masters",))
_logger = logging.getLogger(__name__)


class LegacyTokenValidator:
    """`handle`: the server's, used to write the labels."""

    def __init__(self, kinds: Mapping[str, Lister], handle: Callable[[Request], Awaitable[Answer]]) -> None:
        self._kinds = kinds
        self._handle = handle
        self._noting: dict[str, asyncio.Task[None]] = {}  # by the Secret's key

    def user(self, token: str, claims: Mapping[str, Any], now: float) -> User:
        """The user of a token with a verified signature; RefusedToken if the token is invalid."""
        namespace, secret_name, account_name, account_uid = _claimed(claims)
        secret = self._kinds["Secret"].get(secret_name, namespace)
        if secret is None or secret["metadata"].get("deletionTimestamp"):
            raise RefusedToken("Token has been invalidated")
        if not hmac.compare_digest(_decoded(secret.get("data", {}).get("token", "")), token.encode()):
            raise RefusedToken("Token does not match server's copy")
        account = self._kinds["ServiceAccount"].get(account_name, namespace)
        if account is None:
            raise RefusedToken(f"serviceaccounts {quote(account_name)} not found")
        where = f"{namespace}/{account_name}"
        if account["metadata"].get("deletionTimestamp"):
            raise RefusedToken(f"ServiceAccount {where} has been deleted")
        uid = account["metadata"]["uid"]
        if uid != account_uid:
            raise RefusedToken(f"ServiceAccount UID ({uid}) does not match claim ({account_uid})")
        self._note(secret["metadata"], now)
        if secret["metadata"].get("labels", {}).get(INVALID_SINCE):
            raise RefusedToken(
                f"the token in secret {namespace}/{secret_name} for service account {where} has been marked invalid. "
                "Use tokens from the TokenRequest API or manually created secret-based tokens, or remove the "
                f"'{INVALID_SINCE}' label from the secret to temporarily allow use of this token"
            )
        groups = ("system:serviceaccounts", f"system:serviceaccounts:{namespace}")
        return authenticated(User(f"system:serviceaccount:{namespace}:{account_name}", uid, groups))

    def close(self) -> None:
        for task in self._noting.values():
            task.cancel()

    def _note(self, secret: Mapping[str, Any], now: float) -> None:
        """Write today's date into the Secret's last-used label unless it is current."""
        today = datetime.fromtimestamp(now, UTC).date()
        if secret.get("labels", {}).get(LAST_USED) in (today.isoformat(), (today + timedelta(days=1)).isoformat()):
            return
        key = f"{secret['namespace']}/{secret['name']}"
        if key not in self._noting:
            change = {"metadata": {"uid": secret["uid"], "labels": {LAST_USED: today.isoformat()}}}
            task = asyncio.get_running_loop().create_task(self._label(secret, change), name="legacy-token-last-used")
            self._noting[key] = task
            task.add_done_callback(lambda _: self._noting.pop(key, None))

    async def _label(self, secret: Mapping[str, Any], change: Mapping[str, Any]) -> None:
        path = f"/api/v1/namespaces/{secret['namespace']}/secrets/{secret['name']}"
        headers = {"content-type": "application/merge-patch+json", "user-agent": "kube-apiserver/v1.36.4"}
        request = Request("PATCH", path, headers=headers, body=msgspec.json.encode(change))
        request.peer = _LOOPBACK
        answer = await self._handle(request)
        if answer.status >= 400 and answer.status != 404:
            where = f"{secret['namespace']}/{secret['name']}"
            _logger.warning("cannot update last-used label of legacy token secret=%s status=%d", where, answer.status)


def _claimed(claims: Mapping[str, Any]) -> tuple[str, str, str, str]:
    """Namespace, Secret, service account and its uid; RefusedToken if one is missing or contradicts the subject."""
    if not claims.get("sub"):
        raise RefusedToken("sub claim is missing")
    found = []
    for name, shown in _CLAIMS.items():
        value = claims.get(_CLAIM + name)
        if not isinstance(value, str) or not value:
            raise RefusedToken(f"{shown} claim is missing")
        found.append(value)
    namespace, secret, account, uid = found
    if claims["sub"] != f"system:serviceaccount:{namespace}:{account}":
        raise RefusedToken("sub claim is invalid")
    return namespace, secret, account, uid


_CLAIMS = {
    "namespace": "namespace",
    "secret.name": "secretName",
    "service-account.name": "serviceAccountName",
    "service-account.uid": "serviceAccountUID",
}


def _decoded(value: str) -> bytes:
    try:
        return base64.b64decode(value)
    except (binascii.Error, ValueError):
        return b""
