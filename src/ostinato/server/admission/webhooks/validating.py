"""Dispatcher of validating webhooks: called concurrently; the first denial in order is returned."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from ostinato.api.errors import APIError
from ostinato.server.admission.policies.matching import Attributes
from ostinato.server.admission.webhooks.matching import Match, WebhookMatcher
from ostinato.server.admission.webhooks.observing import counted
from ostinato.server.admission.webhooks.review import WebhookCallFailed, WebhookDenied, call_webhook
from ostinato.server.admission.webhooks.versions import converted_for_webhook

if TYPE_CHECKING:
    from ostinato.server.admission.webhooks.plugins import WebhookDependencies
    from ostinato.server.resources.lister import Lister

_logger = logging.getLogger(__name__)


class ValidatingDispatcher:
    def __init__(self, configurations: Lister, dependencies: WebhookDependencies) -> None:
        self._matcher = WebhookMatcher(configurations, dependencies)
        self._post_review = dependencies.post_review
        self._metrics = dependencies.metrics

    async def dispatch(self, attributes: Attributes) -> None:
        """APIError if a webhook denies the write, or a call fails and failurePolicy is Fail."""
        wanted: list[tuple[Match, Attributes]] = []
        for webhook in self._matcher.webhooks(attributes):
            match = self._matcher.match(webhook, attributes)
            if match is not None:
                shown = await converted_for_webhook(match, attributes)
                if await self._matcher.holds(match, shown):
                    wanted.append((match, shown))
        refusals = await asyncio.gather(*(self._call(i, match, shown) for i, (match, shown) in enumerate(wanted)))
        for refusal in refusals:
            if refusal is not None:
                raise refusal

    async def _call(self, i: int, match: Match, attributes: Attributes) -> APIError | None:
        try:
            with counted(self._metrics, match.webhook, "validating", attributes):
                await call_webhook(self._post_review, match, attributes, mutating=False)
        except WebhookCallFailed as failure:
            if not match.webhook.has_failure_policy_ignore:
                return failure.refusal
            key = f"failed-open.validating.webhook.admission.k8s.io/round_0_index_{i}"
            attributes.context.request.annotate(key, match.webhook.name)
            _logger.warning("webhook call failed, ignored by failurePolicy error=%s", failure)
        except WebhookDenied as denial:
            return denial.refusal
        except APIError as refusal:
            return refusal
        return None
