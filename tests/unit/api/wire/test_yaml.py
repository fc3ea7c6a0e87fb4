"""YAML in and out, compared with Go; bounds on aliases and depth."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path as File
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ostinato.api.wire import MAX_DEPTH, DecodeError
from ostinato.api.wire.yaml import decode_yaml, decode_yaml_documents
from ostinato.api.wire.yaml_output import encode_yaml

VECTORS = json.loads((File(__file__).parents[3] / "data/wire/yaml.json").read_text())
VALID = [vector for vector in VECTORS if "error" not in vector]

json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.sampled_from([0.5, 1.25e-7, 1e22])
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda children: st.lists(children, max_size=4) | st.dictionaries(st.text("ab1\n: é-"), children, max_size=4),
    max_leaves=12,
)


def name(vector: dict[str, Any]) -> str:
    return repr(vector["in"])[:40]


def narrowed(value: Any) -> Any:
    """A value with floats where Go had them: it shows wide ones as integers."""
    if isinstance(value, dict):
        return {key: narrowed(item) for key, item in value.items()}
    return float(value) if type(value) is int and not -(2**63) <= value < 2**63 else value


@pytest.mark.parametrize("vector", VALID, ids=name)
def test_yaml_is_read_as_go_reads_it(vector: dict[str, Any]) -> None:
    assert json.dumps(decode_yaml(vector["in"]), sort_keys=True) == json.dumps(
        narrowed(vector["value"]), sort_keys=True
    )


@pytest.mark.parametrize("vector", [v for v in VECTORS if "error" in v], ids=name)
def test_yaml_is_rejected_with_the_words_of_go(vector: dict[str, Any]) -> None:
    with pytest.raises(DecodeError) as refused:
        decode_yaml(vector["in"])
    assert str(refused.value) == vector["error"]


@pytest.mark.parametrize("vector", [v for v in VALID if "<<" not in v["in"]], ids=name)
def test_repeated_keys_are_rejected_when_strict(vector: dict[str, Any]) -> None:
    if "strict" not in vector:
        decode_yaml(vector["in"], strict=True)
        return
    with pytest.raises(DecodeError) as refused:
        decode_yaml(vector["in"], strict=True)
    assert str(refused.value) == vector["strict"]


def test_a_merged_key_that_is_there_already_is_a_repeated_key() -> None:
    with pytest.raises(DecodeError, match='key "b" already set in map'):
        decode_yaml("a: {<<: {b: 1}, b: 2}", strict=True)


WIDE = ("9223372036854775808", "9223372036854775809", "18446744073709551615")  # floats once they are read


@pytest.mark.parametrize("vector", [v for v in VALID if not v["in"].endswith(WIDE)], ids=name)
def test_yaml_is_written_as_go_writes_it(vector: dict[str, Any]) -> None:
    assert encode_yaml(narrowed(vector["value"])).decode() == vector["out"].replace("<<", '"<<"')


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (1.0, "1"),
        (1e20, "1e+20"),
        (2.0**63, "9223372036854776000"),
        (-(2.0**64), "-1.8446744073709552e+19"),
        (0.5, "0.5"),
    ],
)
def test_floats_are_written_as_they_come_back_from_json(number: float, text: str) -> None:
    assert encode_yaml(number).decode() == f"{text}\n"


def test_keys_are_sorted_with_numbers_by_value() -> None:
    names = ["a", "B", "a10", "a9", "a02", "a2", "1", "10", "9", "_x", "a-b", "ab", "100", "101", "a", "é", "a1b", "a1"]
    written = encode_yaml(dict.fromkeys(names)).decode().splitlines()
    assert [line.partition(":")[0].strip('"') for line in written] == [
        "_x", "1", "9", "10", "100", "101", "B", "a", "a-b", "a1", "a1b", "a2", "a02", "a9", "a10", "ab", "é",
    ]  # fmt: skip


def test_all_documents_of_a_file_are_read_and_empty_ones_left_out() -> None:
    assert decode_yaml_documents("---\na: 1\n---\n# nothing\n---\n- b\n...\n---\n{}\n") == [{"a": 1}, ["b"], {}]
    assert decode_yaml_documents(b"") == []


def test_what_follows_the_first_document_is_not_looked_at() -> None:
    assert decode_yaml("a: 1\n---\n]") == {"a": 1}
    with pytest.raises(DecodeError):
        decode_yaml_documents("a: 1\n---\n]")


def test_json_is_yaml() -> None:
    assert decode_yaml(b' {"a":\t[1, "x"], "b": 9223372036854775808}') == {"a": [1, "x"], "b": 2.0**63}
    assert decode_yaml("{a: b}") == {"a": "b"}


def test_aliases_are_copies() -> None:
    value = decode_yaml("a: &x {b: [1]}\nc: *x\nd: {<<: *x}")
    value["a"]["b"].append(2)
    assert value["c"] == {"b": [1]}
    assert value["d"] == {"b": [1]}


def test_aliases_that_grow_beyond_reason_are_rejected() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 10)]
    with pytest.raises(DecodeError, match="document contains excessive aliasing"):
        decode_yaml("\n".join(lines))


def test_long_text_that_aliases_repeat_is_rejected() -> None:
    with pytest.raises(DecodeError, match="document contains excessive aliasing"):
        decode_yaml(f"a: &x {'y' * 1_000_000}\nb: [" + ", ".join(["*x"] * 1000) + "]")


def test_many_aliases_of_a_small_thing_are_fine() -> None:
    value = decode_yaml("a: &x {b: 1}\nc: [" + ", ".join(["*x"] * 2000) + "]")
    assert len(value["c"]) == 2000


@pytest.mark.parametrize("text", ["[" * 100_000, "{a: " * 100_000, "- " * 3000, "? " * 3000])
def test_nesting_is_bounded(text: str) -> None:
    with pytest.raises(DecodeError, match=f"exceeded max depth of {MAX_DEPTH}"):
        decode_yaml(text)


def test_nesting_through_aliases_is_bounded() -> None:
    depth = 60
    lines = [f"a0: &a0 {'[' * depth}{']' * depth}"]
    lines += [f"a{i}: &a{i} {'[' * depth}*a{i - 1}{']' * depth}" for i in range(1, 8)]
    with pytest.raises(DecodeError, match="exceeded max depth"):
        decode_yaml("\n".join(lines))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: *b", "yaml: unknown anchor 'b' referenced"),
        ("a: &b [*b]", "yaml: anchor 'b' value contains itself"),
        ("? [a]\n: b", "yaml: invalid map key: sequence"),
        ("? {a: b}\n: c", "yaml: invalid map key: map"),
        ("a: \x01", "yaml: control characters are not allowed"),
        (b"a: \xff\xfe", "yaml: invalid leading UTF-8 octet"),
        ("!!int x", "yaml: cannot decode !!str `x` as a !!int"),
    ],
)
def test_what_cannot_be_read_is_rejected_with_a_reason(text: str | bytes, message: str) -> None:
    with pytest.raises(DecodeError) as refused:
        decode_yaml(text)
    assert str(refused.value) == message


def test_a_merge_key_that_is_only_text_is_quoted() -> None:
    assert encode_yaml({"<<": {"a": "<<"}}) == b'"<<":\n  a: "<<"\n'


@settings(max_examples=100, deadline=None)
@given(json_values)
def test_what_is_written_reads_back(value: Any) -> None:
    assert decode_yaml(encode_yaml(value)) == value


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=200) | st.text(alphabet="{}[]\",:\\-?&*!|>'%@`#~<a1 \n\t", max_size=60).map(str.encode))
def test_any_bytes_are_read_or_rejected(data: bytes) -> None:
    for read in (decode_yaml, decode_yaml_documents):
        with suppress(DecodeError):
            read(data)
