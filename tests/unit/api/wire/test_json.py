"""JSON in and out: numbers, characters, depth and the words of refusals, compared with Go."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path as File
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ostinato.api.wire import MAX_DEPTH, DecodeError, decode_json, encode_json
from ostinato.api.wire.json_errors import problem

VECTORS = json.loads((File(__file__).parents[3] / "data/wire/json.json").read_text())

json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda children: st.lists(children, max_size=4) | st.dictionaries(st.text(), children, max_size=4),
    max_leaves=20,
)


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: repr(vector["in"])[:40])
def test_json_is_read_or_rejected_as_go_does_it(vector: dict[str, Any]) -> None:
    text = vector["in"]
    if "error" in vector:
        with pytest.raises(DecodeError) as refused:
            decode_json(text)
        assert str(refused.value) == vector["error"]
    else:
        value = decode_json(text)
        if isinstance(value, float):
            assert value == float(vector["value"])
        else:
            assert value == vector["value"]
            assert type(value) is type(vector["value"])


def test_bytes_that_are_not_utf8_become_replacement_characters() -> None:
    assert decode_json(b'{"a\xff":"\xc3"}') == {"a\ufffd": "\ufffd"}


def test_a_float_stays_a_float() -> None:
    assert type(decode_json(b"1.0")) is float
    assert type(decode_json(b"1e2")) is float


def test_wide_integers_become_floats_wherever_they_are() -> None:
    wide = 2**63
    text = f'{{"a":[{wide},{wide - 1}],"b":{{"c":-{wide + 1},"d":"{wide}"}}}}'
    assert decode_json(text) == {"a": [float(wide), wide - 1], "b": {"c": float(-wide - 1), "d": str(wide)}}


def test_digits_in_a_string_are_text() -> None:
    assert decode_json('"' + "1" * 30 + '"') == "1" * 30


def test_an_integer_beyond_all_floats_is_rejected() -> None:
    for digits in (400, 5000):
        with pytest.raises(DecodeError, match=r"cannot unmarshal number 1+ into Go value of type float64"):
            decode_json(b"[" + b"1" * digits + b"]")


@pytest.mark.parametrize(("opening", "closing"), [(b"[", b"]"), (b'{"a":', b"}")])
def test_nesting_is_bounded(opening: bytes, closing: bytes) -> None:
    def nested(depth: int) -> bytes:
        return opening * depth + b"1" + closing * depth

    decode_json(nested(MAX_DEPTH))
    for depth in (MAX_DEPTH + 2, 990, 5_000, 200_000):
        with pytest.raises(DecodeError, match="exceeded max depth"):
            decode_json(nested(depth))


def test_many_brackets_side_by_side_or_in_strings_are_not_deep() -> None:
    decode_json(b"[" + b",".join([b"[[[{}]]]"] * 1000) + b"]")
    value = {"a": "{[" * 1000, "b": [{"c": "]"}] * 500}
    assert decode_json(encode_json(value)) == value


def test_depth_hidden_behind_a_string_of_brackets_is_found() -> None:
    deep = b"[" * 400 + b"]" * 400
    with pytest.raises(DecodeError, match="exceeded max depth"):
        decode_json(b'["' + b"]" * 400 + b'",' + deep + b"]")


def test_a_deep_text_with_an_invalid_character_is_rejected_too() -> None:
    with pytest.raises(DecodeError, match="exceeded max depth"):
        decode_json(b"[" * 5000 + b'"\xff"' + b"]" * 5000)
    with pytest.raises(DecodeError, match="exceeded max depth"):
        decode_json(b'["\xff",' + b"[" * 5000 + b"]" * 5001)


def test_a_large_broken_text_is_rejected_without_a_long_look() -> None:
    with pytest.raises(DecodeError, match="invalid JSON"):
        decode_json(b"[" + b"1," * 300_000 + b"x]")
    with pytest.raises(DecodeError):
        decode_json(b"[" + b"1," * 300_000 + b'"\xff",x]')
    assert decode_json(b"[" + b"1," * 300_000 + b'"\xff"]')[-1] == "\ufffd"
    assert decode_json(b"[" + b"1," * 300_000 + b'"\\ud800"]')[-1] == "\ufffd"


def test_text_is_read_like_bytes() -> None:
    assert decode_json('{"é": "\ud800"}') == decode_json('{"é": "\ud800"}'.encode("utf-8", "surrogatepass"))


def test_output_is_compact_and_utf8() -> None:
    assert encode_json({"b": [1, None, True, "é<"], "a": 1.5}) == '{"b":[1,null,true,"é<"],"a":1.5}'.encode()


@settings(max_examples=100, deadline=None)
@given(json_values)
def test_what_is_written_reads_back(value: Any) -> None:
    assert decode_json(encode_json(value)) == value
    assert problem(encode_json(value)) is None


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=200) | st.text(alphabet='{}[]",:\\u019eE+-.tfn \n\x00é', max_size=60).map(str.encode))
def test_any_bytes_are_read_or_rejected(data: bytes) -> None:
    with suppress(DecodeError):
        decode_json(data)
