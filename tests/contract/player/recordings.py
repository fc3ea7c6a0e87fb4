"""Recordings: scenarios with the answers of the real components, and their comparison."""

from __future__ import annotations

import difflib
import json
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Final

import yaml

from tests.contract.player.paths import Json, Object

CONTRACT: Final = Path(__file__).resolve().parent.parent
Answers = dict[str, Json]  # by number and verb of the step: "3 show"


@dataclass(frozen=True, eq=False)
class Scenario:
    file: str  # without its suffix: the group in counts.json
    name: str
    script: Object = field(repr=False)
    manifests: Object = field(repr=False)
    expected: Answers = field(repr=False)

    @property
    def has_nodes(self) -> bool:
        """Whether it has its own nodes, possibly none, and needs the server for itself."""
        return "nodes" in self.script

    def compare(self, answers: Answers) -> tuple[int, str]:
        """The number of answers that are as recorded, without unexpected ones; and the differences."""
        good, differences = 0, []
        for step in sorted({*self.expected, *answers}, key=lambda step: int(step.split()[0])):
            want, got = self.expected.get(step), answers.get(step)
            if want == got:
                good += 1
                continue
            good -= step not in self.expected
            a, b = (json.dumps(value, indent=1, sort_keys=True).splitlines() for value in (want, got))
            differences.append(f"--- {self.file}: {self.name}, step {step}")
            differences += difflib.unified_diff(a, b, "recorded", "this cluster", n=2, lineterm="")
        return good, "\n".join(differences)


def files(of: str) -> list[str]:
    """The groups of `plane` or `node`."""
    return [file.stem for file in sorted((CONTRACT / of / "scenarios").glob("*.yaml"))]


@cache
def scenarios(of: str, file: str) -> list[Scenario]:
    """The scenarios of a group, each with its recording."""
    content = yaml.safe_load((CONTRACT / of / "scenarios" / f"{file}.yaml").read_text())
    found = []
    for script in content["scenarios"]:
        recorded = CONTRACT / of / "recorded" / file / f"{script['name'].replace(' ', '-')}.json"
        expected = json.loads(recorded.read_text())
        found.append(Scenario(file, script["name"], script, content.get("manifests", {}), expected))
    return found
