"""Charts from directories and archives."""

from ostinato.charts.load.load import load_chart, load_files

__all__ = ["load_chart", "load_files"]
