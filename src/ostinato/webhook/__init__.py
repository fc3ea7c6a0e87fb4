"""Webhooks: functions that complete, check and convert objects before an API server stores or serves them.

    @validator(Widget)
    def check(widget: Widget) -> Iterator[FieldError | str]:
        if widget.spec.replicas % 2:
            yield FieldError.invalid(Path("spec", "replicas"), widget.spec.replicas, "must be even")

    Webhooks(check, endpoint=ServiceEndpoint("widgets-system", "widgets"))

- `validator`, `defaulter` and `converter` declare; `Denied` refuses; `AdmissionRequest` says who asks for what.
- `Webhooks` serves, makes certificates and tells API servers whom to trust; `WebhookServer` is the same in parts.
"""

from __future__ import annotations

from ostinato.webhook.answer import Denied
from ostinato.webhook.certificates.bundles import CaBundles, Place
from ostinato.webhook.certificates.certificate import Certificate, CertificateError, CertificateSource
from ostinato.webhook.certificates.files import CertificateFiles
from ostinato.webhook.certificates.made import Keeper, MadeCertificates, MemoryKeeper, SecretKeeper
from ostinato.webhook.certificates.objects import ClientObjects, Objects
from ostinato.webhook.configuration import ServiceEndpoint, UrlEndpoint, conversion, webhook_configurations
from ostinato.webhook.conversion import ConversionFailed, Conversions
from ostinato.webhook.dispatch import Dispatcher, Limits, Posted, Reply
from ostinato.webhook.hooks import AdmissionHook, ConversionHook, HookOptions, converter, defaulter, validator
from ostinato.webhook.request import AdmissionRequest, UserInfo
from ostinato.webhook.server import NotServing, WebhookServer
from ostinato.webhook.webhooks import Webhooks

__all__ = [
    "AdmissionHook",
    "AdmissionRequest",
    "CaBundles",
    "Certificate",
    "CertificateError",
    "CertificateFiles",
    "CertificateSource",
    "ClientObjects",
    "ConversionFailed",
    "ConversionHook",
    "Conversions",
    "Denied",
    "Dispatcher",
    "HookOptions",
    "Keeper",
    "Limits",
    "MadeCertificates",
    "MemoryKeeper",
    "NotServing",
    "Objects",
    "Place",
    "Posted",
    "Reply",
    "SecretKeeper",
    "ServiceEndpoint",
    "UrlEndpoint",
    "UserInfo",
    "WebhookServer",
    "Webhooks",
    "conversion",
    "converter",
    "defaulter",
    "validator",
    "webhook_configurations",
]
