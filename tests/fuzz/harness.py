"""Fuzz the decoders: whatever the bytes, they are read or refused with a DecodeError, and what is read holds together.

`check(data)` is one run. With atheris (`pip install atheris`), coverage guides the search:

    PYTHONPATH=src python tests/fuzz/harness.py -max_len=4096 [CORPUS...]

Without it, `tests/fuzz/test_harness.py` runs a few hundred seeded mutations of a small corpus.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import suppress

from ostinato.api.protobuf import EncodeError, decode, decode_watch_event, encode, unframe
from ostinato.api.wire import DecodeError, decode_json, encode_json, strict_errors
from ostinato.api.wire.yaml import decode_yaml, decode_yaml_documents
from ostinato.api.wire.yaml_output import encode_yaml


def check(data: bytes) -> None:
    """The first byte says which decoder gets the rest."""
    targets: tuple[Callable[[bytes], None], ...] = (check_json, check_yaml, check_protobuf)
    if data:
        targets[data[0] % len(targets)](data[1:])


def check_json(data: bytes) -> None:
    with suppress(DecodeError):
        value = decode_json(data)
        strict_errors(data, value, None)
        assert decode_json(encode_json(value)) == value


def check_yaml(data: bytes) -> None:
    with suppress(DecodeError):
        decode_yaml_documents(data, strict=True)
    with suppress(DecodeError):
        value = decode_yaml(data)
        assert decode_yaml(encode_yaml(value)) == value


def check_protobuf(data: bytes) -> None:
    with suppress(DecodeError):
        for part in unframe(data)[0]:
            decode_watch_event(part)
    with suppress(DecodeError, EncodeError):
        value = decode(data)
        assert decode(encode(value)) == value


def main() -> None:
    import atheris  # type: ignore[import-not-found]

    atheris.instrument_all()
    atheris.Setup(sys.argv, check)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
