"""pprof's format: stacks with values as a gzipped `perftools.profiles.Profile`, which `go tool pprof` reads.

Frames are those of `profiling.stacks`: `function (file:line)`. A frame without a file is a function alone.
"""

from __future__ import annotations

import gzip
import re
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from ostinato.api.protobuf.varint import delimited, varint
from ostinato.profiling.stacks import Stack

_FRAME: Final = re.compile(r"(.*) \((.*):(\d+)\)")


class ValueType(NamedTuple):
    """The meaning of a value: `samples` in `count`, `cpu` in `nanoseconds`."""

    type: str
    unit: str


def encode(
    types: Sequence[ValueType],
    samples: Iterable[tuple[Stack, Sequence[int]]],
    *,
    now: float,
    seconds: float = 0.0,
    period: int = 1,
) -> bytes:
    """Return a profile.

    - `types`: of the values of each sample; the last one is also the type of the period.
    - `samples`: stacks, outermost frame first, with a value for each type.
    - `now`: when it was recorded, in seconds since 1970; `seconds`: how long that took.
    - `period`: units between two samples.
    """
    table = _Table()
    parts = [_field(1, _value_type(table, each)) for each in types]
    for stack, values in samples:
        locations = b"".join(varint(table.location(frame)) for frame in reversed(stack))
        numbers = b"".join(varint(value) for value in values)
        parts.append(_field(2, _field(1, locations) + _field(2, numbers)))
    period_type = _value_type(table, types[-1])
    parts += [_field(4, each) for each in table.locations]
    parts += [_field(5, each) for each in table.functions]
    parts += [_field(6, text.encode()) for text in table.strings]
    parts += [_number(9, int(now * 1e9)), _number(10, int(seconds * 1e9))]
    parts += [_field(11, period_type), _number(12, period)]
    return gzip.compress(b"".join(parts), mtime=0)


class _Table:
    """Strings, functions and locations of a profile, each once; ids are positions, from 1 for all but strings."""

    def __init__(self) -> None:
        self.strings: dict[str, int] = {"": 0}
        self.functions: list[bytes] = []
        self.locations: list[bytes] = []
        self._function_ids: dict[tuple[str, str], int] = {}
        self._location_ids: dict[str, int] = {}

    def string(self, text: str) -> int:
        return self.strings.setdefault(text, len(self.strings))

    def location(self, frame: str) -> int:
        known = self._location_ids.get(frame)
        if known is not None:
            return known
        parsed = _FRAME.fullmatch(frame)
        name, file, line = (parsed[1], parsed[2], int(parsed[3])) if parsed else (frame, "", 0)
        at = self._location_ids[frame] = len(self.locations) + 1
        self.locations.append(_number(1, at) + _field(4, _number(1, self._function(name, file)) + _number(2, line)))
        return at

    def _function(self, name: str, file: str) -> int:
        known = self._function_ids.get((name, file))
        if known is None:
            known = self._function_ids[name, file] = len(self.functions) + 1
            text = self.string(name)
            self.functions.append(
                _number(1, known) + _number(2, text) + _number(3, text) + _number(4, self.string(file))
            )
        return known


def _value_type(table: _Table, of: ValueType) -> bytes:
    return _number(1, table.string(of.type)) + _number(2, table.string(of.unit))


def _number(field: int, value: int) -> bytes:
    return varint(field << 3) + varint(value)


def _field(field: int, data: bytes) -> bytes:
    return delimited(varint(field << 3 | 2), data)
