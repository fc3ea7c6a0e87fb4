"""Messages of failures have no credentials and one line."""

from __future__ import annotations

import pytest

from ostinato.api.errors import Invalid
from ostinato.api.status import Status, StatusDetails
from ostinato.controllers.failures.messages import MAX_LENGTH, fingerprint, one_line, summary


@pytest.mark.parametrize(
    ("message", "shown"),
    [
        ("no such size: 3", "no such size: 3"),
        ("GET https://user:hunter2@db.example/x failed", "GET https://<redacted>@db.example/x failed"),
        ("rejected Authorization: Bearer abcdefgh12345", "rejected Authorization: Bearer <redacted>"),
        ("cannot connect: password=hunter2 host=db", "cannot connect: password=<redacted> host=db"),
        ('{"apiKey": "hunter2", "size": 3}', '{"apiKey": <redacted>, "size": 3}'),
        ("{'db_password': b'hunter2'}", "{'db_password': <redacted>}"),
        ("token eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJ4In0.c2ln expired", "token <redacted> expired"),
        ("bad key -----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----!", "bad key <redacted>!"),
        ('secrets "creds" not found', 'secrets "creds" not found'),
        ("Secret creds: namespace is required", "Secret creds: namespace is required"),
        ("ConfigMap default/token: data is required", "ConfigMap default/token: data is required"),
    ],
)
def test_credentials_are_masked(message: str, shown: str) -> None:
    assert summary(ValueError(message)) == f"ValueError: {shown}"


def test_the_values_of_an_invalid_secret_are_masked() -> None:
    error = Invalid(
        Status(
            message='Secret "a" is invalid: data[x]: Invalid value: "hunter2": too short',
            reason="Invalid",
            details=StatusDetails(name="a", kind="Secret"),
            code=422,
        )
    )
    assert "hunter2" not in summary(error)
    assert "too short" in summary(error)


def test_a_message_is_one_line_of_limited_length() -> None:
    assert one_line(ValueError("one\n  two")) == "ValueError: one two"
    assert one_line(ValueError()) == "ValueError"
    group = ExceptionGroup("several", [ValueError("a"), ExceptionGroup("more", [LookupError("b")])])
    assert one_line(group) == "ValueError: a; LookupError: b"
    assert len(summary(ValueError("x" * 5000))) == MAX_LENGTH


def test_an_error_whose_text_fails_is_named_by_its_type() -> None:
    class Odd(Exception):  # noqa: N818
        def __str__(self) -> str:
            raise RuntimeError("no text")

    assert one_line(Odd()) == "Odd"


def test_numbers_and_ids_do_not_make_failures_different() -> None:
    one, other = ValueError("object 17 at 0xdeadbeef"), ValueError("object 18 at 0xfeedbeef")
    assert fingerprint(one) == fingerprint(other)
    assert fingerprint(one) != fingerprint(ValueError("subject 17"))
    assert fingerprint(one) != fingerprint(TypeError(str(one)))
