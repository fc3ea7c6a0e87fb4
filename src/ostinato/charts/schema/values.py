"""The schemas of a chart and of the charts that it contains."""

from __future__ import annotations

import json

from ostinato.charts.chart import Chart, ChartError
from ostinato.charts.schema.check import Schema
from ostinato.charts.values.documents import Values
from ostinato.gotemplate.values import go_type


def check_schemas(chart: Chart, values: Values) -> None:
    """Check the values of a chart, and those of the charts that it contains. Raises ChartError."""
    problems = _problems(chart, values)
    if problems:
        head = "values don't meet the specifications of the schema(s) in the following chart(s):"
        raise ChartError(f"{head}\n{problems}")


def _problems(chart: Chart, values: Values) -> str:
    made = ""
    if chart.schema is not None:
        try:
            found = Schema(json.loads(chart.schema)).problems(values)
        except (ValueError, RecursionError) as error:
            found = f"values.schema.json: {error}"
        if found:
            made += f"{chart.name}:\n{found}\n"
    for each in chart.dependencies:
        below = values.get(each.name)
        if isinstance(below, dict):
            made += _problems(each, below)
        elif below is not None:
            made += f"{each.name}:\ninvalid type for values: expected object (map), got {go_type(below)}\n"
    return made
