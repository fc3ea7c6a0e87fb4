"""Metrics of admission webhooks, with kube-apiserver's names, labels and buckets.

The number of series is bounded: whoever may create webhook configurations chooses their names, and their servers choose
the codes. Calls of further webhooks are not counted; further codes of a webhook are counted as 600.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Literal, NamedTuple

from ostinato.metrics import Description, Family, LabelledMetrics

MAX_NAMES: Final = 1_000
MAX_CODES: Final = 20  # of each webhook
_OTHER_CODE: Final = 600  # also stands for all codes above it

_PREFIX: Final = "apiserver_admission_webhook_"
_REQUESTS: Final = f"{_PREFIX}request_total"
_DURATION: Final = f"{_PREFIX}admission_duration_seconds"
_REJECTIONS: Final = f"{_PREFIX}rejection_count"
_FAIL_OPEN: Final = f"{_PREFIX}fail_open_count"
_DESCRIPTIONS: Final = {
    _REQUESTS: Description("Calls of admission webhooks by code, and whether they rejected the request."),
    _DURATION: Description("Latency of admission webhooks in seconds.", (0.005, 0.025, 0.1, 0.5, 1, 2.5, 10, 25)),
    _REJECTIONS: Description("Requests rejected by admission webhooks, or because a call failed."),
    _FAIL_OPEN: Description("Failed calls of admission webhooks that were ignored by failurePolicy."),
}

WebhookType = Literal["validating", "admit"]


class WebhookCall(NamedTuple):
    """The labels that all series of a call have."""

    name: str
    type: WebhookType
    operation: str


class WebhookMetrics:
    """Counts the calls of one server. `seconds`: how long a call took."""

    def __init__(self) -> None:
        self._metrics = LabelledMetrics(_DESCRIPTIONS)
        self._codes: dict[str, set[int]] = {}  # by name of the webhook

    def allowed(self, call: WebhookCall, seconds: float) -> None:
        self._count(call, seconds, 200, rejected=False)

    def denied(self, call: WebhookCall, seconds: float, code: int) -> None:
        self._count(call, seconds, code, rejected=True, error="no_error")

    def failed(self, call: WebhookCall, seconds: float, code: int, *, ignored: bool) -> None:
        """Record a failed call. `ignored`: by failurePolicy."""
        if ignored:
            self._count(call, seconds, code, rejected=False)
            if call.name in self._codes:
                self._metrics.count(_FAIL_OPEN, {"name": call.name, "type": call.type})
        else:
            self._count(call, seconds, code, rejected=True, error="calling_webhook_error")

    def internal_error(self, call: WebhookCall, seconds: float) -> None:
        """Record an error of the server, such as a patch that cannot be applied."""
        self._count(call, seconds, 0, rejected=True, error="apiserver_internal_error")

    def families(self) -> Iterable[Family]:
        return self._metrics.families()

    def _count(self, call: WebhookCall, seconds: float, code: int, *, rejected: bool, error: str = "") -> None:
        codes = self._codes.get(call.name)
        if codes is None:
            if len(self._codes) >= MAX_NAMES:
                return
            codes = self._codes[call.name] = set()
        if code not in codes:
            if code > _OTHER_CODE or len(codes) >= MAX_CODES:
                code = _OTHER_CODE
            codes.add(code)
        labels, is_rejected = call._asdict(), str(rejected).lower()
        self._metrics.count(_REQUESTS, {**labels, "code": str(code), "rejected": is_rejected})
        self._metrics.observe(_DURATION, seconds, {**labels, "rejected": is_rejected})
        if rejected:
            self._metrics.count(_REJECTIONS, {**labels, "error_type": error, "rejection_code": str(code)})
