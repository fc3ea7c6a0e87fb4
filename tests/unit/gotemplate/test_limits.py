"""Templates of strangers: they end, they do not take much memory, and they fail with an error of templates."""

from __future__ import annotations

import resource
from contextlib import suppress
from typing import Any

import pytest

from ostinato.gotemplate import LimitError, Limits, ParseError, State, TemplateError, Templates


def rendered(text: str, data: Any = None, **options: Any) -> str:
    templates = Templates(**options)
    templates.parse("page", text)
    return templates.render("page", data)


def shared(depth: int) -> dict[str, Any]:
    """A small value that is large when printed."""
    value: dict[str, Any] = {"a": 1}
    for _ in range(depth):
        value = {"a": value, "b": value}
    return value


def cyclic() -> dict[str, Any]:
    value: dict[str, Any] = {}
    value["self"] = value
    return value


def nested(depth: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{{ range 1000000000000 }}{{ end }}", "page:1:9.*steps"),
        ("{{ range 10000 }}{{ range 10000 }}{{ range 10000 }}{{ end }}{{ end }}{{ end }}", "steps"),
        ('{{ define "x" }}{{ template "x" }}{{ end }}{{ template "x" }}', "depth|deeply"),
        (
            '{{ define "x" }}{{ if true }}{{ template "x" (print .) }}{{ end }}{{ end }}{{ template "x" }}',
            "depth|deeply",
        ),
        ('{{ $x := "0123456789" }}{{ range 60 }}{{ $x = print $x $x }}{{ end }}', "characters"),
        ('{{ $x := printf "%100000d" 1 }}{{ range 100000 }}{{ $x }}{{ end }}', "steps|characters"),
        ('{{ $x := printf "%100000d" 1 }}' + "{{ $x }}" * 1000, "characters"),
        ('{{ $x := printf "%100000d" 1 }}{{ print ' + "$x " * 1000 + "}}", "steps|characters"),
        ('{{ $x := printf "%100000d" 1 }}{{ println ' + "$x " * 1000 + "}}", "steps|characters"),
        ('{{ printf "' + "%100000d" * 1000 + '"' + " 1" * 1000 + "}}", "steps|characters"),
        ('{{ $x := printf "%100000d" 1 }}{{ printf "' + "%[1]x" * 1000 + '" $x }}', "steps|characters"),
        ('{{ $x := printf "%100000s" "é" }}{{ range 1000000 }}{{ $y := len $x }}{{ end }}', "steps"),
    ],
    ids=lambda value: value[:40],
)
def test_templates_that_take_long_or_much_are_stopped(text: str, message: str) -> None:
    with pytest.raises(LimitError, match=message):
        rendered(text, limits=Limits(steps=200_000, size=30_000_000))


def test_templates_that_call_themselves_twice_are_stopped() -> None:
    calls = '{{ template "x" (slice . 1) }}' * 2
    text = '{{ define "x" }}{{ if . }}' + calls + '{{ end }}{{ end }}{{ template "x" . }}'
    with pytest.raises(LimitError, match="steps"):
        rendered(text, "0" * 60, limits=Limits(steps=100_000))


def test_included_templates_share_the_limits() -> None:
    def include(state: State, name: str, data: object) -> str:
        return state.render(name, data)

    text = '{{ define "x" }}{{ include "x" . }}{{ end }}{{ include "x" . }}'
    with pytest.raises(LimitError, match=r"depth|deeply"):
        rendered(text, functions={"include": include})
    text = '{{ define "x" }}{{ range 100 }}a{{ end }}{{ end }}{{ range 1000 }}{{ $y := include "x" . }}{{ end }}'
    with pytest.raises(LimitError, match="steps"):
        rendered(text, functions={"include": include}, limits=Limits(steps=100_000))


def test_functions_announce_large_results() -> None:
    def fill(state: State, count: int) -> str:
        state.charge(count)
        return "x" * count

    assert rendered("{{ fill 3 }}", functions={"fill": fill}) == "xxx"
    with pytest.raises(LimitError, match=r"page:1:3.*error calling fill: template results exceed 100000000 characters"):
        rendered("{{ fill 1000000000000 }}", functions={"fill": fill})


@pytest.mark.parametrize("value", [shared(60), cyclic(), nested(50_000)], ids=["shared", "cyclic", "nested"])
@pytest.mark.parametrize("text", ["{{ . }}", '{{ printf "%q" . }}', "{{ eq . . }}", "{{ printf . }}"])
def test_values_that_are_large_when_printed_are_refused(text: str, value: Any) -> None:
    with pytest.raises(TemplateError):
        rendered(text, value)


@pytest.mark.parametrize(
    "text",
    [
        "{{ " + "(" * 50_000,
        "{{ " + "(" * 5_000 + "1" + ")" * 5_000 + " }}",
        "{{ if true }}" * 5_000 + "{{ end }}" * 5_000,
        "{{ if false }}" + "{{ else if false }}" * 5_000 + "{{ end }}",
        "{{ range . }}" * 5_000,
        '{{ define "a" }}' * 5_000,
        '{{ block "a" . }}' * 5_000,
        "{{ " + "1" * 100_000 + " }}",
        "{{ 0x" + "f" * 100_000 + " }}",
        "{{ 1e" + "9" * 100_000 + " }}",
        "{{ '" + "a" * 100_000 + "' }}",
        "{{ " * 20_000,
        "{{/*" * 20_000,
        '{{ "' + "\\" * 99_999,
    ],
    ids=lambda text: text[:24],
)
def test_texts_that_are_nested_deeply_or_malformed_are_refused(text: str) -> None:
    with pytest.raises(ParseError):
        Templates().parse("page", text)


@pytest.mark.parametrize(
    "text",
    [
        "{{ print" + " 1" * 5_000 + " }}",
        "{{ 1" + " | print" * 400 + " }}",
        "{{ ." + ".a" * 5_000 + " }}",
        "{{ " + "(" * 90 + "1" + ")" * 90 + " }}",
        "{{ if true }}" * 90 + "{{ end }}" * 90,
        "a{{ 1 }}" * 5_000,
        "{{ $x := 1 }}" * 5_000,
    ],
    ids=lambda text: text[:24],
)
def test_long_texts_are_executed_or_refused(text: str) -> None:
    with suppress(TemplateError):
        rendered(text, {})


def test_what_was_refused_took_little_memory() -> None:
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss < 3_000_000  # KiB, of this process and all its tests
