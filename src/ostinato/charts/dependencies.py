"""Which contained charts a set of values enables, under which names, and which of their values the parent imports."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import Any, Final

from ostinato.charts.chart import Chart
from ostinato.charts.metadata import Dependency
from ostinato.charts.values.coalesce import coalesce, coalesce_tables
from ostinato.charts.values.documents import Values, copied, path_value, table
from ostinato.gotemplate.fmt import sprint
from ostinato.gotemplate.library.semver import SemverError, satisfies

_log: Final = logging.getLogger(__name__)


def resolve(chart: Chart, values: Values) -> Chart:
    """Return a copy of a chart: disabled charts removed, aliases applied, values imported into the defaults."""
    made = chart.copy()
    _enable(made, values, "")
    _import_values(made)
    return made


def compatible(constraint: str, version: str) -> bool:
    """Whether a version is in a range; an invalid range or version is not."""
    try:
        return satisfies(constraint, version)
    except SemverError:
        return False


def _enable(chart: Chart, values: Values, path: str) -> None:
    wanted = chart.metadata.dependencies
    if not wanted:
        return
    undeclared = [each for each in chart.dependencies if not any(_is_meant(one, each) for one in wanted)]
    declared = []
    for each in wanted:
        found = next((one for one in chart.dependencies if _is_meant(each, one)), None)
        if found is not None:
            name = each.alias or found.name
            declared.append(replace(found, metadata=replace(found.metadata, name=name)))
        each.name = each.alias or each.name
        each.enabled = True
    chart.adopt(undeclared + declared)
    given = coalesce(chart, values)
    _apply_tags(wanted, given)
    _apply_conditions(wanted, given, path)
    disabled = {each.name for each in wanted if not each.enabled}
    kept = [each for each in chart.dependencies if each.name not in disabled]
    for child in kept:
        _enable(child, given, f"{path}{child.name}.")
    chart.metadata.dependencies = [each for each in wanted if each.name not in disabled]
    chart.adopt(kept)


def _is_meant(dependency: Dependency, chart: Chart) -> bool:
    return dependency.name == chart.name and compatible(dependency.version, chart.metadata.version)


def _apply_tags(wanted: list[Dependency], values: Values) -> None:
    tags = table(values, "tags")
    if tags is None:
        return
    for each in wanted:
        set_tags = [tags[tag] for tag in each.tags if tag in tags]
        for tag in set_tags:
            if not isinstance(tag, bool):
                _log.warning("tag is not a boolean chart=%s value=%r", each.name, tag)
        each.enabled = True in set_tags or False not in set_tags


def _apply_conditions(wanted: list[Dependency], values: Values, path: str) -> None:
    for each in wanted:
        for condition in each.condition.strip().split(","):
            found = path_value(values, path + condition) if condition else None
            if isinstance(found, bool):
                each.enabled = found
                break
            if found is not None:
                _log.warning("condition is not a boolean path=%s chart=%s", condition, each.name)


def _import_values(chart: Chart) -> None:
    for contained in chart.dependencies:
        _import_values(contained)
    if not chart.metadata.dependencies:
        return
    values = coalesce(chart, None, merge=True)
    imported: Values = {}
    for each in chart.metadata.dependencies:
        for entry in each.import_values:
            child, parent = _import_paths(entry)
            if child is None:
                continue
            found = table(values, f"{each.name}.{child}")
            if found is None:
                _log.warning("import-values: no such table chart=%s path=%s", each.name, child)
                continue
            imported = coalesce_tables(imported, _below(parent, found), merge=True)
        each.import_values = [
            {"child": child, "parent": parent} for child, parent in map(_import_paths, each.import_values) if child
        ]
    chart.values = coalesce_tables(copied(values), imported, merge=True)


def _import_paths(entry: Any) -> tuple[str | None, str]:
    if isinstance(entry, str):
        return f"exports.{entry}", "."
    if isinstance(entry, dict):
        return sprint(entry.get("child")), sprint(entry.get("parent"))
    return None, "."


def _below(path: str, values: Values) -> Values:
    if path != ".":
        for key in reversed(path.split(".")):
            values = {key: values}
    return values
