"""Entries of `watches.yaml` with a chart."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Any, Final, Literal

import msgspec

from ostinato.api.gvk import GroupVersionKind
from ostinato.charts import ChartError
from ostinato.frontends.charts.controller import ChartController
from ostinato.frontends.charts.options import DEFAULT_PERIOD, ChartOptions
from ostinato.frontends.charts.rendering import LoadedChart, values_of
from ostinato.frontends.watches.file import Entry, WatchOptions, field_error, period_of
from ostinato.gotemplate import TemplateError, Templates
from ostinato.gotemplate.library import sprig_functions
from ostinato.world import World

_VARIABLE: Final = re.compile(r"\$(?:\{([^}]*)\}|([A-Za-z_][A-Za-z0-9_]*))")


class _ChartEntry(msgspec.Struct, frozen=True, rename="camel"):
    version: str
    kind: str
    chart: str
    group: str | None = None
    watch_dependent_resources: bool | None = None
    override_values: dict[str, str] | None = None
    reconcile_period: str | None = None
    max_concurrent_reconciles: int | None = None
    dry_run_option: Literal["client", "server", "none", ""] | None = None
    selector: dict[str, Any] | None = None


def chart_controller(entry: Entry, options: WatchOptions) -> ChartController:
    """Return the controller of an entry. The CustomResourceDefinition is the user's."""
    entry.warn_unknown(_ChartEntry.__struct_encode_fields__)
    try:
        parsed = msgspec.convert(entry.content, _ChartEntry)
    except msgspec.ValidationError as error:
        raise entry.error(field_error(error)) from None
    gvk = GroupVersionKind(parsed.group or "", parsed.version, parsed.kind)
    overrides = _expanded(entry, parsed.override_values or {})
    path = entry.path(parsed.chart)
    if not (path / "Chart.yaml").is_file() and not path.is_file():
        raise entry.error(f"chart {path} was not found; it must be a directory with a Chart.yaml")
    try:
        values_of({}, overrides)
        return ChartController(
            gvk,
            LoadedChart(path),
            ChartOptions(
                overrides=overrides,
                selector=parsed.selector,
                reconcile_period=period_of(entry, parsed.reconcile_period, options, DEFAULT_PERIOD),
                watch_dependents=parsed.watch_dependent_resources is not False,
                dry_run="server" if parsed.dry_run_option == "server" else "client",
                workers=parsed.max_concurrent_reconciles or options.workers or 1,
            ),
            definitions=options.definitions_of(gvk),
        )
    except (ChartError, ValueError) as error:
        raise entry.error(str(error)) from None


def _expanded(entry: Entry, values: Mapping[str, str]) -> dict[str, str]:
    """Return override values with environment variables, unset ones empty, and templates of sprig's functions."""
    found = {}
    world = World.real()
    try:
        for name, value in values.items():
            text = _VARIABLE.sub(lambda match: os.environ.get(match[1] or match[2] or "", ""), value)
            if "{{" in text:
                templates = Templates(sprig_functions(world), name=name)
                try:
                    templates.parse(name, text)
                    text = templates.render(name, None)
                except TemplateError as error:
                    raise entry.error(f"overrideValues: {name}: {error}") from None
            found[name] = text
    finally:
        world.executor.close()
    return found
