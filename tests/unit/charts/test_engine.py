"""The engine: what templates share, what they cannot do, and errors that name the place."""

from __future__ import annotations

from typing import Any

import pytest

from ostinato.charts import Capabilities, Chart, ChartError, Engine, Release, load_files, render_chart
from ostinato.charts.chart import File
from ostinato.world import Simulation, World


def chart(templates: dict[str, str], values: str = "", name: str = "c") -> Chart:
    files = {"Chart.yaml": f"apiVersion: v2\nname: {name}\nversion: 1.0.0\n", "values.yaml": values}
    files |= {f"templates/{path}": text for path, text in templates.items()}
    return load_files([File(path, text.encode()) for path, text in files.items()])


def rendered(engine: Engine, made: Chart, values: dict[str, Any] | None = None) -> str:
    return render_chart(made, values or {}, engine, Release(), Capabilities()).text()


def test_a_chart_is_rendered_again_from_its_defaults() -> None:
    engine = Engine(World.real())
    made = chart({"a.yaml": 'a: {{ set .Values "count" (add1 .Values.count) | toJson }}'}, "count: 1")
    first = rendered(engine, made)
    assert '{"count":2}' in first
    assert [rendered(engine, made) for _ in range(3)] == [first] * 3


def test_parsed_templates_are_those_of_the_chart_that_is_rendered() -> None:
    engine = Engine(World.real())
    for number in range(20):
        other = chart(
            {"a.yaml": f'a: {number}-{{{{ include "x" . }}}}', "_x.tpl": f'{{{{ define "x" }}}}{number}{{{{ end }}}}'}
        )
        assert f"a: {number}-{number}\n" in rendered(engine, other)


def test_lookup_reads_what_it_is_given() -> None:
    seen = []

    def lookup(version: str, kind: str, namespace: str, name: str) -> dict[str, Any]:
        seen.append((version, kind, namespace, name))
        return {"data": {"password": "aGk="}}

    made = chart(
        {"a.yaml": '{{ $s := lookup "v1" "Secret" .Release.Namespace "db" }}p: {{ $s.data.password | b64dec }}'}
    )
    assert "p: hi\n" in rendered(Engine(World.real(), lookup=lookup), made)
    assert seen == [("v1", "Secret", "default", "db")]
    empty = chart({"a.yaml": 'p: {{ lookup "v1" "Secret" "" "" | default dict | len }}'})
    assert "p: 0\n" in rendered(Engine(World.real()), empty)


def test_times_and_random_values_are_of_the_world() -> None:
    text = 'a: {{ now | date "2006-01-02T15:04:05Z07:00" }} {{ randAlphaNum 20 }} {{ uuidv4 }} {{ randInt 0 1000000 }}'

    def once(seed: int) -> str:
        made: list[str] = []

        async def run(world: World) -> None:
            made.append(rendered(Engine(world), chart({"a.yaml": text})))

        simulation = Simulation(seed)
        simulation.run(run(simulation.machine("renderer")))
        return made[0]

    assert once(1) == once(1)
    assert once(1) != once(2)


@pytest.mark.parametrize(
    ("templates", "problem"),
    [
        ({"a.yaml": "x\n{{ if }}"}, "parse error at (c/templates/a.yaml:2): missing value for if"),
        (
            {"a.yaml": '{{ required "set .Values.x" .Values.x }}'},
            "execution error at (c/templates/a.yaml:1:3): set .Values.x",
        ),
        ({"a.yaml": '{{ fail "no: way" }}'}, "execution error at (c/templates/a.yaml:1:3): no: way"),
        ({"a.yaml": '{{ include "nope" . }}'}, 'no template "nope" associated with template "gotpl"'),
        ({"a.yaml": "{{ .Values.a.b.c }}"}, "nil pointer evaluating interface {}.b"),
        ({"a.yaml": "a: b: c"}, "YAML parse error on c/templates/a.yaml"),
        ({"_x.tpl": '{{ define "x" }}{{ include "x" . }}{{ end }}', "a.yaml": '{{ include "x" . }}'}, "nested"),
        ({"a.yaml": '{{ repeat 1000000000 "x" }}'}, "error calling repeat"),
    ],
)
def test_errors_name_the_template_and_the_reason(templates: dict[str, str], problem: str) -> None:
    with pytest.raises(ChartError) as raised:
        rendered(Engine(World.real()), chart(templates))
    assert problem in str(raised.value)


def test_a_value_that_contains_itself_is_not_encoded_forever() -> None:
    text = "{{ $d := dict }}{{ $_ := set $d `d` $d }}a: {{ toYaml $d | quote }}{{ toJson $d | quote }}"
    made = chart({"a.yaml": text})
    try:
        assert 'a: """"' in rendered(Engine(World.real()), made)
    except ChartError as error:
        assert "nested" in str(error) or "contains itself" in str(error)  # noqa: PT017 - both are fine


def test_a_release_name_a_library_and_missing_dependencies_are_checked() -> None:
    engine = Engine(World.real())
    with pytest.raises(ChartError, match='release name "Upper" is invalid'):
        render_chart(chart({}), {}, engine, Release("Upper"), Capabilities())
    library = chart({})
    library.metadata.type = "library"
    with pytest.raises(ChartError, match="library charts are not installable"):
        rendered(engine, library)
    incomplete = load_files([File("Chart.yaml", b"name: x\nversion: 1.0.0\ndependencies: [{name: db, version: 1.x}]")])
    with pytest.raises(ChartError, match="missing in charts/ directory: db"):
        rendered(engine, incomplete)
    parent = chart({}, name="parent")
    parent.adopt([chart({}, name="db")])
    with pytest.raises(ChartError, match="type mismatch on db"):
        rendered(engine, parent, {"db": 5})
