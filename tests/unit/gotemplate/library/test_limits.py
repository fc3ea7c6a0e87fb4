"""Functions that would make much out of little are refused before they do."""

from __future__ import annotations

import pytest

from ostinato.gotemplate import LimitError, TemplateError, Templates
from ostinato.gotemplate.library import helm_functions
from ostinato.world import World

_LONG = '{{ $x := repeat 100000 "a" }}'
_SHARED = '{{ $d := dict "a" 1 }}{{ range 60 }}{{ $d = dict "a" $d "b" $d }}{{ end }}'
_CYCLE = '{{ $d := dict "a" 1 }}{{ $_ := set $d "s" $d }}'


@pytest.fixture(scope="module")
def templates() -> Templates:
    return Templates(helm_functions(World.real()))


@pytest.mark.parametrize(
    "text",
    [
        '{{ indent 2000000000 "a" }}',
        '{{ nindent 2000000000 "a" }}',
        '{{ indent 100000 (repeat 100000 "a\\n") }}',
        _LONG + '{{ replace "a" $x $x }}',
        _LONG + '{{ replace "" $x $x }}',
        _LONG + '{{ regexReplaceAll "a" $x $x }}',
        _LONG + '{{ regexReplaceAllLiteral "a" $x $x }}',
        _LONG + "{{ join $x (until 100000) }}",
        _LONG + "{{ wrapWith 1 $x $x }}",
        "{{ $l := list 1 }}{{ range 60 }}{{ $l = concat $l $l }}{{ end }}",
        *(f"{_SHARED}{{{{ {call} }}}}" for call in ("toJson $d", "toYaml $d", "deepCopy $d", "deepEqual $d $d")),
        *(f"{_CYCLE}{{{{ {call} }}}}" for call in ("toJson $d", "toYaml $d", "deepCopy $d", "deepEqual $d $d")),
    ],
)
def test_small_templates_do_not_make_large_values(templates: Templates, text: str) -> None:
    copy = templates.copy()
    copy.parse("page", text)
    with pytest.raises(LimitError):
        copy.render("page", None)


@pytest.mark.parametrize(
    "text",
    [
        '{{ repeat 5000 (repeat 1000000 "x") }}',
        "{{ seq 1 1000000000000 }}",
        "{{ until 1000000000000 }}",
        "{{ randAlphaNum 2000000000 }}",
        '{{ semverCompare (repeat 1000 ">=1 || ") "1.0.0" }}',
    ],
)
def test_lengths_that_are_too_large_are_errors(templates: Templates, text: str) -> None:
    copy = templates.copy()
    copy.parse("page", text)
    with pytest.raises(TemplateError):
        copy.render("page", None)


@pytest.mark.parametrize(
    ("text", "output"),
    [
        ('{{ regexMatch "(a+)+$" (print (repeat 40 "a") "!") }}', "false"),
        ("{{ len (uniq (until 20000)) }}", "20000"),
        ("{{ $d := dict }}{{ range 20000 }}{{ $_ := set $d (print .) . }}{{ end }}{{ len $d }}", "20000"),
        (
            "{{ uniq (list 1 1 1.5 `a` `a` true true nil nil (list 1) (list 1) (int64 1)) }}",
            "[1 1.5 a true <nil> [1] 1]",
        ),
    ],
)
def test_much_work_within_the_limits_is_done_in_linear_time(templates: Templates, text: str, output: str) -> None:
    copy = templates.copy()
    copy.parse("page", text)
    assert copy.render("page", None) == output
