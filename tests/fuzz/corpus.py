"""Requests that are right, to begin with: the steps of the recorded conversations, in order."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import yaml

SCENARIOS = Path(__file__).parents[1] / "contract" / "api" / "scenarios"
_PATCHES = {
    "json": "application/json-patch+json",
    "merge": "application/merge-patch+json",
    "strategic": "application/strategic-merge-patch+json",
    "apply": "application/apply-patch+yaml",
}
_METHODS = ("get", "post", "put", "patch", "delete", "head", "options", "watch")
_MOST = 20_000  # bytes of a body: larger ones are about size


class Step(NamedTuple):
    """One request. `body` is a JSON value, or text that is sent as it is; `media` is "" without a body."""

    method: str
    target: str
    media: str
    body: Any


class Scenario(NamedTuple):
    name: str
    steps: tuple[Step, ...]


@functools.cache
def scenarios() -> tuple[Scenario, ...]:
    """In the order of their files; each has a namespace of its own, by its number."""
    found: list[Scenario] = []
    for file in sorted(SCENARIOS.glob("*.yaml")):
        for scenario in yaml.load(file.read_text(), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)):
            steps = tuple(_steps(scenario["steps"], f"fuzz-{len(found)}"))
            if steps:
                found.append(Scenario(f"{file.stem}: {scenario['name']}", steps))
    return tuple(found)


def _steps(steps: list[dict[str, Any]], namespace: str) -> Iterator[Step]:
    for step in steps:
        method = next((each for each in _METHODS if each in step), None)
        if method is None:
            continue
        body, kind = step.get("body"), step.get("type", "")
        media = "" if body is None else _PATCHES.get(kind, kind) or "application/json"
        text = json.dumps([step[method], body], default=str).replace("${ns}", namespace)
        target, body = json.loads(re.sub(r"\$\{\w+\}", "a", text))
        if len(text) > _MOST:
            continue
        if method == "watch":
            method, target = "get", target + ("&" if "?" in target else "?") + "watch=1"
        yield Step(method.upper(), target, media, body)
