"""Helm's template engine: the templates of a chart and of those that it contains, rendered together.

- All templates share their named templates; of two with the same name, that of the parent chart wins.
- Values are shared too: what one template changes with `set`, the next one sees.
- A missing key is empty. `include`, `tpl`, `required`, `fail` and `lookup` are those of Helm.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from ostinato.charts.capabilities import Capabilities
from ostinato.charts.chart import Chart, ChartError
from ostinato.charts.objects import Files, Release, ValuesMap, chart_value
from ostinato.charts.values.documents import Values
from ostinato.gotemplate import ExecutionError, Function, ParseError, State, TemplateError, Templates
from ostinato.gotemplate.library import helm_functions
from ostinato.gotemplate.strings import quote
from ostinato.world import World

Lookup = Callable[[str, str, str, str], dict[str, Any]]  # apiVersion, kind, namespace, name

_NAME: Final = "gotpl"
_NO_VALUE: Final = "<no value>"
_DEEPEST: Final = 1000  # inclusions of a template in itself
_KEPT: Final = 8  # sets of parsed templates
_WRAPPED: Final = re.compile("HELM_ERR_START(.*)HELM_ERR_END", re.DOTALL)


@dataclass(frozen=True, slots=True)
class _Source:
    text: str
    data: ValuesMap
    base_path: str


class Engine:
    """Renders charts. Times and random values are of the world; `lookup` reads objects of a cluster.

    An engine keeps the parsed templates of the last charts: rendering one again takes a tenth of the time.
    """

    def __init__(self, world: World, *, lookup: Lookup | None = None) -> None:
        functions = helm_functions(world) | {
            "include": Function(_include, ["string", "interface {}"], wants_state=True),
            "tpl": Function(_tpl, ["string", "interface {}"], wants_state=True),
            "required": Function(_required, ["string", "interface {}"]),
            "fail": Function(_fail, ["string"]),
            "lookup": Function(lookup or _no_object, ["string"] * 4),
        }
        self._templates = Templates(functions, missing_key="zero", name=_NAME)
        self._parsed: dict[tuple[tuple[str, str], ...], Templates] = {}  # by paths and texts, the oldest first

    def render(self, chart: Chart, values: Values, release: Release, capabilities: Capabilities) -> dict[str, str]:
        """Return the output of each template, by its path. `values` are complete, and changed. Raises ChartError."""
        sources: dict[str, _Source] = {}
        shared = {"Release": release.value(), "Capabilities": capabilities.value()}
        _collect(chart, ValuesMap(values), shared, sources)
        order = sorted(sources, key=lambda path: (path.count("/"), path), reverse=True)
        templates = self._parsed_set(tuple((path, sources[path].text) for path in order))
        return {path: self._rendered(templates, path, sources[path]) for path in order if not _is_partial(path)}

    def _parsed_set(self, texts: tuple[tuple[str, str], ...]) -> Templates:
        """Return the templates of paths and texts; later ones replace named templates of earlier ones."""
        found = self._parsed.get(texts)
        if found is not None:
            return found
        templates = self._templates.copy()
        for path, text in texts:
            try:
                templates.parse(path, text)
            except ParseError as error:
                raise ChartError(_parse_problem(path, str(error))) from None
        while len(self._parsed) >= _KEPT:
            self._parsed.pop(next(iter(self._parsed)), None)  # several threads may render
        self._parsed[texts] = templates
        return templates

    def _rendered(self, templates: Templates, path: str, source: _Source) -> str:
        source.data["Template"] = ValuesMap({"Name": path, "BasePath": source.base_path})
        try:
            return templates.render(path, source.data, context={}).replace(_NO_VALUE, "")
        except TemplateError as error:
            raise ChartError(_execution_problem(str(error))) from None


def _collect(chart: Chart, values: Values, shared: dict[str, Any], sources: dict[str, _Source]) -> ValuesMap:
    subcharts: dict[str, Any] = {}
    files = Files.of(chart.files)
    data = ValuesMap({"Chart": chart_value(chart), "Files": files, **shared, "Values": values, "Subcharts": subcharts})
    for each in chart.dependencies:
        below = values.get(each.name)
        subcharts[each.name] = _collect(each, below if isinstance(below, dict) else {}, shared, sources)
    for template in chart.templates:
        if not chart.is_library or _is_partial(template.name):
            path = f"{chart.full_path}/{template.name}"
            sources[path] = _Source(template.text, data, f"{chart.full_path}/templates")
    return data


def _is_partial(path: str) -> bool:
    return path.rpartition("/")[2].startswith("_")


def _parse_problem(path: str, message: str) -> str:
    parts = message.split(": ")
    return f"parse error in ({path}): {message}" if len(parts) == 1 else f"parse error at ({parts[1]}): {parts[-1]}"


def _execution_problem(message: str) -> str:
    parts = message.split(": ", 2)
    if len(parts) == 3:
        found = _WRAPPED.search(parts[2])
        if found is not None:
            return f"execution error at ({parts[1]}): {found[1]}"
    return message


def _include(state: State, name: str, data: Any) -> str:
    counts: dict[str, int] = state.context
    if counts.get(name, 0) > _DEEPEST:
        raise TemplateError(f"rendering template has a nested reference name: {name}: unable to execute template")
    counts[name] = counts.get(name, 0) + 1
    try:
        return state.render(name, data)
    finally:
        counts[name] -= 1


def _tpl(state: State, text: str, data: Any) -> str:
    try:
        return state.render_text(_NAME, text, data).replace(_NO_VALUE, "")
    except ParseError as error:
        raise ExecutionError(f"cannot parse template {quote(text)}: {error}") from None
    except ExecutionError as error:
        raise ExecutionError(f"error during tpl function execution for {quote(text)}: {error}") from None


def _required(message: str, value: Any) -> Any:
    if value is None or value == "":
        raise TemplateError(f"HELM_ERR_START{message}HELM_ERR_END")
    return value


def _fail(message: str) -> str:
    raise TemplateError(f"HELM_ERR_START{message}HELM_ERR_END")


def _no_object(_version: str, _kind: str, _namespace: str, _name: str) -> dict[str, Any]:
    return {}
