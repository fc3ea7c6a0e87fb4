"""Validation of `spec.conversion`: strategy None, or Webhook with a client configuration."""

from __future__ import annotations

from ostinato.api.validation.field_errors import FieldError, Path
from ostinato.server.resources.strategy import Json
from ostinato.server.resources.validation.webhook_client import client_faults, review_faults


def conversion_faults(conversion: Json, path: Path) -> list[FieldError]:
    strategy = conversion.get("strategy", "")
    webhook = conversion.get("webhook") or {}
    client, versions = webhook.get("clientConfig"), webhook.get("conversionReviewVersions")
    if not strategy:
        return [FieldError.required(path.child("strategy"))]
    errors: list[FieldError] = []
    if strategy not in ("None", "Webhook"):
        errors.append(FieldError.not_supported(path.child("strategy"), strategy, ("None", "Webhook")))
    if strategy == "Webhook":
        if client is None:
            errors.append(
                FieldError.required(path.child("webhookClientConfig"), "required when strategy is set to Webhook")
            )
        else:
            errors += client_faults(client, path.child("webhookClientConfig"))
        return errors + review_faults(versions or [], path.child("conversionReviewVersions"))
    unused = (("webhookClientConfig", client is not None), ("conversionReviewVersions", bool(versions)))
    return errors + [
        FieldError.forbidden(path.child(field), "should not be set when strategy is not set to Webhook")
        for field, given in unused
        if given
    ]
