"""A request inside the server: messages, route, options, body, content negotiation, presentation."""

from ostinato.server.request.messages import (
    MOST_BODY,
    SHORT_QUERY,
    Answer,
    Peer,
    Request,
    Response,
    Stream,
    User,
    parameters,
    text_response,
)

__all__ = [
    "MOST_BODY",
    "SHORT_QUERY",
    "Answer",
    "Peer",
    "Request",
    "Response",
    "Stream",
    "User",
    "parameters",
    "text_response",
]
