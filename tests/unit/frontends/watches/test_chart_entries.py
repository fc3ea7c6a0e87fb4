"""watches.yaml with charts, alone and beside roles."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.unit.frontends.charts.stage import CONFIG_MAP, conditions, make_chart

from ostinato.client import Client, Unstructured
from ostinato.frontends.charts import ChartController
from ostinato.frontends.charts.definition import definition_of
from ostinato.frontends.roles import RoleController
from ostinato.frontends.watches import WatchesError, WatchOptions, load_watches
from ostinato.testing import ClusterManager, VirtualClock


def make(directory: Path, text: str) -> Path:
    make_chart(directory / "helm-charts")
    file = directory / "watches.yaml"
    file.write_text(text)
    return file


WHOLE = """
- group: example.com
  version: v1
  kind: Shop
  chart: helm-charts/shop
  overrideValues: {motto: "$MOTTO-${UNSET}x", feature.name: '{{ "NAME" | lower }}'}
  watchDependentResources: false
  reconcilePeriod: 30s
  maxConcurrentReconciles: 3
  dryRunOption: server
  selector: {matchLabels: {a: b}}
- {group: example.com, version: v1, kind: Market, role: market}
"""


def test_all_fields_are_read_and_a_file_may_have_both_forms(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MOTTO", "cheap $MOTTO")
    (tmp_path / "roles" / "market").mkdir(parents=True)
    chart, role = load_watches(make(tmp_path, WHOLE))
    assert isinstance(chart, ChartController)
    assert isinstance(role, RoleController)
    options = chart.chart_options
    assert options.overrides == {"motto": "cheap $MOTTO-x", "feature.name": "name"}
    assert (options.watch_dependents, options.reconcile_period, options.workers) == (False, 30.0, 3)
    assert (options.dry_run, options.selector) == ("server", {"matchLabels": {"a": "b"}})
    assert chart.definitions == ()


async def test_a_chart_of_a_file_is_released(
    tmp_path: Path, manager: ClusterManager, client: Client, clock: VirtualClock
) -> None:
    file = make(tmp_path, "- {group: example.com, version: v1, kind: Shop, chart: helm-charts/shop}")
    plain = load_watches(file)[0].view
    assert plain is not None
    definition = definition_of(plain.gvk, None, {})
    await manager.start(*load_watches(file, WatchOptions(definitions=(definition,))))
    await client.create(
        {"apiVersion": "example.com/v1", "kind": "Shop", "metadata": {"name": "a"}, "spec": {"motto": "x"}}
    )
    await clock.advance(1)
    assert (await client.get(CONFIG_MAP, "a-config"))["data"]["motto"] == "x"
    found = await client.get(Unstructured.of("example.com/v1", "Shop"), "a")
    assert conditions(found)["Deployed"]["status"] == "True"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("- {version: v1, kind: A, chart: gone}", ", line 1: chart "),
        (
            "- {version: v1, kind: A, chart: helm-charts/shop, overrideValues: {a: '{{ nope }}'}}",
            ', line 1: overrideValues: a: template: a:1: function "nope" not defined',
        ),
        (
            "- {version: v1, kind: A, chart: helm-charts/shop, overrideValues: {'a[x]': b}}",
            ", line 1: override value 'a[x]': ",
        ),
        (
            "- {version: v1, kind: A, chart: helm-charts/shop, dryRunOption: maybe}",
            ", line 1: dryRunOption: invalid enum value 'maybe'",
        ),
        (
            "- {version: v1, kind: A, chart: helm-charts/shop, overrideValues: {a: 1}}",
            ", line 1: overrideValues[...]: expected `str`, got `int`",
        ),
    ],
)
def test_errors_name_the_line_and_the_field(tmp_path: Path, text: str, message: str) -> None:
    file = make(tmp_path, text)
    with pytest.raises(WatchesError) as caught:
        load_watches(file)
    assert str(caught.value).startswith(f"{file}{message}")
