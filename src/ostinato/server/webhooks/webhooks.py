"""Webhook calls of a server; the client is loaded with the first call."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ostinato.server.webhooks.target import Json

if TYPE_CHECKING:
    from ostinato.server.webhooks.client import WebhookClient
    from ostinato.server.webhooks.target import Identify, Locate, PostReview, Target
    from ostinato.world import Clock


class Webhooks:
    def __init__(self, clock: Clock, locate: Locate) -> None:
        """`locate`: finds the endpoint of a Service."""
        self._clock = clock
        self._locate = locate
        self._client: WebhookClient | None = None
        self.override: PostReview | None = None  # replaces all webhooks in tests: virtual time has no network

    async def post_review(self, client: Json, review: bytes, seconds: int, identify: Identify | None = None) -> bytes:
        """See `PostReview`. `identify`: returns the client identity for a host; anonymous if None."""
        if self.override is not None:
            return await self.override(client, review, seconds)
        return await self._loaded().post_review(client, review, seconds, identify)

    async def call(self, target: Target, body: bytes, seconds: int) -> bytes:
        """Post to a backend of the server's own configuration; CallError if it does not answer."""
        return await self._loaded().call(target, body, seconds)

    async def fetch(self, target: Target, seconds: int, most: int) -> bytes:
        """Get a document; see `WebhookClient.fetch`."""
        return await self._loaded().fetch(target, seconds, most)

    def _loaded(self) -> WebhookClient:
        if self._client is None:
            from ostinato.server.webhooks.client import WebhookClient  # noqa: PLC0415 - see above

            self._client = WebhookClient(self._clock, self._locate)
        return self._client

    def close(self) -> None:
        """Close idle connections."""
        if self._client is not None:
            self._client.close()
