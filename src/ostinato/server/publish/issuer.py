"""The issuer of service account tokens: where others find the keys to verify them.

The server signs no tokens yet: the documents are there, the set of keys is empty.
"""

from __future__ import annotations

import msgspec

from ostinato.server.negotiate import JSON
from ostinato.server.request import Request, Response

CONFIGURATION = "/.well-known/openid-configuration"
KEYS = "/openid/v1/jwks"

_ISSUER = "https://kubernetes.default.svc"
_AN_HOUR = (("Cache-Control", "public, max-age=3600"),)


def configuration_answer(request: Request) -> Response:
    """What /.well-known/openid-configuration answers."""
    told = {
        "issuer": _ISSUER,
        "jwks_uri": f"https://{request.headers.get('host', '')}{KEYS}",
        "response_types_supported": ["id_token"],
        "subject_types_supported": ["public"],
        "id_token_signing_alg_values_supported": [],
    }
    return Response(200, msgspec.json.encode(told), JSON, _AN_HOUR)


def keys_answer() -> Response:
    """What /openid/v1/jwks answers."""
    return Response(200, b'{"keys":[]}', "application/jwk-set+json", _AN_HOUR)
