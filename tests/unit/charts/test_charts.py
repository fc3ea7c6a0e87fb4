"""Twenty charts with several values each are rendered as by `helm template` (Helm v3.21.4, recorded by `record.py`)."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.unit.charts.bundles import DATA, Bundle, bundles
from tests.unit.charts.record import unpacked

from ostinato.cli.app import run

BUNDLES = {each.name: each for each in bundles()}


def rendered(
    bundle: Bundle, variant: str, place: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> tuple[str | None, str | None]:
    """Render with `ostinato chart template`: the output, or the error."""
    code = run(["chart", "template", str(place / "chart"), "--name", "demo", *bundle.options(variant, place)])
    out, error = (text.decode() for text in capsysbinary.readouterr())
    if not code:
        return out, None
    return None, error.partition("ostinato chart template: ")[2].replace(f"{place}/", "").removeprefix(
        "chart: "
    ).strip()


def test_there_are_twenty_charts_with_several_variants() -> None:
    recorded = unpacked(DATA / "charts.json.gz")
    assert len(BUNDLES) == 20
    assert {name: sorted(bundle.variants) for name, bundle in BUNDLES.items()} == {
        name: sorted(variants) for name, variants in recorded.items()
    }
    assert sum(map(len, recorded.values())) > 70


@pytest.mark.parametrize("name", BUNDLES)
def test_a_chart_is_rendered_as_by_helm(name: str, tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    bundle, recorded = BUNDLES[name], unpacked(DATA / "charts.json.gz")[name]
    bundle.write(tmp_path)
    for variant, (output, error) in recorded.items():
        made, problem = rendered(bundle, variant, tmp_path, capsysbinary)
        assert made == output, f"{name}, {variant}: {problem}"
        if error is not None:
            assert problem is not None
            assert sorted(problem.splitlines()) == sorted(error.splitlines()), (name, variant)  # Go's order is random
