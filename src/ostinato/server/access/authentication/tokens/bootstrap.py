"""Bootstrap tokens: Secrets of type bootstrap.kubernetes.io/token in kube-system, with which new nodes join.

The token `ID.SECRET` authenticates the user `system:bootstrap:ID` in the group `system:bootstrappers` and in the groups
that the Secret adds, until the Secret expires or is deleted. The Secret is read for each request.
"""

from __future__ import annotations

import base64
import binascii
import hmac
import logging
import re
from collections.abc import Sequence

from ostinato.api.time import Time, TimeError
from ostinato.server.access.authentication.identity import Identity, authenticated
from ostinato.server.access.authentication.tokens.static import server_identity
from ostinato.server.request import User
from ostinato.server.resources.lister import Lister
from ostinato.world import Clock

_TOKEN = re.compile(r"([a-z0-9]{6})\.([a-z0-9]{16})")
_EXTRA_GROUP = re.compile(r"system:bootstrappers:[a-z0-9:-]{0,255}[a-z0-9]")
_GROUP = "system:bootstrappers"
_TYPE = "bootstrap.kubernetes.io/token"
_NAMESPACE = "kube-system"
_logger = logging.getLogger(__name__)


class BootstrapTokenAuthenticator:
    """`audiences`: the API server's."""

    def __init__(self, secrets: Lister, clock: Clock, audiences: Sequence[str]) -> None:
        self._secrets = secrets
        self._clock = clock
        self._audiences = tuple(audiences)

    def authenticate_token(self, token: str, digest: bytes, audiences: Sequence[str]) -> Identity | None:
        found = _TOKEN.fullmatch(token)
        if found is None:
            return None
        identifier, secret = found.groups()
        name = f"bootstrap-token-{identifier}"
        stored = self._secrets.get(name, _NAMESPACE)
        if stored is None or stored["metadata"].get("deletionTimestamp") or stored.get("type") != _TYPE:
            return None
        data = {key: _decoded(value) for key, value in stored.get("data", {}).items()}
        if not hmac.compare_digest(data.get("token-secret", b""), secret.encode()):
            return None
        groups = _groups(data)
        fault = self._fault(data, identifier) or ("auth-extra-groups is invalid" if groups is None else "")
        if groups is None or fault:
            _logger.info("bootstrap token rejected secret=%s/%s error=%s", _NAMESPACE, name, fault)
            return None
        return server_identity(
            authenticated(User(f"system:bootstrap:{identifier}", groups=groups)), self._audiences, audiences
        )

    def _fault(self, data: dict[str, bytes], identifier: str) -> str:
        """Why the Secret of a matching token does not authenticate, "" if it does."""
        if data.get("token-id") != identifier.encode():
            return "token-id does not match the name"
        if expires := data.get("expiration", b""):
            try:
                moment = Time.parse(expires.decode())
            except (TimeError, UnicodeDecodeError):
                return "expiration is not a time"
            if moment.timestamp() <= self._clock.wall():
                return "expired"
        return "" if data.get("usage-bootstrap-authentication") == b"true" else "not for authentication"


def _groups(data: dict[str, bytes]) -> tuple[str, ...] | None:
    """The groups of a token's user, sorted; None if the Secret names a group that is not allowed."""
    text = data.get("auth-extra-groups", b"").decode(errors="replace")
    extra = text.split(",") if text else []
    if not all(_EXTRA_GROUP.fullmatch(group) for group in extra):
        return None
    return tuple(sorted({_GROUP, *extra}))


def _decoded(value: str) -> bytes:
    try:
        return base64.b64decode(value)
    except (binascii.Error, ValueError):
        return b""
