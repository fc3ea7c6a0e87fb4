"""Fields of bootstrap token Secrets."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from ostinato.api.time import Time, TimeError
from ostinato.cache import InformerSettings
from ostinato.kinds.core_v1 import Secret

NAMESPACE: Final = "kube-system"
TYPE: Final = "bootstrap.kubernetes.io/token"
PREFIX: Final = "bootstrap-token-"
SECRETS: Final = InformerSettings(namespaces=(NAMESPACE,), fields={"type": TYPE})
"""Informer settings: bootstrap token Secrets only."""


def text(secret: Secret, key: str) -> str:
    return secret.data.get(key, b"").decode(errors="replace")


def seconds_left(secret: Secret, now: datetime) -> float | None:
    """Return the seconds until the token expires: 0 if it has expired or its expiration is invalid, None if it has
    none.
    """
    expires = text(secret, "expiration")
    if not expires:
        return None
    try:
        moment = Time.parse(expires)
    except TimeError:
        return 0.0
    return max(0.0, (moment - Time.of(now)).total_seconds())
