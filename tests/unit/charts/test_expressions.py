"""Every function of sprig and Helm gives what it gives in Helm: recorded from Helm v3.21.4 by `record.py`."""

from __future__ import annotations

import gzip
import json
import re
import time
from pathlib import Path

import pytest
from tests.unit.charts.surroundings import FILES, PARTIALS, VALUES

from ostinato.charts import Capabilities, Chart, ChartError, Engine, Release
from ostinato.charts.chart import File
from ostinato.charts.metadata import Metadata
from ostinato.charts.values.documents import copied, read_values
from ostinato.world import World

DATA = Path(__file__).parents[2] / "data" / "charts" / "expressions.json.gz"

# Why each differs: docs/reference/chart-templates.md.
DIFFERENT = {
    "{{ fromJson `1e400` | toJson }}",
    "{{ fromJsonArray `1e400` | toJson }}",
    '{{ mustToDate "3:04PM" "4:05AM" | unixEpoch }}',
    r'{{ toYaml "\ufeffx" }}',
    r'{{ toYamlPretty "\ufeffx" }}',
    "{{ toYaml .Values.quoted }}",
}


@pytest.fixture(scope="module")
def recorded() -> dict[str, list[str | None]]:
    found: dict[str, list[str | None]] = json.loads(gzip.decompress(DATA.read_bytes()))
    return found


def test_the_recording_is_complete(recorded: dict[str, list[str | None]]) -> None:
    assert list(recorded) == sorted(recorded)
    assert len(recorded) > 4800
    assert set(recorded) >= DIFFERENT


def test_expressions_have_the_output_or_the_error_that_they_have_in_helm(
    recorded: dict[str, list[str | None]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TZ", "UTC")  # of the recording
    time.tzset()
    engine = Engine(World.real())
    metadata = Metadata(name="c", version="1.2.3", app_version="4.5", api_version="v2", description="d")
    files = [File(name, FILES[name].encode()) for name in sorted(FILES)]
    partials = File("templates/_p.tpl", PARTIALS.encode())
    values = read_values(VALUES.encode(), "values.yaml")
    release, capabilities = Release("r", "ns"), Capabilities()
    wrong = {}
    for expression, (output, error) in recorded.items():
        helpers = [partials] if "include" in expression else []
        chart = Chart(metadata, [*helpers, File("templates/t", expression.encode())], files=files)
        problem = made = None
        try:
            made = engine.render(chart, copied(values), release, capabilities)["c/templates/t"]
            made = re.sub("[\udc80-\udcff]", "\ufffd", made)  # the recording is JSON: bytes that are not UTF-8 are lost
        except ChartError as raised:
            problem = str(raised)
        if (made, problem) != (output, error):
            wrong[expression] = (made, problem)
    assert {each: found for each, found in wrong.items() if each not in DIFFERENT} == {}
    assert set(wrong) == DIFFERENT  # what became equal is no longer listed
