"""Service account tokens of Pods, bound to the Pod and cached until their renewal.

- A token is renewed after 80 % of its lifetime, and after a day at the latest.
- If a renewal fails, the old token is used until it expires.
- The API server rejects a token after its Pod was deleted.
"""

from __future__ import annotations

import logging
from datetime import timedelta
from typing import Final

import msgspec

from ostinato.api.errors import APIError
from ostinato.api.time import Time
from ostinato.client import TransportError
from ostinato.client.client import Client
from ostinato.kinds.authentication_v1 import BoundObjectReference
from ostinato.kinds.core_v1 import Pod, ServiceAccountTokenProjection
from ostinato.plane.node.volumes.contents import ContentError, Token
from ostinato.world import World

_HOUR: Final = 3600  # seconds; default lifetime
_DAY: Final = timedelta(days=1)
_RENEW_AT: Final = 0.8  # fraction of the lifetime
_logger = logging.getLogger(__name__)


class _Token(msgspec.Struct, frozen=True):
    value: str
    renew_at: Time
    expires: Time


class PodTokens:
    """The tokens of all Pods of a node."""

    def __init__(self, client: Client, world: World) -> None:
        self._client = client
        self._world = world
        self._tokens: dict[tuple[str, str, int], _Token] = {}  # by Pod uid, audience and lifetime in seconds

    async def get(self, pod: Pod, asked: ServiceAccountTokenProjection) -> str:
        """Return a token of the Pod's service account; `ContentError` if the server does not issue one."""
        return (await self.issue(pod, asked)).value

    async def issue(self, pod: Pod, asked: ServiceAccountTokenProjection) -> Token:
        """Return a token with its expiration; `ContentError` if the server does not issue one."""
        key = (pod.metadata.uid, asked.audience or "", asked.expiration_seconds or _HOUR)
        now = Time.of(self._world.clock.now())
        known = self._tokens.get(key)
        if known is not None and now < known.renew_at:
            return Token(known.value, known.expires)
        try:
            fresh = await self._request(pod, asked, key[2], now)
        except (APIError, TransportError) as error:
            if known is not None and now < known.expires:
                where = f"{pod.metadata.namespace}/{pod.metadata.name}"
                _logger.warning("cannot renew token; the old one is still valid pod=%s error=%s", where, error)
                return Token(known.value, known.expires)
            raise ContentError(f"failed to fetch token: {error}") from None
        self._tokens[key] = fresh
        return Token(fresh.value, fresh.expires)

    def forget(self, pod: Pod) -> None:
        for key in [each for each in self._tokens if each[0] == pod.metadata.uid]:
            del self._tokens[key]

    async def _request(self, pod: Pod, asked: ServiceAccountTokenProjection, seconds: int, now: Time) -> _Token:
        meta = pod.metadata
        answer = await self._client.service_accounts.token(
            pod.spec.service_account_name or "default",
            namespace=meta.namespace,
            audiences=[asked.audience] if asked.audience else [],
            expiration=seconds,
            bound_to=BoundObjectReference(api_version="v1", kind="Pod", name=meta.name, uid=meta.uid),
        )
        lives = timedelta(seconds=answer.spec.expiration_seconds or seconds)  # the server may have shortened it
        renew_at = now + min(lives * _RENEW_AT, _DAY)
        return _Token(answer.status.token or "", renew_at, now + lives)
