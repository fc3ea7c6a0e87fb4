"""Numbers or texts. The vectors are what Kubernetes' own library answers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ostinato.api import intstr

DATA = Path(__file__).parents[2] / "data" / "api"


def vectors(name: str) -> list[Any]:
    return json.loads((DATA / f"{name}.json").read_text())


def test_percentages_are_scaled_as_kubernetes_scales_them() -> None:
    for text, total, round_up, expected, message in vectors("int_or_percent"):
        if message is None:
            assert intstr.scaled_value(text, total, round_up=round_up) == expected, (text, total)
        else:
            with pytest.raises(intstr.IntOrStringError) as caught:
                intstr.scaled_value(text, total, round_up=round_up)
            assert str(caught.value) == message


def test_texts_that_spell_numbers_are_read_as_kubernetes_reads_them() -> None:
    for text, parsed, number in vectors("int_or_string"):
        assert intstr.parse(text) == parsed, text
        assert intstr.to_int(text) == number, text


def test_a_number_is_not_scaled() -> None:
    assert intstr.scaled_value(3, 10, round_up=True) == 3
    assert intstr.to_int(3) == 3


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (None, "nil value for IntOrString"),
        ("5", "invalid value for IntOrString: invalid type: string is not a percentage"),
        (1.5, "invalid value for IntOrString: invalid type: neither int nor percentage"),
        ([], "invalid value for IntOrString: invalid type: neither int nor percentage"),
        (
            "9" * 30 + "%",
            (
                f'invalid value for IntOrString: invalid value "{"9" * 30}%": '
                f'strconv.Atoi: parsing "{"9" * 30}": value out of range'
            ),
        ),
    ],
)
def test_invalid_counts_are_rejected(value: Any, message: str) -> None:
    with pytest.raises(intstr.IntOrStringError) as caught:
        intstr.scaled_value(value, 10, round_up=True)
    assert str(caught.value) == message


def test_very_long_numbers_are_bounded() -> None:
    assert intstr.to_int("9" * 1_000_000) == 2**63 - 1
    assert intstr.to_int("-" + "9" * 1_000_000) == -(2**63)
    assert intstr.to_int("0" * 1_000_000 + "7") == 7
    assert intstr.parse("9" * 1_000_000) == "9" * 1_000_000


@given(st.integers(0, 100), st.integers(0, 10**6))
def test_rounding_up_and_down_differ_by_one_at_most(percent: int, total: int) -> None:
    up = intstr.scaled_value(f"{percent}%", total, round_up=True)
    down = intstr.scaled_value(f"{percent}%", total, round_up=False)
    assert down * 100 <= percent * total <= up * 100
    assert up - down in (0, 1)
