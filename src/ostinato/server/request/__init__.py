"""A request inside the server: messages, route, options, body, content negotiation, presentation."""

from ostinato.server.request.messages import (
    MAX_BODY,
    SHORT_QUERY,
    Answer,
    Later,
    Peer,
    Request,
    Response,
    Stream,
    User,
    parameters,
    text_response,
)

__all__ = [
    "MAX_BODY",
    "SHORT_QUERY",
    "Answer",
    "Later",
    "Peer",
    "Request",
    "Response",
    "Stream",
    "User",
    "parameters",
    "text_response",
]
