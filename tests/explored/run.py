"""Explore the control plane: `python -m tests.explored.run [--worlds 300] [--budget 120] [--replay WORLD] [NAME...]`.

Prints a line for each scenario, and the report of each world that fails. Exits with 1 if there is one. With `--each`,
every kind of fault has its own exploration, of `--worlds` worlds.
"""

from __future__ import annotations

import argparse
import sys
import time
from itertools import product

from ostinato.testing.explore.api import Explored, Options, run
from ostinato.testing.explore.faults.catalogue import KINDS
from tests.explored.plane import plane
from tests.explored.scenarios import PLACES, SCENARIOS, Scenario


def explored(scenario: Scenario, replay: str = "", **options: object) -> Explored:
    chosen = Options(
        given=scenario.given,
        free=[*PLACES, *scenario.free],
        collects="garbage-collector-controller" not in scenario.controllers,
        **options,  # type: ignore[arg-type]
    )
    return run(plane(scenario.controllers), scenario.steps, chosen, replay)


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
    options = parser.parse_args()
    wrong = 0
    kinds = [[name] for name in KINDS if name not in options.without] if options.each else [options.only]
    for name, only in product(options.names or SCENARIOS, kinds):
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
