"""Bearer tokens in Sec-WebSocket-Protocol, for browsers, which cannot set `Authorization`."""

from __future__ import annotations

import base64
import binascii
import re

from ostinato.api.errors import Unauthorized
from ostinato.server.request import Request
from ostinato.streams.channels import TOKEN_PROTOCOL

_HEADER = "sec-websocket-protocol"
_UPGRADES = re.compile(r"(^|.*,\s*)upgrade($|\s*,)")


def websocket_token(request: Request) -> str:
    """The token of a WebSocket request, "" if none; Unauthorized if it is malformed.

    - Only a request for an upgrade to WebSocket can carry one.
    - The request must offer another protocol besides, for the server to select.
    """
    if _HEADER not in request.headers or not _opens_websocket(request):
        return ""
    offered = request.repeated.get(_HEADER) or [request.headers[_HEADER]]
    words = [word.strip() for line in offered for word in line.split(",")]
    tokens = [word.removeprefix(TOKEN_PROTOCOL) for word in words if word.startswith(TOKEN_PROTOCOL)]
    if not tokens:
        return ""
    others = [word for word in words if not word.startswith(TOKEN_PROTOCOL)]
    if len(tokens) > 1 or not others:
        raise Unauthorized.of("Unauthorized")
    return _decoded(tokens[0])


def _opens_websocket(request: Request) -> bool:
    if request.headers.get("upgrade", "").lower() != "websocket":
        return False
    return _UPGRADES.search(request.headers.get("connection", "").lower()) is not None


def _decoded(text: str) -> str:
    try:
        if "=" in text or len(text) % 4 == 1:
            raise ValueError("not base64url without padding")
        return base64.b64decode(text + "=" * (-len(text) % 4), b"-_", validate=True).decode()
    except (binascii.Error, ValueError):
        raise Unauthorized.of("Unauthorized") from None
