"""Masking of Secrets."""

from __future__ import annotations

import base64

import msgspec
import pytest

from ostinato.page.history.diff import differences
from ostinato.page.masking import masking, shown

PASSWORD = base64.b64encode(b"hunter2").decode()
KEY = b"k" * 32


def secret(value: str) -> dict[str, object]:
    applied = msgspec.json.encode({"data": {"password": value}}).decode()
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {
            "name": "s",
            "annotations": {"kubectl.kubernetes.io/last-applied-configuration": applied, "team": "blue"},
        },
        "data": {"password": value},
        "stringData": {"other": value},
    }


def test_no_value_of_a_secret_is_kept() -> None:
    kept = msgspec.json.encode(masking(KEY)(secret(PASSWORD))).decode()
    assert PASSWORD not in kept
    assert "hunter2" not in kept
    assert '"team":"blue"' in kept


def test_a_changed_value_is_seen_without_the_values() -> None:
    mask = masking(KEY)
    found = differences(mask(secret(PASSWORD)), mask(secret("b3RoZXI=")))
    assert ("data.password", "***", "***") in [(each.path, each.old, each.new) for each in found]
    assert differences(mask(secret(PASSWORD)), mask(secret(PASSWORD))) == []


def test_digests_are_not_shown_and_need_the_key() -> None:
    masked = masking(KEY)(secret(PASSWORD))
    assert shown(masked)["data"] == {"password": "***"}
    assert masking(b"other" * 6)(secret(PASSWORD))["data"] != masked["data"]


def test_malformed_secrets_are_masked_too() -> None:
    assert "hunter2" not in str(masking(KEY)({"data": "hunter2", "metadata": None}))
    assert "hunter2" not in str(masking(KEY)({"data": {"a": {"b": "hunter2"}}, "metadata": {"annotations": "x"}}))


@pytest.mark.parametrize(
    "text",
    [
        "H4sIAAAAAAAA" + "x" * 300,  # a compressed copy, as some tools keep it
        "password: hunter2",
        f"was {PASSWORD} before",
        "a: b\nc: d",
        ' {"data": {}}',
        "---",
    ],
)
def test_annotations_that_may_repeat_values_are_masked(text: str) -> None:
    instance = secret(PASSWORD)
    instance["metadata"] = {"annotations": {"note": text, "kubernetes.io/service-account.name": "default"}}
    kept = masking(KEY)(instance)["metadata"]["annotations"]
    assert shown(kept) == {"note": "***", "kubernetes.io/service-account.name": "default"}
