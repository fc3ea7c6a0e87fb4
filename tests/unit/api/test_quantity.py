"""Quantities. The vectors are what Kubernetes' own library answers for the same texts."""

from __future__ import annotations

import copy
import json
import pickle
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ostinato.api.quantity import Format, Quantity, QuantityError

DATA = Path(__file__).parents[2] / "data" / "api"
WRONG_FORMAT = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"


def vectors(name: str) -> list[Any]:
    return json.loads((DATA / f"{name}.json").read_text())


def beyond_suffixes(text: str) -> bool:
    """From 1000E upwards Kubernetes has no suffix left and writes another amount; we do not."""
    quantity = Quantity.parse(text)
    return quantity.format is not Format.DECIMAL_EXPONENT and quantity.nanos != 0 and quantity.nanos % 10**30 == 0


def test_every_text_is_read_as_kubernetes_reads_it() -> None:
    for text, *expected in vectors("quantities"):
        if expected[0] is None:
            with pytest.raises(QuantityError) as caught:
                Quantity.parse(text)
            assert str(caught.value) == expected[1], text
            continue
        written, written_in, canonical, value, milli_value, sign = expected
        quantity = Quantity.parse(text)
        assert (quantity.format, quantity.sign) == (written_in, sign), text
        if not beyond_suffixes(text):
            assert str(quantity) == written, text
            assert str(quantity.with_format(quantity.format)) == canonical, text
        if value is not None:
            assert quantity.value() == value, text
        if milli_value is not None:
            assert quantity.milli_value() == milli_value, text


def test_arithmetic_gives_what_kubernetes_gives() -> None:
    compared = 0
    for left_text, right_text, factor, order, total, difference, product, negative in vectors("quantity_arithmetic"):
        left, right = Quantity.parse(left_text), Quantity.parse(right_text)
        case = (left_text, right_text, factor)
        assert (left > right) - (left < right) == order, case
        for ours, theirs in [
            (left + right, total),
            (left - right, difference),
            (left * factor, product),
            (-left, negative),
        ]:
            if not beyond_suffixes(str(ours)):
                assert str(ours) == theirs, case
                compared += 1
    assert compared > 3000


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("1.5", "1500m"),
        ("1000m", "1"),
        ("1024Mi", "1Gi"),
        ("0.5Mi", "512Ki"),
        ("1000M", "1G"),
        (".001e12", "1e9"),
        ("0.5Ki", "512"),
        ("1234567m", "1234567m"),
        ("1025", "1025"),
        ("0Ki", "0"),
        ("0e3", "0"),
        ("1.", "1."),
        (".5", "500m"),
        ("1.G", "1.G"),
        ("12E", "12E"),
        ("0.1n", "1n"),
        ("-0.1n", "-1n"),
        ("9Ei", "9223372036854775807"),
        ("-9Ei", "-9223372036854775807"),
    ],
)
def test_texts_become_canonical(text: str, canonical: str) -> None:
    assert str(Quantity.parse(text)) == canonical


def test_a_canonical_text_is_returned_as_it_is() -> None:
    for text in ["100m", "128Mi", "1E3", "+1", "1.500", "1500Mi", "010Ki"]:
        assert str(Quantity.parse(text)) == text


def test_an_e_alone_is_exa_and_with_digits_an_exponent() -> None:
    assert Quantity.parse("1E") == Quantity.of(10**18)
    assert Quantity.parse("1E").format is Format.DECIMAL_SI
    assert Quantity.parse("1E3") == Quantity.of(1000)
    assert Quantity.parse("1E3").format is Format.DECIMAL_EXPONENT


@pytest.mark.parametrize("text", ["1K", "1.5i", "1e", "1e+", "e9999999999999999999999", "1e1001", "1e-1001"])
def test_a_suffix_that_is_none_is_rejected(text: str) -> None:
    with pytest.raises(QuantityError, match="unable to parse quantity's suffix"):
        Quantity.parse(text)


@pytest.mark.parametrize("text", ["9" * 1001, "0." + "1" * 1000, "Ei", "9" * 10_000_000])
def test_a_number_that_is_none_or_without_bound_is_rejected(text: str) -> None:
    with pytest.raises(QuantityError, match="unable to parse numeric part of quantity"):
        Quantity.parse(text)


def test_the_largest_numbers_that_are_read_can_be_written() -> None:
    text = "9" * 1000 + "e1000"
    assert str(Quantity.parse(text) + Quantity.parse("1n")).endswith("e-9")


def test_amounts_above_all_suffixes_keep_the_largest_one() -> None:
    assert str(Quantity.parse("1000E")) == "1000E"
    assert str(Quantity.of(10**21)) == "1000E"
    assert str(Quantity.of(2**70, Format.BINARY_SI)) == "1024Ei"


def test_zero_takes_the_format_of_what_is_added() -> None:
    assert str(Quantity() + Quantity.parse("1Gi")) == "1Gi"
    assert str(Quantity() - Quantity.parse("1Gi")) == "-1Gi"
    assert str(Quantity.parse("1Gi") + Quantity.parse("1024M")) == "2048576Ki"
    assert str(Quantity.parse("1024M") + Quantity.parse("1Gi")) == "2097741824"


def test_quantities_are_compared_and_hashed_by_value() -> None:
    assert Quantity.parse("1") == Quantity.parse("1000m") != Quantity.parse("1001m")
    assert len({Quantity.parse("1Gi"), Quantity.parse("1024Mi"), Quantity.of(2**30)}) == 1
    assert Quantity.parse("1") != 1
    assert Quantity.parse("1") < Quantity.parse("1Ki") <= Quantity.parse("1024") > Quantity.parse("1023")
    assert Quantity.parse("1Ki") >= Quantity.parse("1k")


def test_values_round_away_from_zero() -> None:
    assert [Quantity.parse(text).value() for text in ("1", "1n", "-1n", "1001m", "-1001m")] == [1, 1, -1, 2, -2]
    assert Quantity.parse("1u").milli_value() == 1
    assert Quantity.parse("1500").scaled_value(3) == 2
    assert Quantity.parse("1n").scaled_value(-12) == 1000
    assert int(Quantity.parse("1500m")) == 2
    assert str(Quantity.parse("1001").round_up(3)) == "2k"
    assert str(Quantity.parse("-1001").round_up(3)) == "-2k"
    assert str(Quantity.parse("1n").round_up(-9)) == "1n"


def test_a_quantity_becomes_the_nearest_float() -> None:
    assert float(Quantity.parse("100m")) == 0.1
    assert float(Quantity.parse("1e1000")) == float("inf")
    assert float(Quantity.parse("-1e1000")) == float("-inf")


def test_json_holds_quantities_as_strings_numbers_or_null() -> None:
    assert str(Quantity.from_json(" 1Gi\n")) == "1Gi"
    assert str(Quantity.from_json(2)) == "2"
    assert str(Quantity.from_json(0.5)) == "500m"
    assert str(Quantity.from_json(1e22)) == "10e21"
    assert Quantity.from_json(None).is_zero
    for odd in (True, [], {}, b"1", float("nan")):
        with pytest.raises(QuantityError) as caught:
            Quantity.from_json(odd)
        assert str(caught.value) == WRONG_FORMAT
    with pytest.raises(QuantityError):
        Quantity.from_json(10**5000)


def test_quantities_are_made_from_numbers() -> None:
    assert str(Quantity.of(2**30, Format.BINARY_SI)) == "1Gi"
    assert str(Quantity.of(2**30)) == "1073741824"
    assert str(Quantity.milli(1500)) == "1500m"
    assert str(Quantity.of(12000, Format.DECIMAL_EXPONENT)) == "12e3"
    assert repr(Quantity.milli(100)) == "Quantity.parse('100m')"
    assert str(3 * Quantity.milli(100)) == "300m"
    assert abs(Quantity.of(-1)) == Quantity.of(1) == abs(Quantity.of(1))
    assert bool(Quantity.of(1))
    assert not Quantity()
    assert Quantity.parse("1").is_integer
    assert not Quantity.parse("1m").is_integer


def test_only_quantities_can_be_added_or_ordered() -> None:
    one = Quantity.of(1)
    for operation in (
        lambda: one + 1,  # type: ignore[operator]
        lambda: one - 1,  # type: ignore[operator]
        lambda: one * 1.5,  # type: ignore[operator]
        lambda: one < 1,  # type: ignore[operator]
        lambda: one <= 1,  # type: ignore[operator]
        lambda: one > 1,  # type: ignore[operator]
        lambda: one >= 1,  # type: ignore[operator]
    ):
        with pytest.raises(TypeError):
            operation()


def test_a_quantity_survives_copying_and_pickling() -> None:
    quantity = Quantity.parse("1500Mi")
    for twin in (copy.deepcopy(quantity), pickle.loads(pickle.dumps(quantity))):
        assert twin == quantity
        assert str(twin) == "1500Mi"
        assert twin.format is Format.BINARY_SI


amounts = st.builds(
    lambda nanos, format_: Quantity(f"{nanos}n").with_format(format_),
    st.integers(-9 * 10**27, 9 * 10**27),
    st.sampled_from(Format),
)


@given(amounts)
def test_a_written_quantity_reads_back_as_the_same_amount(quantity: Quantity) -> None:
    again = Quantity.parse(str(quantity))
    assert again == quantity
    assert str(Quantity.parse(str(again))) == str(again)  # the first may be binary in a number without a suffix


def test_a_binary_amount_that_needs_no_suffix_reads_back_as_a_decimal_one() -> None:
    assert str(Quantity("15625000").with_format(Format.BINARY_SI)) == "15625000"
    assert str(Quantity.parse("15625000")) == "15625k"


@given(amounts, amounts, amounts, st.integers(-1000, 1000))
def test_sums_and_products_obey_the_laws_of_arithmetic(a: Quantity, b: Quantity, c: Quantity, n: int) -> None:
    assert (a + b) + c == a + (b + c)
    assert a + b == b + a
    assert a - b == a + -b
    assert (a + b) * n == a * n + b * n
    assert (a < b) == (Fraction(a.nanos, 10**9) < Fraction(b.nanos, 10**9))


@given(st.text("0123456789.+-eEinumkKMGTP", max_size=12))
def test_any_text_is_read_or_rejected(text: str) -> None:
    try:
        quantity = Quantity.parse(text)
    except QuantityError:
        return
    assert Quantity.parse(str(quantity)) == quantity


def test_a_quantity_is_made_of_a_text_or_of_whole_units() -> None:
    assert Quantity("500m") == Quantity.milli(500)
    assert str(Quantity("1024Mi")) == "1Gi"
    assert Quantity(2) == Quantity.of(2) == Quantity("2")
    with pytest.raises(QuantityError):
        Quantity("half")
