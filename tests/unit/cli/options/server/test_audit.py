"""Audit options: settings and validation."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest

from ostinato.cli.error import CommandError
from ostinato.cli.options.server import audit as audit_options
from ostinato.server.audit.settings import AuditLogSettings, AuditSettings, Batching, Truncation


def _settings(place: Path, *options: str, policy: str = "rules: [{level: Metadata}]") -> AuditSettings:
    file = place / "policy.yaml"
    file.write_text(f"apiVersion: audit.k8s.io/v1\nkind: Policy\n{policy}\n")
    parser = argparse.ArgumentParser()
    audit_options.add_to(parser.add_argument_group("audit"))
    return audit_options.settings(parser.parse_args(["--audit-policy-file", str(file), *options]))


def test_the_defaults_are_those_of_kube_apiserver(tmp_path: Path) -> None:
    assert _settings(tmp_path, "--audit-log-path", "a.log").log == AuditLogSettings(path="a.log")
    assert AuditLogSettings(path="a.log") == AuditLogSettings(
        path="a.log", format="json", mode="blocking", max_age=366, max_backups=100, max_size=100, compress=False
    )


def test_without_a_backend_or_a_policy_nothing_is_audited(tmp_path: Path) -> None:
    assert not _settings(tmp_path).enabled
    parser = argparse.ArgumentParser()
    audit_options.add_to(parser.add_argument_group("audit"))
    assert not audit_options.settings(parser.parse_args(["--audit-log-path", "-"])).enabled


def test_batches_and_truncation_are_set(tmp_path: Path) -> None:
    text = """
        --audit-log-path - --audit-log-mode batch --audit-log-batch-max-size 5 --audit-log-batch-max-wait 1m
        --audit-log-batch-throttle-enable --audit-log-batch-throttle-qps 2 --audit-log-batch-throttle-burst 3
        --audit-log-truncate-enabled
    """
    log = _settings(tmp_path, *text.split()).log
    assert log is not None
    assert log.batching == Batching(buffer_size=10_000, max_size=5, max_wait=60.0, qps=2.0, burst=3)
    assert log.truncation == Truncation()


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (["--audit-log-maxsize", "-1"], "--audit-log-maxsize -1: must not be negative"),
        (["--audit-log-batch-buffer-size", "0"], "--audit-log-batch-buffer-size 0: must be a positive number"),
        (["--audit-log-batch-throttle-enable"], "--audit-log-batch-throttle-qps 0.0: must be a positive number"),
        (["--audit-log-batch-max-wait", "soon"], "--audit-log-batch-max-wait soon: .*want a duration"),
        (["--audit-log-truncate-enabled", "--audit-log-truncate-max-event-size", "0"], "max-event-size 0: want 1 to"),
        (["--audit-webhook-config-file", "/nowhere"], "--audit-webhook-config-file /nowhere: does not exist"),
    ],
)
def test_invalid_options_are_rejected(tmp_path: Path, options: list[str], problem: str) -> None:
    with pytest.raises(CommandError, match=problem):
        _settings(tmp_path, "--audit-log-path", "-", *options)


def test_an_invalid_policy_is_reported_with_file_and_field(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match=r"--audit-policy-file .*policy.yaml: rules\[0\].level: Unsupported value"):
        _settings(tmp_path, policy="rules: [{level: Some}]")
