"""Values of the user over the defaults of a chart and of the charts that it contains.

- The user's values win; maps are merged, lists and scalars replaced.
- `null` deletes a default.
- `global` of a parent is merged into that of each contained chart; the values of a contained chart are below its name.
- A map where the other side has none is skipped with a warning.
"""

from __future__ import annotations

import logging
from typing import Final

from ostinato.charts.chart import Chart, ChartError
from ostinato.charts.values.documents import Values, copied

_log: Final = logging.getLogger(__name__)


def coalesce(chart: Chart, values: Values | None, *, merge: bool = False) -> Values:
    """Return the values for a chart. `merge` keeps nulls, to merge once more later."""
    return _chart(chart, copied(values or {}), "", merge=merge)


def coalesce_tables(into: Values, defaults: Values, prefix: str = "", *, merge: bool = False) -> Values:
    """Add to a map what only the other one has, in place."""
    deleted = {key for key, value in into.items() if value is None}
    for key in list(defaults):
        full = f"{prefix}.{key}" if prefix else key
        default = defaults[key]
        if key in deleted:
            if default is not None and not merge:
                del into[key]
        elif key not in into:
            into[key] = default
        elif isinstance(default, dict):
            if isinstance(into[key], dict):
                coalesce_tables(into[key], default, full, merge=merge)
            else:
                _log.warning("cannot overwrite table with non table key=%s", full)
        elif isinstance(into[key], dict) and default is not None:
            _log.warning("destination is a table; ignoring non-table value key=%s", full)
    return into


def _chart(chart: Chart, values: Values, prefix: str, *, merge: bool) -> Values:
    path = f"{prefix}.{chart.name}" if prefix else chart.name
    _defaults(chart, values, path, merge=merge)
    for contained in chart.dependencies:
        below = values.setdefault(contained.name, {})
        if not isinstance(below, dict):
            raise ChartError(f"type mismatch on {contained.name}: the values of a chart must be a map, got {below!r}")
        _globals(below, values, path)
        values[contained.name] = _chart(contained, below, path, merge=merge)
    return values


def _defaults(chart: Chart, values: Values, path: str, *, merge: bool) -> None:
    contained = {each.name for each in chart.dependencies}
    for key, default in copied(chart.values).items():
        if key not in values:
            values[key] = default
        elif values[key] is None:
            if not merge:
                del values[key]
        elif isinstance(values[key], dict):
            if isinstance(default, dict):
                coalesce_tables(values[key], default, f"{path}.{key}", merge=merge or key in contained)
            elif default is not None:
                _log.warning("skipped value: not a table key=%s", f"{path}.{key}")


def _globals(into: Values, parent: Values, path: str) -> None:
    own, given = into.get("global", {}), parent.get("global", {})
    if not isinstance(own, dict) or not isinstance(given, dict):
        _log.warning("skipped globals: not a table chart=%s", path)
        return
    for key, value in given.items():
        if isinstance(value, dict):
            made = dict(value)
            if key not in own:
                own[key] = made
            elif isinstance(own[key], dict):
                own[key] = coalesce_tables(made, own[key], f"{path}.{key}", merge=True)
            else:
                _log.warning("cannot merge map onto non-map; skipped key=%s", key)
        elif isinstance(own.get(key), dict):
            _log.warning("key is table; skipped key=%s", key)
        else:
            own[key] = value
    into["global"] = own
