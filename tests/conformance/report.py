"""Results of a run: a file with counts and the failed specs, which the documentation quotes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.conformance.specs import Outcome
from tests.conformance.suite import VERSION


class ResultFile:
    """The results of a run, a line of JSON each: an interrupted run continues with the specs that are missing."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def passed(self) -> dict[str, Outcome]:
        """Return the results of specs that passed."""
        lines = self._path.read_text().splitlines() if self._path.exists() else []
        results = {each.pop("name"): Outcome(**each) for each in map(json.loads, lines)}
        return {name: each for name, each in results.items() if each.has_passed}

    def add(self, name: str, outcome: Outcome) -> None:
        with self._path.open("a") as file:
            file.write(json.dumps({"name": name, **asdict(outcome)}) + "\n")


def summary(results: Mapping[str, Outcome]) -> str:
    passed = sum(each.has_passed for each in results.values())
    return f"{passed} of {len(results)} specs passed"


def write_report(path: Path, cluster: str, command: str, results: Mapping[str, Outcome]) -> None:
    """Replace the entry of a kind of cluster in the file."""
    content: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
    content[cluster] = {
        "suite": VERSION,
        "date": datetime.now(UTC).date().isoformat(),
        "command": command,
        "specs": len(results),
        "passed": sum(each.has_passed for each in results.values()),
        "failed": {name: first_line(each) for name, each in sorted(results.items()) if not each.has_passed},
    }
    path.write_text(json.dumps(content, indent=1, sort_keys=True) + "\n")


def first_line(outcome: Outcome) -> str:
    text = outcome.message.partition("\n")[0][:200]
    return f"{outcome.state}: {text}" if text else outcome.state
