"""Responses for errors: Statuses as of kube-apiserver; an unexpected error is logged, and not told to the client."""

from __future__ import annotations

import logging
from typing import Final

from ostinato.api.errors import APIError, InternalError, ServiceUnavailable, Timeout, Unknown
from ostinato.api.text.go_format import quote
from ostinato.server.access.authorization.authorizer import AuthorizationFailed
from ostinato.server.flow.control import TooManyRequests
from ostinato.server.request import Request, Response, text_response
from ostinato.server.request.negotiate import status_form
from ostinato.server.request.present import error_response
from ostinato.server.store.records import OutcomeUnknown, StoreFailed, StoreFull

TIMED_OUT: Final = "request did not complete within requested timeout - context deadline exceeded"
_logger = logging.getLogger(__name__)


def refusal(request: Request, error: Exception) -> Response:
    """Build the response for an error."""
    if isinstance(error, APIError):
        return error_response(error, status_form(request))
    if isinstance(error, TooManyRequests):
        return error.answer()
    if isinstance(error, AuthorizationFailed):
        target = f"{request.path}?{request.query_string}" if request.query_string else request.path
        return text_response(500, f"Internal Server Error: {quote(target)}: {error}\n")
    if isinstance(error, OutcomeUnknown):
        unknown = Timeout.of(TIMED_OUT, 0) if error.timed_out else Unknown.of(f"rpc error: {error}")
        return error_response(unknown, status_form(request))
    if isinstance(error, StoreFull):
        return error_response(Unknown.of(str(error)), status_form(request))
    if isinstance(error, StoreFailed):
        return error_response(ServiceUnavailable.of(str(error)), status_form(request))
    _logger.error("request failed method=%s path=%s", request.method, request.path, exc_info=error)
    if request.audit is not None:
        request.audit.panic = str(error)
    return error_response(InternalError.of("internal error; see the server log"))
