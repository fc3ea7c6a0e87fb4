"""OpenID discovery: the issuer of service account tokens, and the keys that verify them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from ostinato.server.request import Request, Response
from ostinato.server.request.negotiate import JSON

if TYPE_CHECKING:
    from ostinato.server.access.authentication.assembly import Authentication

CONFIGURATION = "/.well-known/openid-configuration"
KEYS = "/openid/v1/jwks"

_AN_HOUR = (("Cache-Control", "public, max-age=3600"),)


class Issuer:
    """The OpenID documents. They are served only if the issuer is an HTTPS URL without query and fragment."""

    def __init__(self, authentication: Authentication) -> None:
        self._tokens = authentication.account_tokens
        self._jwks_uri = authentication.settings.accounts.jwks_uri
        issuer = self._tokens.issuer
        self.is_published = issuer.startswith("https://") and not {"?", "#"} & set(issuer)
        self.paths = (CONFIGURATION, KEYS) if self.is_published else ()

    def configuration(self, request: Request) -> Response:
        """The response of /.well-known/openid-configuration."""
        document = {
            "issuer": self._tokens.issuer,
            "jwks_uri": self._jwks_uri or f"https://{request.headers.get('host', '')}{KEYS}",
            "response_types_supported": ["id_token"],
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": sorted({key.algorithm for key in self._tokens.keys.all}),
        }
        return Response(200, msgspec.json.encode(document), JSON, _AN_HOUR)

    def keys(self) -> Response:
        """The response of /openid/v1/jwks."""
        document = {"keys": [key.to_json() for key in self._tokens.keys.all]}
        return Response(200, msgspec.json.encode(document), "application/jwk-set+json", _AN_HOUR)
