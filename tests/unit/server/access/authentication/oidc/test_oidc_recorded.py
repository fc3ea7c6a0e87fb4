"""Tokens of issuers get the answers that kube-apiserver was recorded to give with the same configuration."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from tests.unit.server.access.authentication.issuing import HttpsIssuer, Key
from tests.unit.server.access.authentication.oidc_cases import cases, configuration
from tests.unit.server.access.authentication.serving import Scene, play

from ostinato.server.access.authentication.settings import AuthenticationSettings

RECORDED: dict[str, Any] = json.loads((Path(__file__).parents[1] / "data/oidc.json").read_text())
TIME = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(\.\d+)? \+0000 UTC( m=\S+)?")

DIFFERENT = {
    "verified": "kube-apiserver cannot convert the list that split() gives; here it is a list of strings",
}
WORDED_OTHERWISE = {  # refused by both
    "plain with a number as sub",
    "mapped sub a number",
    "exp a string",
    "padded",
}


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    directory = tmp_path_factory.mktemp("oidc")
    told: dict[str, Any] = {}

    def settings(issuer: HttpsIssuer) -> AuthenticationSettings:
        file = directory / "config.yaml"
        file.write_text(json.dumps(configuration(issuer.url, issuer.authority.read_text())))
        return AuthenticationSettings(config=file)

    async def test(scene: Scene) -> None:
        await scene.ready()
        issuer = scene.other
        for name, token in cases(issuer.url, scene.now, issuer.keys[0], Key("two")):
            answer = json.dumps(await scene.review(token)).replace(str(issuer.port), "PORT")
            told[name] = json.loads(answer)

    play(directory, settings, test)
    return told


def test_every_recorded_case_is_tried(answers: dict[str, Any]) -> None:
    assert answers.keys() == RECORDED.keys()


@pytest.mark.parametrize("name", RECORDED)
def test_a_token_is_answered_as_kube_apiserver_does(answers: dict[str, Any], name: str) -> None:
    ours, theirs = answers[name], RECORDED[name]
    if name in DIFFERENT:
        assert ours != theirs
    elif name in WORDED_OTHERWISE:
        assert isinstance(ours, str)
        assert isinstance(theirs, str)
    elif isinstance(ours, str) and isinstance(theirs, str):
        assert TIME.sub("TIME", ours) == TIME.sub("TIME", theirs)
    else:
        assert ours == theirs
