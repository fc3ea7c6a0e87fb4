"""What is wrong with an AuthenticationConfiguration is said in the words that kube-apiserver was recorded to say."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.unit.server.access.authentication.config_cases import CASES, text

from ostinato.api.validation.field_errors import joined
from ostinato.server.access.authentication.oidc.configuration import ConfigurationError, read
from ostinato.server.access.authentication.oidc.validation import validate

RECORDED: dict[str, str] = json.loads((Path(__file__).parents[1] / "data/config.json").read_text())
DIFFERENT = {"url of the server": "kube-apiserver checks it later, and does not say in which of the issuers"}


def test_every_case_is_recorded() -> None:
    assert RECORDED.keys() == CASES.keys()


@pytest.mark.parametrize("name", CASES)
def test_an_invalid_configuration_has_kube_apiservers_message(name: str) -> None:
    _, errors = validate(read(text(CASES[name]).encode()), ["https://kubernetes.default.svc"])
    told = joined(errors).splitlines()[0]
    if name in DIFFERENT:
        assert told == f"jwt[0].{RECORDED[name]}"
    else:
        assert told == RECORDED[name]


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "empty config data"),
        (b"[]", "want an object"),
        (b"a: b: c", "mapping values are not allowed"),
        (b'{"kind":"AuthenticationConfiguration","apiVersion":"v1"}', "want kind AuthenticationConfiguration of"),
        (text({"jwts": []}).encode(), "unknown field `jwts`"),
        (text({"jwt": [{"issuer": {"url": 1}}]}).encode(), r"jwt\[0\].issuer.url: Expected `str`"),
    ],
)
def test_a_file_that_is_no_configuration_is_refused(data: bytes, why: str) -> None:
    with pytest.raises(ConfigurationError, match=why):
        read(data)


def test_older_versions_and_an_empty_configuration_are_read() -> None:
    for version in ("v1", "v1beta1", "v1alpha1"):
        data = f"apiVersion: apiserver.config.k8s.io/{version}\nkind: AuthenticationConfiguration\njwt: null\n"
        assert read(data.encode()).jwt == ()
