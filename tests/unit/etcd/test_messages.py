"""Messages of etcd: fast paths read what the general one reads."""

from __future__ import annotations

import random

import pytest

from ostinato.etcd.messages import read_header
from ostinato.etcd.wire import data, fields, number, signed


def general(message: bytes) -> int:
    return next((signed(value) for field, value in fields(message) if field == 3 and isinstance(value, int)), 0)


def test_the_revision_of_a_header_is_that_of_the_general_reading() -> None:
    rng = random.Random(3)
    for _ in range(3000):
        ids = [rng.choice((0, 1, 127, 128, rng.getrandbits(64))) for _ in range(2)]
        revision = rng.choice((0, 1, 127, 128, rng.getrandbits(rng.randint(1, 63)), -1))
        message = number(1, ids[0]) + number(2, ids[1]) + number(3, revision) + number(4, rng.getrandbits(20))
        if rng.random() < 0.2:  # other orders, and fields that are not known
            parts = [number(1, ids[0]), number(3, revision), number(2, ids[1]), data(9, b"\x18\x05")]
            rng.shuffle(parts)
            message = b"".join(parts)
        assert read_header(message) == general(message) == revision


@pytest.mark.parametrize("message", [b"", b"\x08\x05", b"\x18\xff" + b"\xff" * 7 + b"\x7f"])
def test_unusual_headers_are_read(message: bytes) -> None:
    assert read_header(message) == general(message)
