"""Explore the zoo: `python -m tests.zoo.run [--worlds 2000] [--repaired-only | --buggy-only] [NAME...]`.

Prints a line for each animal: the world in which its bug was found, the fault, the time; and the worlds that its
repaired twin has survived. Exits with 1 if a bug was not found within ten seconds of CPU time, or a twin failed.
"""

from __future__ import annotations

import argparse
import os
import sys

from ostinato.testing.explore.api import Explored, Options, run
from tests.zoo.animals import Animal
from tests.zoo.collection import ANIMALS

SECONDS = 10.0


def explored(animal: Animal, operator: object, worlds: int, replay: str = "") -> Explored:
    options = Options(worlds=worlds, external=animal.external, **animal.options)
    return run(operator, animal.steps, options, replay)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--worlds", type=int, default=2000, help="of each repaired twin")
    parser.add_argument("--most", type=int, default=1000, help="worlds in which a bug has to be found")
    parser.add_argument("--buggy-only", action="store_true")
    parser.add_argument("--repaired-only", action="store_true")
    parser.add_argument("--verbose", action="store_true", help="print the report of each failed world")
    options = parser.parse_args()
    wrong = 0
    for name in options.names or ANIMALS:
        animal = ANIMALS[name]
        if not options.repaired_only:
            began = _cpu_seconds()
            found = explored(animal, animal.buggy, options.most)
            seconds = _cpu_seconds() - began
            fails = found.failed is None or seconds > SECONDS
            wrong += fails
            print(f"{name:30} {_outcome(found):110} {seconds:5.1f} s{'  WRONG' if fails else ''}", flush=True)
            if options.verbose and found.failed is not None:
                print(found.failed.text())
        if not options.buggy_only:
            began = _cpu_seconds()
            found = explored(animal, animal.repaired, options.worlds)
            seconds = _cpu_seconds() - began
            wrong += found.failed is not None
            mark = "  WRONG" if found.failed is not None else ""
            print(f"{name + ', repaired':30} {_outcome(found):110} {seconds:5.1f} s{mark}", flush=True)
            if options.verbose and found.failed is not None:
                print(found.failed.text())
    return min(wrong, 1)


def _cpu_seconds() -> float:
    """Return the CPU time of this process and its copies."""
    used = os.times()
    return used.user + used.system + used.children_user + used.children_system


def _outcome(found: Explored) -> str:
    if found.failed is None:
        return f"{found.worlds} worlds survived"
    outcome = found.failed.outcome
    return f"world {found.failed.world}: {outcome.problems[0].oracle}: {outcome.plan}"[:110]


if __name__ == "__main__":
    sys.exit(main())
