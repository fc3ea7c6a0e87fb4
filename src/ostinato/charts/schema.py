"""values.schema.json of charts."""

from __future__ import annotations

from ostinato.charts.chart import Chart
from ostinato.charts.values.documents import Values


def check_schemas(chart: Chart, values: Values) -> None:
    """Check the values of a chart, and those of the charts that it contains. Raises ChartError."""
