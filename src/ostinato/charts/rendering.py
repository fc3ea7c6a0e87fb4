"""A chart with values, as the manifests of a release: what `helm template` and an installation begin with."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from ostinato.charts.capabilities import Capabilities
from ostinato.charts.chart import Chart, ChartError
from ostinato.charts.dependencies import compatible, resolve
from ostinato.charts.engine import Engine
from ostinato.charts.load.shell_match import BadPatternError, shell_match
from ostinato.charts.manifests import Hook, Manifest, sorted_manifests, split_documents
from ostinato.charts.objects import Release
from ostinato.charts.schema import check_schemas
from ostinato.charts.values.coalesce import coalesce
from ostinato.charts.values.documents import Values
from ostinato.gotemplate.library.text import SPACE

_NOTES: Final = "NOTES.txt"
_SOURCE: Final = re.compile("# Source: [^/]+/(.+)")
_RELEASE_NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_LONGEST_NAME: Final = 53


@dataclass(frozen=True, slots=True)
class Rendering:
    """The manifests in the order of installation, the hooks, the files of crds/ and the notes."""

    manifests: tuple[Manifest, ...]
    hooks: tuple[Hook, ...]
    crds: tuple[tuple[str, str], ...]  # path and text
    notes: str

    def text(self, *, include_crds: bool = False, hooks: bool = True, tests: bool = True) -> str:
        """Return the documents as `helm template` prints them."""
        crds = self.crds if include_crds else ()
        parts = [(path, text) for path, text in crds] + [(each.path, each.content) for each in self.manifests]
        made = _documents(parts).strip(SPACE) + "\n"
        if hooks:
            made += _documents((each.path, each.content) for each in self.hooks if tests or "test" not in each.events)
        return made

    def only(self, templates: Iterable[str], text: str) -> str:
        """Return the documents of some templates, by paths within the chart that may be patterns. Raises ChartError."""
        documents = split_documents(text)
        found: list[str] = []
        for pattern in templates:
            chosen = [each for each in documents if _is_of(pattern, each)]
            if not chosen:
                raise ChartError(f"could not find template {pattern} in chart")
            found += chosen
        return "".join(f"---\n{each}\n" for each in found)


def _documents(parts: Iterable[tuple[str, str]]) -> str:
    return "".join(f"---\n# Source: {path}\n{content}\n" for path, content in parts)


def _is_of(pattern: str, document: str) -> bool:
    source = _SOURCE.search(document)
    try:
        return source is not None and shell_match(pattern, source[1])
    except BadPatternError:
        return False


def render_chart(
    chart: Chart,
    values: Values,
    engine: Engine,
    release: Release,
    capabilities: Capabilities,
    *,
    check_schema: bool = True,
) -> Rendering:
    """Render a chart as Helm does for an installation. The chart and the values stay as they are. Raises ChartError."""
    if len(release.name) > _LONGEST_NAME or not _RELEASE_NAME.fullmatch(release.name):
        rule = f"it must be a DNS name in lower case of at most {_LONGEST_NAME} characters"
        raise ChartError(f'release name "{release.name}" is invalid: {rule}')
    if chart.is_library:
        raise ChartError("library charts are not installable")
    _check_dependencies(chart)
    made = resolve(chart, values)
    complete = coalesce(made, values)
    if check_schema:
        check_schemas(made, complete)
    required = made.metadata.kube_version
    if required and not compatible(required, capabilities.kube_version):
        version = capabilities.kube_version
        raise ChartError(f"chart requires kubeVersion: {required} which is incompatible with Kubernetes {version}")
    rendered = engine.render(made, complete, release, capabilities)
    notes = rendered.get(f"{made.name}/templates/{_NOTES}", "")
    hooks, manifests = sorted_manifests({path: text for path, text in rendered.items() if not path.endswith(_NOTES)})
    crds = tuple((path, each.text) for path, each in made.crds())
    return Rendering(tuple(manifests), tuple(hooks), crds, notes)


def _check_dependencies(chart: Chart) -> None:
    present = {each.name for each in chart.dependencies}
    missing = [each.name for each in chart.metadata.dependencies if each.name not in present]
    if missing:
        raise ChartError(
            "An error occurred while checking for chart dependencies. You may need to run `helm dependency build` to "
            f"fetch missing dependencies: found in Chart.yaml, but missing in charts/ directory: {', '.join(missing)}"
        )
