"""Validating webhooks: all that are for a write are asked at the same time; the first that refuses is heard."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from ostinato.api.errors import APIError
from ostinato.server.admission.policies.matching import Attributes
from ostinato.server.admission.webhooks.matching import Match, WebhookMatcher
from ostinato.server.admission.webhooks.review import FailedCall, asked
from ostinato.server.admission.webhooks.versions import shown_as

if TYPE_CHECKING:
    from ostinato.server.admission.webhooks.plugins import Parts
    from ostinato.server.resources.lister import Lister

_logger = logging.getLogger(__name__)


class ValidatingWebhooks:
    def __init__(self, configurations: Lister, parts: Parts) -> None:
        self._matcher = WebhookMatcher(configurations, parts)
        self._ask = parts.ask

    async def ask(self, attributes: Attributes) -> None:
        """Raise an APIError if a webhook refuses a write, or cannot be asked and must be."""
        wanted: list[tuple[Match, Attributes]] = []
        for webhook in self._matcher.webhooks(attributes):
            match = self._matcher.match(webhook, attributes)
            if match is not None:
                shown = await shown_as(match, attributes)
                if await self._matcher.holds(match, shown):
                    wanted.append((match, shown))
        refusals = await asyncio.gather(*(self._asked(i, match, shown) for i, (match, shown) in enumerate(wanted)))
        for refusal in refusals:
            if refusal is not None:
                raise refusal

    async def _asked(self, i: int, match: Match, attributes: Attributes) -> APIError | None:
        try:
            await asked(self._ask, match, attributes, mutating=False)
        except FailedCall as failure:
            if not match.webhook.ignores_failures:
                return failure.refusal
            key = f"failed-open.validating.webhook.admission.k8s.io/round_0_index_{i}"
            attributes.context.request.annotate(key, match.webhook.name)
            _logger.warning("%s; its failure policy lets the request pass", failure)
        except APIError as refusal:
            return refusal
        return None
