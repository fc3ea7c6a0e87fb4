"""Controllers of charts, for `Manager.add` and `ostinato run`.

nginx = Chart("charts/nginx").for_kind("Nginx", group="example.com")
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from ostinato.api import accessors as access
from ostinato.api.gvk import GroupVersionKind
from ostinato.api.object import KindInfo, plural_of
from ostinato.api.selectors.labels import from_label_selector
from ostinato.charts import ChartError
from ostinato.client.views import Unstructured
from ostinato.controllers.controller import Controller
from ostinato.controllers.options import ControllerOptions
from ostinato.controllers.sources.handlers import ForObject
from ostinato.controllers.sources.kind import KindOptions, KindSource
from ostinato.controllers.sources.predicates import EventFunction, annotation_changed, generation_changed, having_labels
from ostinato.crd.rbac import Access
from ostinato.frontends.charts.deciding import ChartDecider
from ostinato.frontends.charts.definition import definition_of
from ostinato.frontends.charts.manifests import ManifestError
from ostinato.frontends.charts.options import ChartOptions
from ostinato.frontends.charts.reconciler import ChartReconciler
from ostinato.frontends.charts.rendering import LoadedChart
from ostinato.frontends.kernel.sync import Decider
from ostinato.frontends.watches.dependents import Dependents
from ostinato.kinds.builtin import builtin_scheme
from ostinato.kinds.index import MODULES
from ostinato.world import World

Json = dict[str, Any]

_RECORDS: Final = Access(groups=("",), resources=("secrets",), verbs=("get", "list", "create", "update", "delete"))
_DEFINITIONS: Final = Access(
    groups=("apiextensions.k8s.io",), resources=("customresourcedefinitions",), verbs=("get", "list", "watch", "create")
)
_logger = logging.getLogger("ostinato.frontends.charts")


class ChartController(Controller):
    def __init__(
        self,
        gvk: GroupVersionKind,
        chart: LoadedChart,
        options: ChartOptions,
        *,
        definitions: Sequence[Json] | None = None,
        access: Iterable[Access] = (),
    ) -> None:
        """
        - `definitions`: CustomResourceDefinitions that it brings. Defaults to None: one derived from the values.
        - `access`: permissions beyond those for the kinds that the chart gives with its default values; for manifests.
        """
        view = Unstructured(gvk, _guessed(gvk)) if definitions is None else Unstructured(gvk)
        self.chart = chart
        self.chart_options = options
        self._dependents = Dependents(self, gvk)
        if definitions is None:
            description = chart.chart.metadata.description or f"A release of the chart {chart.name}."
            definitions = [definition_of(gvk, chart.schema, chart.chart.values, description=description)]
        self.definitions = tuple(definitions)
        needed = [_RECORDS, *access]
        if next(chart.chart.crds(), None) is not None:
            needed.append(_DEFINITIONS)
        super().__init__(
            f"{gvk.kind.lower()}-controller",
            ChartReconciler(view, chart, options, lambda: self._dependents),
            view=view,
            owned=[Unstructured(each.gvk, each) for each in _kinds_of(chart)],
            sources=[KindSource(view, ForObject(), KindOptions(predicates=_predicates(options)))],
            options=ControllerOptions(max_concurrent=options.workers, error_conditions=False),
            access=needed,
        )

    def deciders(self) -> Mapping[str, Decider]:
        """Return the rendering, to replay recordings."""
        return {self.name: ChartDecider(self.chart)}


class Chart:
    """A chart directory or archive."""

    def __init__(self, path: str | Path) -> None:
        self._chart = LoadedChart(path)

    def for_kind(
        self,
        kind: str,
        *,
        group: str,
        version: str = "v1",
        define: bool = True,
        access: Iterable[Access] = (),
        **options: Any,
    ) -> ChartController:
        """Return a controller that keeps a release for each object of a kind. Options are those of `ChartOptions`.

        `define`: bring a CustomResourceDefinition that is derived from the values. Defaults to True.
        """
        unknown = set(options).difference(ChartOptions.__struct_fields__)
        if unknown:
            known = ", ".join(ChartOptions.__struct_fields__)
            raise TypeError(f"for_kind() has no option {min(unknown)!r}; options are {known}")
        gvk = GroupVersionKind(group, version, kind)
        definitions = None if define else ()
        return ChartController(gvk, self._chart, ChartOptions(**options), definitions=definitions, access=access)


def _kinds_of(chart: LoadedChart) -> list[KindInfo]:
    """Return the kinds that the chart gives with its default values, and those that its templates name."""
    found = {gvk for version, kind in chart.declared() if (gvk := _kind_named(version, kind)) is not None}
    world = World.real()
    try:
        found |= {access.gvk(each) for each in chart.defaults(world)}
    except (ChartError, ManifestError) as error:
        text = "chart cannot be rendered with its defaults, permissions may be missing chart=%s error=%s"
        _logger.warning(text, chart.name, error)
    finally:
        world.executor.close()
    scheme = builtin_scheme()
    return [scheme.info(gvk) if scheme.recognizes(gvk) else _guessed(gvk) for gvk in sorted(found)]


def _kind_named(version: str, kind: str) -> GroupVersionKind | None:
    """Return a kind by its apiVersion; without one, the built-in kind of this name, if there is one in one group."""
    if version:
        return GroupVersionKind.of(version, kind)
    known = [GroupVersionKind(*each) for each in MODULES if each[2] == kind]
    return known[0] if len({each.group for each in known}) == 1 else None


def _guessed(gvk: GroupVersionKind) -> KindInfo:
    return KindInfo(gvk, plural_of(gvk.kind), gvk.kind.lower(), namespaced=True)


def _predicates(options: ChartOptions) -> tuple[EventFunction, ...]:
    found: list[EventFunction] = [generation_changed | annotation_changed]
    if options.selector:
        found.append(having_labels(from_label_selector(options.selector)))
    return tuple(found)
