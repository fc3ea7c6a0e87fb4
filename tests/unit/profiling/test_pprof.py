"""pprof's format, read back by a decoder of the tests."""

from __future__ import annotations

import gzip
from collections.abc import Iterator

from ostinato.api.protobuf.varint import read_varint
from ostinato.profiling.pprof import ValueType, encode


def fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    at = 0
    while at < len(data):
        key, at = read_varint(data, at)
        value, at = read_varint(data, at)
        if key & 7 == 2:
            yield key >> 3, data[at : at + value]
            at += value
        else:
            yield key >> 3, value


def numbers(data: bytes) -> list[int]:
    found, at = [], 0
    while at < len(data):
        value, at = read_varint(data, at)
        found.append(value)
    return found


def test_a_profile_has_each_function_once_and_the_innermost_frame_first() -> None:
    stacks = {("main", "f (a/b.py:3)", "g (a/b.py:9)"): 5, ("main", "f (a/b.py:4)"): 2}
    profile = gzip.decompress(
        encode([ValueType("samples", "count")], ((stack, [count]) for stack, count in stacks.items()), now=1.5)
    )
    parts: dict[int, list[bytes | int]] = {}
    for number, value in fields(profile):
        parts.setdefault(number, []).append(value)
    strings = [text.decode() for text in parts[6] if isinstance(text, bytes)]
    functions = {dict(fields(each))[1]: strings[dict(fields(each))[2]] for each in parts[5]}  # type: ignore[arg-type,index]
    assert strings[0] == ""
    assert sorted(functions.values()) == ["f", "g", "main"]
    lines = {}
    for each in parts[4]:
        location = dict(fields(each))  # type: ignore[arg-type]
        line = dict(fields(location[4]))  # type: ignore[arg-type]
        lines[location[1]] = functions[line[1]], line[2]
    shown = []
    for each in parts[2]:
        sample = dict(fields(each))  # type: ignore[arg-type]
        shown.append(([lines[at] for at in numbers(sample[1])], numbers(sample[2])))  # type: ignore[arg-type]
    assert shown == [([("g", 9), ("f", 3), ("main", 0)], [5]), ([("f", 4), ("main", 0)], [2])]
    assert parts[9] == [1_500_000_000]
