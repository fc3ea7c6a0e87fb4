"""API servers under the same load, in alternation: what the sections of the API server share."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path

from bench.apiserver import Target, load
from bench.suite.context import Context

SECONDS, QUICK_SECONDS = 1.2, 0.4  # of a phase
LISTS = ("list", "list-changing", "list-protobuf", "list-protobuf-changing")
ORDER = ("create", "get", *LISTS, "update", "patch", "apply", "create-pod", "delete", "events")

Values = dict[str, dict[str, list[float]]]  # by contender and phase


def phases(keys: Iterable[str], prefix: str) -> list[str]:
    """Return the phases that rows need, in order; objects are created first in any case."""
    asked = {key.removeprefix(prefix) for key in keys} | {"create"}
    if "watch" in asked:
        asked.add("events")
    return [each for each in ORDER if each in asked]


def alternate(
    context: Context, program: Path, targets: dict[str, Target], chosen: Sequence[str], rounds: int = 0
) -> Values:
    """Measure each target in each round; a phase with errors raises."""
    values: Values = {name: defaultdict(list) for name in targets}
    seconds = QUICK_SECONDS if context.quick else SECONDS
    names = list(targets)
    for number in range(rounds or context.rounds):
        for name in names if number % 2 == 0 else reversed(names):
            options = (f"-phases={','.join(chosen)}", f"-namespace=round-{number}-{names.index(name)}")
            for result in load(program, targets[name], seconds, *options):
                phase = result["phase"]
                if result["errors"]:
                    raise RuntimeError(f"{name}: {phase}: {result['errors']} errors, such as {result['error'][:300]}")
                values[name][phase].append(_value(phase, result))
    return values


def _value(phase: str, result: dict[str, float]) -> float:
    if phase == "events":
        return result["p99_ms"]
    return result["megabytes_per_second" if phase.startswith("list") else "per_second"]
