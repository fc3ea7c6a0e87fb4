"""Values inside messages."""

from __future__ import annotations

import math

import pytest

from ostinato.api.text.go_format import json_text, plain, quote


@pytest.mark.parametrize(
    ("text", "quoted"),
    [
        ("a", '"a"'),
        ("", '""'),
        ("a\x00b", r'"a\x00b"'),
        ("é", '"é"'),
        ("\u200b", r'"\u200b"'),
        ("\U000e0001", r'"\U000e0001"'),
        ("\x7f", r'"\x7f"'),
        ('a"\\b', r'"a\"\\b"'),
        ("\a\b\f\n\r\t\v", r'"\a\b\f\n\r\t\v"'),
        ("\u00a0", r'"\u00a0"'),
        ("\ud800", '"\ufffd"'),
    ],
)
def test_text_is_quoted_as_go_quotes_it(text: str, quoted: str) -> None:
    assert quote(text) == quoted


@pytest.mark.parametrize(
    ("value", "printed", "json"),
    [
        (0.0, "0", "0"),
        (-0.0, "-0", "-0"),
        (-1.5, "-1.5", "-1.5"),
        (1000000.0, "1e+06", "1000000"),
        (123456789.0, "1.23456789e+08", "123456789"),
        (1e20, "1e+20", "100000000000000000000"),
        (1e21, "1e+21", "1e+21"),
        (1e-5, "1e-05", "0.00001"),
        (1.25e-6, "1.25e-06", "0.00000125"),
        (1e-7, "1e-07", "1e-7"),
        (123456.75, "123456.75", "123456.75"),
        (-3e-10, "-3e-10", "-3e-10"),
        (math.inf, "+Inf", "+Inf"),
        (-math.inf, "-Inf", "-Inf"),
        (math.nan, "NaN", "NaN"),
        (7, "7", "7"),
        (True, "true", "true"),
        ("x", "x", '"x"'),
        (None, "null", "null"),
        ({"b": [1, "<"], "a": None}, '{"a":null,"b":[1,"\\u003c"]}', '{"a":null,"b":[1,"\\u003c"]}'),
        ("\u2028\x01\n\ud800", "\u2028\x01\n\ud800", '"\\u2028\\u0001\\n\ufffd"'),
    ],
)
def test_values_are_printed_as_go_prints_them(value: object, printed: str, json: str) -> None:
    assert (plain(value), json_text(value)) == (printed, json)


def test_a_value_that_is_not_json_is_printed_with_str() -> None:
    assert json_text(b"x") == "b'x'"
