"""Pod security by version: a namespace that names a version of the standards gets the checks of that version."""

from __future__ import annotations

import pytest

from ostinato.server.admission.pod_security.versions import findings
from ostinato.server.resources.core.pods.spec.app_armor import app_armor_from_annotations

PLAIN = {"containers": [{"name": "c", "image": "i"}]}
ROOT = {**PLAIN, "hostUsers": False, "securityContext": {"runAsUser": 0}}
WINDOWS = {**PLAIN, "os": {"name": "windows"}}
ENGINE = {**PLAIN, "securityContext": {"seLinuxOptions": {"type": "container_engine_t"}}}
PROBED = {"containers": [{"name": "c", "livenessProbe": {"tcpSocket": {"host": "h", "port": 1}}}]}
ESCALATION, CAPABILITIES = "allowPrivilegeEscalation != false", "unrestricted capabilities"
NOT_ROOT, SECCOMP = "runAsNonRoot != true", "seccompProfile"


@pytest.mark.parametrize(
    ("level", "version", "spec", "reasons"),
    [
        ("privileged", "latest", PROBED, []),
        ("restricted", "v1.0", PLAIN, [NOT_ROOT]),
        ("restricted", "v1.8", PLAIN, [ESCALATION, NOT_ROOT]),
        ("restricted", "v1.19", PLAIN, [ESCALATION, NOT_ROOT, SECCOMP]),
        ("restricted", "v1.22", PLAIN, [ESCALATION, CAPABILITIES, NOT_ROOT, SECCOMP]),
        ("restricted", "v1.24", WINDOWS, [ESCALATION, CAPABILITIES, NOT_ROOT, SECCOMP]),
        ("restricted", "v1.25", WINDOWS, [NOT_ROOT]),
        ("restricted", "v1.34", ROOT, [ESCALATION, CAPABILITIES, NOT_ROOT, "runAsUser=0", SECCOMP]),
        ("restricted", "v1.35", ROOT, [ESCALATION, CAPABILITIES, SECCOMP]),
        ("restricted", "v1.99", ROOT, [ESCALATION, CAPABILITIES, SECCOMP]),
        ("baseline", "v1.30", ENGINE, ["seLinuxOptions"]),
        ("baseline", "v1.31", ENGINE, []),
        ("baseline", "v1.33", PROBED, []),
        ("baseline", "latest", PROBED, ["probe or lifecycle host"]),
    ],
)
def test_a_version_has_the_checks_of_its_time(level: str, version: str, spec: dict, reasons: list[str]) -> None:
    assert [reason for reason, _ in findings(level, version, {}, spec)] == reasons


def test_an_annotation_with_a_profile_becomes_the_field_and_the_writer_is_told() -> None:
    key = "container.apparmor.security.beta.kubernetes.io/c"
    spec = {"containers": [{"name": "c"}]}
    warnings = app_armor_from_annotations({"annotations": {key: "localhost/mine"}}, spec)
    assert spec["containers"][0]["securityContext"] == {
        "appArmorProfile": {"type": "Localhost", "localhostProfile": "mine"}
    }
    assert warnings == [f'metadata.annotations[{key}]: deprecated since v1.30; use the "appArmorProfile" field instead']


def test_an_annotation_that_says_what_the_pod_says_is_left_alone() -> None:
    key = "container.apparmor.security.beta.kubernetes.io/c"
    spec = {"securityContext": {"appArmorProfile": {"type": "RuntimeDefault"}}, "containers": [{"name": "c"}]}
    assert app_armor_from_annotations({"annotations": {key: "runtime/default"}}, spec) == []
    assert spec["containers"] == [{"name": "c"}]
