"""Audit options, with kube-apiserver's names and defaults."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ostinato.cli.error import CommandError
from ostinato.cli.options.server.values import boolean, seconds

if TYPE_CHECKING:
    from ostinato.server.audit.settings import (
        AuditLogSettings,
        AuditSettings,
        AuditWebhookSettings,
        Batching,
        Truncation,
    )

_MODES = ("batch", "blocking", "blocking-strict")


def add_to(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--audit-policy-file", metavar="FILE", help="audit policy (audit.k8s.io/v1); without it nothing is audited"
    )
    _add_log(group)
    _add_webhook(group)


def _add_log(group: argparse._ArgumentGroup) -> None:
    group.add_argument("--audit-log-path", metavar="FILE", help="write audit events to this file; - is standard output")
    group.add_argument(
        "--audit-log-format", choices=("json", "legacy"), default="json", help="format of a line (default: %(default)s)"
    )
    for name, default, what in (
        ("maxage", 366, "days for which rotated files are kept"),
        ("maxbackup", 100, "rotated files that are kept"),
        ("maxsize", 100, "megabytes at which the file is rotated"),
    ):
        text = f"{what}; 0 is no limit (default: %(default)s)"
        group.add_argument(f"--audit-log-{name}", metavar="N", type=int, default=default, help=text)
    group.add_argument("--audit-log-compress", action="store_true", help="compress rotated files with gzip")
    _add_delivery(group, "log", "blocking", max_size=1, max_wait="0s", throttled=False)


def _add_webhook(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--audit-webhook-config-file", metavar="FILE", help="kubeconfig of a webhook that receives the events"
    )
    group.add_argument(
        "--audit-webhook-initial-backoff",
        metavar="DURATION",
        default="10s",
        help="delay before the first retry of a failed delivery (default: %(default)s)",
    )
    _add_delivery(group, "webhook", "batch", max_size=400, max_wait="30s", throttled=True)


def _add_delivery(
    group: argparse._ArgumentGroup, name: str, mode: str, *, max_size: int, max_wait: str, throttled: bool
) -> None:
    prefix = f"--audit-{name}"
    group.add_argument(
        f"{prefix}-mode",
        choices=_MODES,
        default=mode,
        help="whether requests wait for their audit events; blocking-strict fails requests whose events cannot be "
        "written (default: %(default)s)",
    )
    for option, default, what in (
        ("batch-buffer-size", 10_000, "events that are buffered; further events are dropped"),
        ("batch-max-size", max_size, "largest number of events in a batch"),
        ("batch-throttle-burst", 15 if throttled else 0, "burst of batches, if throttled"),
        ("truncate-max-event-size", 102_400, "largest event in bytes"),
        ("truncate-max-batch-size", 10_485_760, "largest batch in bytes"),
    ):
        group.add_argument(
            f"{prefix}-{option}", metavar="N", type=int, default=default, help=f"{what} (default: %(default)s)"
        )
    group.add_argument(
        f"{prefix}-batch-max-wait",
        metavar="DURATION",
        default=max_wait,
        help="longest wait for a batch to fill (default: %(default)s)",
    )
    group.add_argument(
        f"{prefix}-batch-throttle-enable",
        metavar="BOOL",
        type=boolean,
        nargs="?",
        const=True,
        default=throttled,
        help=f"limit the rate of batches (default: {str(throttled).lower()})",
    )
    group.add_argument(
        f"{prefix}-batch-throttle-qps",
        metavar="N",
        type=float,
        default=10.0 if throttled else 0.0,
        help="batches per second, if throttled (default: %(default)s)",
    )
    group.add_argument(
        f"{prefix}-truncate-enabled", action="store_true", help="drop objects from events that are too large"
    )


def settings(options: argparse.Namespace) -> AuditSettings:
    """Return the checked options; CommandError names the invalid option."""
    from ostinato.server.audit.settings import AuditSettings  # noqa: PLC0415 - `ostinato --help` does not load the server

    policy, log, webhook = options.audit_policy_file, options.audit_log_path, options.audit_webhook_config_file
    if policy is None:
        return AuditSettings()  # as in kube-apiserver: without a policy nothing is audited
    _check_policy(Path(policy))
    return AuditSettings(
        policy_file=Path(policy), log=_log(options) if log else None, webhook=_webhook(options) if webhook else None
    )


def _check_policy(path: Path) -> None:
    from ostinato.server.audit.policy import PolicyError, load  # noqa: PLC0415

    try:
        load(path)
    except PolicyError as error:
        raise CommandError(f"--audit-policy-file {error}") from None


def _log(options: argparse.Namespace) -> AuditLogSettings:
    from ostinato.server.audit.settings import AuditLogSettings  # noqa: PLC0415

    for name in ("maxage", "maxbackup", "maxsize"):
        value = getattr(options, f"audit_log_{name}")
        if value < 0:
            raise CommandError(f"--audit-log-{name} {value}: must not be negative; 0 is no limit")
    return AuditLogSettings(
        path=options.audit_log_path,
        format=options.audit_log_format,
        mode=options.audit_log_mode,
        max_age=options.audit_log_maxage,
        max_backups=options.audit_log_maxbackup,
        max_size=options.audit_log_maxsize,
        compress=options.audit_log_compress,
        batching=_batching(options, "log"),
        truncation=_truncation(options, "log"),
    )


def _webhook(options: argparse.Namespace) -> AuditWebhookSettings:
    from ostinato.client.config.error import ConfigError  # noqa: PLC0415
    from ostinato.server.audit.settings import AuditWebhookSettings  # noqa: PLC0415
    from ostinato.server.webhooks.identity import backend_of  # noqa: PLC0415

    try:
        backend = backend_of(Path(options.audit_webhook_config_file))
    except ConfigError as error:
        raise CommandError(f"--audit-webhook-config-file {error}") from None
    return AuditWebhookSettings(
        backend=backend,
        mode=options.audit_webhook_mode,
        initial_backoff=_seconds(options, "audit_webhook_initial_backoff"),
        batching=_batching(options, "webhook"),
        truncation=_truncation(options, "webhook"),
    )


def _of(options: argparse.Namespace, name: str, option: str) -> Any:
    return getattr(options, f"audit_{name}_{option}")


def _batching(options: argparse.Namespace, name: str) -> Batching:
    from ostinato.server.audit.settings import Batching  # noqa: PLC0415

    throttled = _of(options, name, "batch_throttle_enable")
    needed = ["batch_buffer_size", "batch_max_size"]
    needed += ["batch_throttle_qps", "batch_throttle_burst"] if throttled else []
    for option in needed:
        if _of(options, name, option) <= 0:
            given = f"--audit-{name}-{option.replace('_', '-')} {_of(options, name, option)}"
            raise CommandError(f"{given}: must be a positive number")
    return Batching(
        buffer_size=_of(options, name, "batch_buffer_size"),
        max_size=_of(options, name, "batch_max_size"),
        max_wait=_seconds(options, f"audit_{name}_batch_max_wait"),
        qps=_of(options, name, "batch_throttle_qps") if throttled else 0.0,
        burst=_of(options, name, "batch_throttle_burst"),
    )


def _truncation(options: argparse.Namespace, name: str) -> Truncation | None:
    from ostinato.server.audit.settings import Truncation  # noqa: PLC0415

    if not _of(options, name, "truncate_enabled"):
        return None
    event, batch = _of(options, name, "truncate_max_event_size"), _of(options, name, "truncate_max_batch_size")
    if not 0 < event <= batch:
        raise CommandError(f"--audit-{name}-truncate-max-event-size {event}: want 1 to {batch}, the size of a batch")
    return Truncation(max_event_size=event, max_batch_size=batch)


def _seconds(options: argparse.Namespace, name: str) -> float:
    return seconds(f"--{name.replace('_', '-')}", getattr(options, name))
