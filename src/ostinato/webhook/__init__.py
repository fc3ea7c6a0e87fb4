"""Webhooks: admission (mutating and validating) and conversion of objects by Python functions.

    @validator(Widget)
    def check(widget: Widget) -> Iterator[FieldError | str]:
        if widget.spec.replicas % 2:
            yield FieldError.invalid(Path("spec", "replicas"), widget.spec.replicas, "must be even")

    Webhooks(check, endpoint=ServiceEndpoint("widgets-system", "widgets"))

- `validator`, `defaulter` and `converter` declare hooks; `Denied` rejects a request, described by `AdmissionRequest`.
- `Webhooks` is a runnable for a manager: server, certificates and CA injection. `WebhookServer` composes them freely.
"""

from __future__ import annotations

from ostinato.certificates.certificate import Certificate, CertificateError, CertificateSource
from ostinato.certificates.files import CertificateFiles
from ostinato.certificates.object_access import LiveObjectAccess, ObjectAccess
from ostinato.certificates.self_signed import (
    CertificateStore,
    MemoryCertificateStore,
    SecretCertificateStore,
    SelfSignedCertificates,
)
from ostinato.webhook.ca_injector import BundleTarget, CaInjector
from ostinato.webhook.configuration import ServiceEndpoint, UrlEndpoint, conversion, webhook_configurations
from ostinato.webhook.conversion import ConversionFailed, Conversions
from ostinato.webhook.dispatch import Dispatcher, Limits, WebhookRequest, WebhookResponse
from ostinato.webhook.hooks import AdmissionHook, ConversionHook, HookOptions, converter, defaulter, validator
from ostinato.webhook.request import AdmissionRequest, UserInfo
from ostinato.webhook.response import Denied
from ostinato.webhook.server import NotServing, WebhookServer
from ostinato.webhook.webhooks import Webhooks

__all__ = [
    "AdmissionHook",
    "AdmissionRequest",
    "BundleTarget",
    "CaInjector",
    "Certificate",
    "CertificateError",
    "CertificateFiles",
    "CertificateSource",
    "CertificateStore",
    "ConversionFailed",
    "ConversionHook",
    "Conversions",
    "Denied",
    "Dispatcher",
    "HookOptions",
    "Limits",
    "LiveObjectAccess",
    "MemoryCertificateStore",
    "NotServing",
    "ObjectAccess",
    "SecretCertificateStore",
    "SelfSignedCertificates",
    "ServiceEndpoint",
    "UrlEndpoint",
    "UserInfo",
    "WebhookRequest",
    "WebhookResponse",
    "WebhookServer",
    "Webhooks",
    "conversion",
    "converter",
    "defaulter",
    "validator",
    "webhook_configurations",
]
