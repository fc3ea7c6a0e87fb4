"""Observing calls: how each webhook call ended, for the metrics."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ostinato.server.admission.policies.matching import Attributes
from ostinato.server.admission.webhooks.matching import Webhook
from ostinato.server.admission.webhooks.metrics import WebhookCall, WebhookMetrics, WebhookType
from ostinato.server.admission.webhooks.review import WebhookCallFailed, WebhookDenied


@contextmanager
def counted(metrics: WebhookMetrics, webhook: Webhook, type_: WebhookType, attributes: Attributes) -> Iterator[None]:
    """Count a call by the exception that the block raises. One that is cancelled is not counted."""
    clock = attributes.context.world.clock
    call, began = WebhookCall(webhook.name, type_, attributes.operation), clock.monotonic()
    try:
        yield
    except WebhookCallFailed as failure:
        ignored = webhook.has_failure_policy_ignore
        metrics.failed(call, clock.monotonic() - began, failure.code, ignored=ignored)
        raise
    except WebhookDenied as denial:
        metrics.denied(call, clock.monotonic() - began, denial.refusal.code)
        raise
    except Exception:
        metrics.internal_error(call, clock.monotonic() - began)
        raise
    metrics.allowed(call, clock.monotonic() - began)
