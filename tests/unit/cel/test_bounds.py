"""Expressions and values made to take long, or to take much memory, are refused or stopped, with the reason."""

from __future__ import annotations

from typing import Any

import pytest

from ostinato.cel.expression import CompileError, Expression
from ostinato.cel.parse.parser import parse
from ostinato.cel.types import DYN
from ostinato.cel.values import CelError, CostExceededError

_LIMIT = 1_000_000


def _evaluated(text: str, **values: Any) -> Any:
    expression = Expression(text, dict.fromkeys(values, DYN))
    return expression.evaluate(list(values.values()), _LIMIT)[0]


@pytest.mark.parametrize(
    "text",
    [
        "(" * 50_000,
        "[" * 50_000,
        "true ? 1 : " * 9_000 + "1",
        "+".join(["1"] * 40_000),
        "{}" + ".a" * 40_000,
        "[]" + "[0]" * 30_000,
    ],
    ids=lambda text: text[:9],
)
def test_what_is_nested_too_deeply_is_rejected(text: str) -> None:
    with pytest.raises(CompileError, match="expression recursion limit exceeded: 250"):
        Expression(text, {})


def test_an_expression_that_is_too_long_is_rejected() -> None:
    with pytest.raises(CompileError, match="expression code point size exceeds limit: size: 100001, limit 100000"):
        Expression("1" * 100_001, {})


def test_only_the_first_hundred_issues_are_reported() -> None:
    with pytest.raises(CompileError) as caught:
        Expression("$\n" * 40_000, {})
    assert str(caught.value).count("ERROR:") == 100
    assert str(caught.value).endswith("more errors were truncated")


def test_macros_do_not_make_expressions_grow_without_end() -> None:
    with pytest.raises(CompileError, match=r"optMap\(\) is called on an expression of more than 2000 parts"):
        Expression("optional.of(1)" + ".optMap(v, v + v)" * 30, {})


@pytest.mark.parametrize("text", ["1" * 9_000, "1" * 9_000 + "u", "1" * 9_000 + ".0"], ids=["int", "uint", "double"])
def test_numbers_of_too_many_digits_are_rejected(text: str) -> None:
    with pytest.raises(CompileError, match=r"invalid .* literal"):
        Expression(text, {})


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("int(x)", "9" * 9_000),
        ("duration(x)", "9" * 9_000 + "s"),
        ("semver(x)", "9" * 9_000 + ".0.0"),
        ("quantity(x)", "9" * 9_000),
        ("cidr(x)", "1.2.3.4/" + "9" * 9_000),
        ("x.format([1.5])", "%." + "9" * 9_000 + "f"),
        ("x.format([1.5])", "%.²f"),
    ],
)
def test_texts_that_stand_for_too_large_numbers_are_errors(text: str, value: str) -> None:
    with pytest.raises(CelError):
        _evaluated(text, x=value)


def _nested(depth: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("x.all(a, x.all(b, x.all(c, true)))", list(range(9_000))),
        ("sets.contains(x, x)", list(range(20_000))),
        ("x.distinct().size() > 0", list(range(20_000))),
        ("x.all(i, i in x)", list(range(20_000))),
        ("x.replace('a', x).size() > 0", "a" * 100_000),
        ("lists.range(1000).map(i, x).join('').size() > 0", "a" * 100_000),
        ("lists.range(1000000000).size() > 0", 0),
        ("lists.range(100000).all(i, x == x + [])", [list(range(1000))]),
        ("optional.of(x)" + ".optMap(v, v + v + v + v + v + v + v + v)" * 6 + ".value().size() > 0", [1] * 1000),
    ],
)
def test_evaluation_stops_when_it_costs_too_much(text: str, value: Any) -> None:
    with pytest.raises(CostExceededError):
        _evaluated(text, x=value)


def test_values_that_are_nested_too_deeply_cannot_be_compared() -> None:
    with pytest.raises(CelError, match="nested too deeply"):
        _evaluated("x == y", x=_nested(5_000), y=_nested(5_001))


def test_patterns_take_linear_time() -> None:
    assert _evaluated("x.matches('^(a+)+$')", x="a" * 20_000 + "b") is False


@pytest.mark.parametrize("text", ["] " + "(" * 50_000, ")" * 99_999, "] " + "{" * 500 + "(" * 500, "(" * 100 + "1 2"])
def test_syntax_errors_of_long_and_deep_texts_do_not_exhaust_the_stack(text: str) -> None:
    _, issues = parse(text)
    assert "Syntax error" in str(issues)


def test_every_syntax_error_is_reported() -> None:
    _, issues = parse("self.in == 'x' ? ")
    assert [line.partition(" Syntax error: ")[2][:40] for line in str(issues).splitlines() if "Syntax" in line] == [
        "no viable alternative at input '.in'",
        "extraneous input '==' expecting {'[', '{",
        "mismatched input '<EOF>' expecting {'[',",
    ]
