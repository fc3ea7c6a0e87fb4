"""Forwarding to extension servers, with the identity of the user instead of their credentials.

- The path and the query are encoded anew from their decoded form, which is what was authorized.
- A redirect becomes an error: a client would send its credentials elsewhere (CVE-2022-3172).
- Errors are plain text, as those of kube-aggregator.
"""

from __future__ import annotations

import logging
from typing import Final
from urllib.parse import quote as quote_path
from urllib.parse import unquote, urlencode

from ostinato.api.errors import APIError, RequestEntityTooLarge
from ostinato.server.aggregation.api_services import ApiService
from ostinato.server.aggregation.backends import Backends, UnresolvedError, UnusableTlsError
from ostinato.server.aggregation.front_proxy import identity_fields
from ostinato.server.backends.forwarding import Passage, forward
from ostinato.server.backends.headers import IdentityHeaders
from ostinato.server.request import Answer, Request, text_response
from ostinato.world import Clock

_UNAVAILABLE: Final = "service unavailable\n"
_logger = logging.getLogger(__name__)


class AggregationProxy:
    def __init__(self, backends: Backends, identity: IdentityHeaders, clock: Clock) -> None:
        """`identity`: headers that are not forwarded."""
        self._backends = backends
        self._identity = identity
        self._clock = clock

    async def forward(self, service: ApiService, request: Request) -> Answer:
        """Forward an authorized request."""
        if not service.available:
            return text_response(503, _UNAVAILABLE)
        assert request.user is not None, "authorized"
        try:
            backend = await self._backends.of(service)
            fields = [*identity_fields(request.user)]
        except UnresolvedError as error:
            _logger.warning("extension server cannot be resolved apiservice=%s error=%s", service.name, error)
            return text_response(503, _UNAVAILABLE)
        except UnusableTlsError as error:
            return text_response(500, f"{error}\n")
        except ValueError as error:
            return text_response(503, f"error trying to reach service: {error}\n")
        passage = Passage(self._identity, fields, _query(request), redirects=False)
        try:
            return await forward(request, backend, quoted(unquote(request.path)), self._clock, passage)
        except RequestEntityTooLarge:
            raise
        except APIError as error:
            return text_response(503, f"{error.message}\n")


def quoted(path: str) -> str:
    return quote_path(path, safe="/$&+,:;=@~")


def _query(request: Request) -> str:
    pairs = [(key, value) for key in sorted(request.query) for value in request.query[key]]
    return urlencode(pairs)
