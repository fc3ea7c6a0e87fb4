"""Settings of auditing."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

import msgspec

if TYPE_CHECKING:
    from ostinato.server.webhooks.target import Target

Mode = Literal["batch", "blocking", "blocking-strict"]
MODES: tuple[Mode, ...] = ("batch", "blocking", "blocking-strict")


class Batching(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of mode `batch`. `qps`: batches per second, 0 for no limit."""

    buffer_size: int = 10_000
    max_size: int = 1
    max_wait: float = 0.0
    qps: float = 0.0
    burst: int = 0


class Truncation(msgspec.Struct, frozen=True, kw_only=True):
    """Sizes in bytes; larger events lose their objects, and are dropped if that does not suffice."""

    max_event_size: int = 102_400
    max_batch_size: int = 10_485_760


class AuditLogSettings(msgspec.Struct, frozen=True, kw_only=True):
    """0 disables a limit: size (megabytes), age (days), number of backups."""

    path: str  # "-" is standard output
    format: Literal["json", "legacy"] = "json"
    mode: Mode = "blocking"
    max_age: int = 366
    max_backups: int = 100
    max_size: int = 100
    compress: bool = False
    batching: Batching = Batching()
    truncation: Truncation | None = None


class AuditWebhookSettings(msgspec.Struct, frozen=True, kw_only=True):
    backend: Target
    mode: Mode = "batch"
    initial_backoff: float = 10.0
    batching: Batching = Batching(max_size=400, max_wait=30.0, qps=10.0, burst=15)
    truncation: Truncation | None = None


class AuditSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Auditing needs a policy and a backend."""

    policy_file: Path | None = None
    log: AuditLogSettings | None = None
    webhook: AuditWebhookSettings | None = None

    @property
    def enabled(self) -> bool:
        return self.policy_file is not None and (self.log is not None or self.webhook is not None)
