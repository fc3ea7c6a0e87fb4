"""The wire: bytes to untyped objects and back, strictly and within bounds.

What comes in is anybody's bytes. It becomes plain dicts, lists, strings, numbers, booleans and None, as Kubernetes
reads them, or a `DecodeError` that says why not; nothing else is raised, and time and memory are linear in the size.

JSON and the checks of strict decoding are here; YAML is in `ostinato.api.wire.yaml`, and protobuf in
`ostinato.api.protobuf`.
"""

from ostinato.api.wire.json import MAX_DEPTH, DecodeError, decode_json, encode_json
from ostinato.api.wire.strict import strict_errors, unknown_fields

__all__ = ["MAX_DEPTH", "DecodeError", "decode_json", "encode_json", "strict_errors", "unknown_fields"]
