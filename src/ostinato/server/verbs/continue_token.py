"""Continue tokens: the last key of a page, and the resourceVersion of the list.

A token is JSON in base64. It is opaque to clients, but must be validated.
"""

from __future__ import annotations

import base64
import posixpath
import re
from typing import Any

import msgspec

from ostinato.api.errors import BadRequest
from ostinato.api.wire import DecodeError, decode_json
from ostinato.server.schema.decoding.builtin import json_type

_VERSION = "meta.k8s.io/v1"
_ILLEGAL = re.compile(r"[^A-Za-z0-9_-]")


class ContinueToken(msgspec.Struct, frozen=True):
    version: int  # -1: the current resourceVersion
    after: str  # the last key of the previous page, relative to the scope of the list

    def encode(self) -> str:
        token = {"v": _VERSION, "rv": self.version, "start": self.after}
        return base64.urlsafe_b64encode(msgspec.json.encode(token)).rstrip(b"=").decode()

    @classmethod
    def decode(cls, text: str) -> ContinueToken:
        """Decode a token; BadRequest if it is invalid."""
        found = _fields(text)
        api_version, version, start = found.get("v", ""), found.get("rv", 0), found.get("start", "")
        if api_version != _VERSION:
            raise _invalid(f": server does not recognize this encoded version {api_version}")
        if not version:
            raise _invalid(f": incorrect encoded start resourceVersion (version {_VERSION})")
        if not start:
            raise _invalid(f": encoded start key empty (version {_VERSION})")
        key = start if start.startswith("/") else f"/{start}"
        if posixpath.normpath(key) != key:
            raise _invalid(f": {start}")
        return cls(version, key[1:])


def _fields(text: str) -> dict[str, Any]:
    illegal = _ILLEGAL.search(text)
    if illegal or len(text) % 4 == 1:
        at = illegal.start() if illegal else len(text) - 1
        raise _invalid(f": illegal base64 data at input byte {at}")
    try:
        found = decode_json(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
    except DecodeError as error:
        raise _invalid(f": {error}") from error
    if not isinstance(found, dict):
        raise _invalid(f": json: cannot unmarshal {json_type(found)} into Go value of type storage.continueToken")
    for name, type_, go_type in (("v", str, "string"), ("rv", int, "int64"), ("start", str, "string")):
        if name in found and type(found[name]) is not type_:
            what = f"json: cannot unmarshal {json_type(found[name])} into Go struct field continueToken.{name}"
            raise _invalid(f": {what} of type {go_type}")
    return found


def _invalid(why: str) -> BadRequest:
    return BadRequest.of(f"invalid continue token: continue key is not valid{why}")
