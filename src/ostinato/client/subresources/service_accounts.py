"""Token subresource of service accounts (TokenRequest).

token = await client.service_accounts.token("builder", expiration=600)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ostinato.api.codec import from_json, to_json
from ostinato.api.object import kind_of
from ostinato.client.discovery.paths import Key
from ostinato.client.requests import Content, Requests

if TYPE_CHECKING:
    from ostinato.kinds.authentication_v1 import BoundObjectReference, TokenRequest


class ServiceAccounts:
    def __init__(self, requests: Requests) -> None:
        self._requests = requests

    async def token(
        self,
        name: Key,
        *,
        namespace: str | None = None,
        audiences: Sequence[str] = (),
        expiration: int | None = None,
        bound_to: BoundObjectReference | None = None,
    ) -> TokenRequest:
        """Request a token, which is in `status.token` of the result.

        - `audiences`: Defaults to the server's.
        - `expiration`: seconds of validity. Defaults to the server's choice.
        - `bound_to`: a Pod, Secret or Node, with whose deletion the token becomes invalid. Defaults to None.
        """
        from ostinato.kinds.authentication_v1 import TokenRequest, TokenRequestSpec  # noqa: PLC0415
        from ostinato.kinds.core_v1 import ServiceAccount  # noqa: PLC0415 - imported on first use

        spec = TokenRequestSpec(audiences=[*audiences], expiration_seconds=expiration, bound_object_ref=bound_to)
        request = TokenRequest(spec=spec)
        target = self._requests.target(kind_of(ServiceAccount), name, namespace, "token")
        return from_json(TokenRequest, await self._requests.send("POST", target, Content(body=to_json(request))))
