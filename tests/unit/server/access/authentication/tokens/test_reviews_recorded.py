"""Answers of a token review backend are taken as kube-apiserver was recorded to take them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.unit.server.access.authentication.review_cases import CASES
from tests.unit.server.access.authentication.serving import Scene, play
from tests.unit.server.access.authentication.tokens.test_webhook_tokens import settings

RECORDED: dict[str, Any] = json.loads((Path(__file__).parents[1] / "data/reviews.json").read_text())

WORDED_OTHERWISE = {  # refused by both
    "another-kind",
    "another-version",
    "a-status",
    "authenticated-a-string",
    "not-json",
    "redirect",  # kube-apiserver follows it
}


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    directory, told = tmp_path_factory.mktemp("reviews"), {}

    async def test(scene: Scene) -> None:
        scene.other.reviews = CASES
        for token in CASES:
            told[token] = await scene.review(token)
        assert all(path.startswith("/review") for path in scene.other.asked)

    play(directory, lambda other: settings(other, directory), test)
    return told


@pytest.mark.parametrize("name", RECORDED)
def test_an_answer_is_taken_as_by_kube_apiserver(answers: dict[str, Any], name: str) -> None:
    if name in WORDED_OTHERWISE:
        assert isinstance(answers[name], str)
        assert isinstance(RECORDED[name], str)
    else:
        assert answers[name] == RECORDED[name]


def test_every_answer_is_tried(answers: dict[str, Any]) -> None:
    assert answers.keys() == RECORDED.keys() == CASES.keys()
