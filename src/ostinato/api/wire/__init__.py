"""Serialization of untyped objects: JSON, YAML and strict decoding.

- Input is untrusted. It is decoded to dicts, lists, strings, numbers, booleans and None, as Kubernetes does, or raises
  `DecodeError`, and nothing else. Time and memory are linear in the size.
- YAML is in `ostinato.api.wire.yaml`, protobuf in `ostinato.api.protobuf`.
"""

from ostinato.api.wire.json import MAX_DEPTH, DecodeError, decode_json, encode_json
from ostinato.api.wire.strict import strict_errors, unknown_fields

__all__ = ["MAX_DEPTH", "DecodeError", "decode_json", "encode_json", "strict_errors", "unknown_fields"]
