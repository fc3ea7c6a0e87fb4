"""Tokens of Pods: bound to the Pod that they are for, kept until they near their end, and then renewed.

- A token is renewed after 80 % of its life, and after a day at the latest.
- While a renewal fails, the old token is used for as long as it lives.
- When its Pod is deleted, the API server accepts it no longer.
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
from ostinato.plane.node.volumes.contents import ContentError
from ostinato.world import World

_HOUR: Final = 3600  # seconds for which a token lives that says nothing else
_DAY: Final = timedelta(days=1)
_RENEW_AT: Final = 0.8  # of a token's life
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
        self._tokens: dict[tuple[str, str, int], _Token] = {}  # by the Pod's uid, audience and seconds to live

    async def of(self, pod: Pod, asked: ServiceAccountTokenProjection) -> str:
        """A token of the Pod's service account; `ContentError` if the server issues none."""
        key = (pod.metadata.uid, asked.audience or "", asked.expiration_seconds or _HOUR)
        now = Time.of(self._world.clock.now())
        known = self._tokens.get(key)
        if known is not None and now < known.renew_at:
            return known.value
        try:
            fresh = await self._request(pod, asked, key[2], now)
        except (APIError, TransportError) as error:
            if known is not None and now < known.expires:
                where = f"{pod.metadata.namespace}/{pod.metadata.name}"
                _logger.warning("cannot renew token; the old one is still valid pod=%s error=%s", where, error)
                return known.value
            raise ContentError(f"failed to fetch token: {error}") from None
        self._tokens[key] = fresh
        return fresh.value

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
