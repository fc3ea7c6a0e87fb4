"""`ostinato score`: the scorecard of an operator."""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import Sequence
from typing import Literal

import msgspec

from ostinato.cli.commands.package import read_package
from ostinato.packaging.scorecard import SUITES, cluster_results, json_report, static_results, text_report


class ScoreOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Arguments of the command; see `ostinato score --help`."""

    files: Sequence[str] = ()
    overrides: str | None = None
    image: str = ""
    samples: str = "samples"
    suite: Sequence[str] = ()
    output: Literal["text", "json"] = "text"


def score(options: ScoreOptions) -> int:
    """Run the checks and print the report; return the exit code: 1 if a check failed."""
    suites = options.suite or SUITES
    package, program = read_package(options.files, options.overrides, options.image, options.samples)
    results = [each for each in static_results(package) if each.suite in suites]
    if "cluster" in suites:
        logging.getLogger("ostinato").setLevel(logging.CRITICAL)  # failures are part of the report
        results += asyncio.run(cluster_results(package, program.runnables))
    sys.stdout.write(json_report(results) if options.output == "json" else text_report(results))
    return 1 if any(each.state == "fail" for each in results) else 0
