"""A request on its way through the server: messages, route, options, body, negotiation, presentation of the answer."""

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
