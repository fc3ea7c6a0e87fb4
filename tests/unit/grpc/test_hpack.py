"""HPACK, against an independent implementation and the examples of RFC 7541."""

from __future__ import annotations

import random

import hpack
import pytest

from ostinato.grpc.hpack import HeaderError, decode_headers, encode_headers


def test_headers_are_read_as_others_write_them_and_the_other_way_round() -> None:
    rng = random.Random(7541)
    encoder, decoder = hpack.Encoder(), hpack.Decoder()
    encoder.header_table_size = 0
    letters = [chr(code) for code in (*range(32, 127), *range(0xA1, 0x180))]
    for index in range(200):
        headers = {
            "".join(rng.choices("abcxyz-", k=rng.randint(1, 20))): "".join(rng.choices(letters, k=rng.randrange(200)))
            for _ in range(4)
        } | {":status": "200", "grpc-status": "0", "content-type": "application/grpc"}
        assert decode_headers(encoder.encode(headers.items(), huffman=index % 2 == 0)) == headers
        assert dict(decoder.decode(encode_headers(headers.items()))) == headers


@pytest.mark.parametrize(
    ("block", "headers"),
    [
        ("400a637573746f6d2d6b65790d637573746f6d2d686561646572", {"custom-key": "custom-header"}),
        ("040c2f73616d706c652f70617468", {":path": "/sample/path"}),
        ("100870617373776f726406736563726574", {"password": "secret"}),
        ("82", {":method": "GET"}),
        (
            "828684418cf1e3c2e5f23a6ba0ab90f4ff",
            {":method": "GET", ":scheme": "http", ":path": "/", ":authority": "www.example.com"},
        ),
        ("2088", {":status": "200"}),
    ],
)
def test_examples(block: str, headers: dict[str, str]) -> None:
    assert decode_headers(bytes.fromhex(block)) == headers


@pytest.mark.parametrize("block", ["80", "0081ff", "000183ffffff", "0001810f", "00", "7f"])
def test_invalid_blocks_are_refused(block: str) -> None:
    with pytest.raises(HeaderError):
        decode_headers(bytes.fromhex(block))
