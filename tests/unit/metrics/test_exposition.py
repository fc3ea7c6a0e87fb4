from __future__ import annotations

import pytest

from ostinato.metrics import Family, Sample, text
from ostinato.metrics.exposition import number


def test_labels_and_help_are_escaped_and_le_is_last() -> None:
    sample = Sample("a", {"z": 'q"\\\n', "le": "+Inf", "b": "x"}, 1)
    assert text([Family("a", "histogram", "one\ntwo \\", [sample])]) == (
        '# HELP a one\\ntwo \\\\\n# TYPE a histogram\na{b="x",z="q\\"\\\\\\n",le="+Inf"} 1\n'
    )


def test_a_timestamp_follows_the_value() -> None:
    assert text([Family("a", "gauge", "Help.", [Sample("a", {}, 1, 1700000000000)])]).endswith("\na 1 1700000000000\n")


@pytest.mark.parametrize(
    ("value", "printed"),
    [
        (0, "0"),
        (1.0, "1"),
        (0.005, "0.005"),
        (1e-8, "1e-08"),
        (float("inf"), "+Inf"),
        (float("-inf"), "-Inf"),
        (float("nan"), "NaN"),
        (2**40, "1099511627776"),
        (1e22, "1e+22"),
    ],
)
def test_numbers_are_printed_in_their_shortest_form(value: float, printed: str) -> None:
    assert number(value) == printed
