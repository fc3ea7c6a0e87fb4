"""Values: read from files and `--set` options, merged with the defaults of charts."""

from ostinato.charts.values.options import ValueOptions

__all__ = ["ValueOptions"]
