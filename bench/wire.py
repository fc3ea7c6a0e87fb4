"""Decode and encode a Pod of 5 kB, typed, untyped and header only; beside json, orjson and the official client."""

import json

import msgspec
import orjson
from kubernetes import client as official

from bench.samples import pod
from bench.timing import compare
from ostinato.api import protobuf
from ostinato.api.codec import from_json, to_json
from ostinato.api.serializer.header import read_header
from ostinato.api.wire import decode_json, encode_json
from ostinato.kinds.core_v1 import Pod


def main() -> None:
    value = pod()
    data = encode_json(value)
    typed = from_json(Pod, data)
    api = official.ApiClient()

    def deserialize() -> object:
        return api.deserialize(data.decode(), "V1Pod", "application/json")

    model = deserialize()
    encoded = protobuf.encode(value)
    compare(
        f"Decode a Pod of {len(data)} bytes",
        "json",
        {
            "json": lambda: json.loads(data),
            "orjson": lambda: orjson.loads(data),
            "msgspec, no checks": lambda: msgspec.json.decode(data),
            "ostinato dict": lambda: decode_json(data),
            "ostinato typed": lambda: from_json(Pod, data),
            "ostinato header": lambda: read_header(data),
            "ostinato protobuf": lambda: protobuf.decode(encoded),
            "kubernetes": deserialize,
        },
    )
    compare(
        "Encode it",
        "json",
        {
            "json": lambda: json.dumps(value, separators=(",", ":")).encode(),
            "orjson": lambda: orjson.dumps(value),
            "ostinato dict": lambda: encode_json(value),
            "ostinato typed": lambda: to_json(typed),
            "ostinato protobuf": lambda: protobuf.encode(value),
            "kubernetes": lambda: json.dumps(api.sanitize_for_serialization(model)).encode(),
        },
    )
