"""Explore the control plane: `python -m tests.explored.run [--worlds 300] [--budget 120] [--replay WORLD] [NAME...]`.

Prints a line for each scenario, and the report of each world that fails. Exits with 1 if there is one.

- `--each`: every kind of fault has its own exploration, of `--worlds` worlds.
- `--full PAIRS`: all single faults, without a limit of time, then so many pairs. A world that fails is printed as a
  line, to be replayed, and the exploration continues.
"""

from __future__ import annotations

import argparse
import sys
import time
from itertools import product

from ostinato.testing.explore.api import Explored, Options, run, subject_of
from ostinato.testing.explore.explorer import Explorer
from ostinato.testing.explore.faults.catalogue import KINDS
from ostinato.testing.explore.garbage import rare_collections
from tests.explored.plane import plane
from tests.explored.scenarios import PLACES, SCENARIOS, Scenario

# Objects of built-in kinds in other namespaces are the control plane's, too.
NOT_FAULTS = ("bystander",)


def explored(scenario: Scenario, replay: str = "", **options: object) -> Explored:
    return run(plane(scenario.controllers), scenario.steps, _options(scenario, **options), replay)


def fully_explored(name: str, pairs: int, seed: int) -> int:
    """Run all single faults of a scenario, and so many pairs; print those that fail, and return their number."""
    scenario = SCENARIOS[name]
    options = _options(scenario)
    began, failed = time.monotonic(), 0
    with rare_collections() as collects:
        subject = subject_of(plane(scenario.controllers), tuple(scenario.steps), options)
        explorer = Explorer(subject, seed=seed, without=options.without)
        first = explorer.prepare()
        failed += bool(first.problems)
        for outcome in [] if first.problems else explorer.worlds(sys.maxsize):
            collects()
            failed += bool(outcome.problems)
            if outcome.problems:
                print(f"failed: {outcome.plan}", *outcome.problems, sep="\n  ", flush=True)
            phase = explorer.coverage.phase
            if phase == "random" or (phase == "pairs" and explorer.coverage.worlds["pairs"] >= pairs):
                break
    print(f"{name:16} {time.monotonic() - began:.0f} s, {failed} failed: {explorer.coverage.lines()[0]}", flush=True)
    return failed


def _options(scenario: Scenario, **options: object) -> Options:
    without = options.pop("without", ())
    return Options(
        given=scenario.given,
        free=[*PLACES, *scenario.free],
        collects="garbage-collector-controller" not in scenario.controllers,
        without=[*NOT_FAULTS, *scenario.without, *without],  # type: ignore[misc]
        **options,  # type: ignore[arg-type]
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(SCENARIOS))
    parser.add_argument("--worlds", type=int, default=300)
    parser.add_argument("--budget", type=float, default=120.0, help="seconds for each scenario")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", action="append", default=[], metavar="FAULT")
    parser.add_argument("--without", action="append", default=[], metavar="FAULT")
    parser.add_argument("--replay", default="", metavar="WORLD")
    parser.add_argument("--each", action="store_true", help="explore each kind of fault alone")
    parser.add_argument("--full", type=int, metavar="PAIRS", help="all single faults, and so many pairs")
    options = parser.parse_args()
    wrong = 0
    if options.full is not None:
        wrong = sum(fully_explored(name, options.full, options.seed) for name in options.names or SCENARIOS)
        return min(wrong, 1)
    for name, only in product(
        options.names or SCENARIOS, [[kind] for kind in KINDS] if options.each else [options.only]
    ):
        if options.each and only[0] in {*NOT_FAULTS, *SCENARIOS[name].without, *options.without}:
            continue
        began = time.monotonic()
        found = explored(
            SCENARIOS[name],
            options.replay,
            worlds=options.worlds,
            budget=options.budget,
            seed=options.seed,
            only=only,
            without=options.without,
        )
        wrong += found.failed is not None
        what = f"{name} {only[0]}" if options.each else name
        print(f"{what:36} {found.worlds} worlds, {time.monotonic() - began:.0f} s", flush=True)
        if found.failed is not None:
            print(found.failed.text(), flush=True)
    return min(wrong, 1)


if __name__ == "__main__":
    sys.exit(main())
