"""`ostinato chart run`: run a chart as an operator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from ostinato.api.time import Duration, TimeError
from ostinato.charts import ChartError
from ostinato.cli.commands.run import RunOptions, run_front_end
from ostinato.cli.error import CommandError
from ostinato.frontends.charts import Chart, ChartController


class ChartRunCommand(msgspec.Struct, frozen=True, kw_only=True):
    """Arguments of the command; see `ostinato chart run --help`."""

    chart: str
    kind: str
    group: str
    api_version: str = "v1"
    no_definition: bool = False
    override: Sequence[str] = ()
    wait: str = ""
    reconcile_period: str = "1m"
    max_history: int = 10
    workers: int = 1


def run_chart(options: ChartRunCommand, run: Mapping[str, Any]) -> None:
    """Run until SIGTERM or SIGINT. `run`: the arguments that it has in common with `ostinato run`."""
    controller = _controller(options)
    run_front_end(RunOptions(files=[options.chart], **run), lambda: [controller])


def _controller(options: ChartRunCommand) -> ChartController:
    try:
        return Chart(options.chart).for_kind(
            options.kind,
            group=options.group,
            version=options.api_version,
            define=not options.no_definition,
            overrides=_overrides(options.override),
            wait=_seconds("--wait", options.wait),
            reconcile_period=_seconds("--reconcile-period", options.reconcile_period),
            max_history=options.max_history,
            workers=options.workers,
        )
    except (ChartError, ValueError) as error:
        raise CommandError(str(error)) from None


def _overrides(given: Sequence[str]) -> dict[str, str]:
    found = {}
    for each in given:
        path, equals, value = each.partition("=")
        if not equals or not path:
            raise CommandError(f"--override {each}: use PATH=VALUE, such as image.tag=v2")
        found[path] = value
    return found


def _seconds(option: str, text: str) -> float:
    try:
        return Duration.parse(text).seconds if text else 0.0
    except TimeError as error:
        raise CommandError(f"{option}: {error}; write a duration such as 30s or 1h") from None
