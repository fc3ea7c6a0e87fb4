"""Signing requests are decided by who may for their signer: the verb `approve` on it to approve or deny them, `sign`
to give them a certificate or to say that there will be none.

A right to `example.com/*` is one to all signers of that domain.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from ostinato.api.text.go_format import quote
from ostinato.server.access.attributes import RequestAttributes
from ostinato.server.access.authorization.authorizer import MASTERS, Authorizer
from ostinato.server.admission.chain import Plugin, resources
from ostinato.server.admission.objects import forbidden
from ostinato.server.resources.strategy import Json

if TYPE_CHECKING:
    from ostinato.server.request.context import Context

_GROUP = "certificates.k8s.io"
_DECIDING = ("certificate", "conditions")  # the fields of a status that decide


class _SignerRights(Plugin):
    about = resources(f"certificatesigningrequests.{_GROUP}")
    verb: ClassVar[str]
    subresource: ClassVar[str]

    def __init__(self, authorizer: Authorizer) -> None:
        self._authorizer = authorizer

    async def validate(
        self, context: Context, operation: str, obj: Json | None, old: Json | None, options: Any
    ) -> None:
        verb, user = self.verb, context.request.user
        if (
            context.route.subresource != self.subresource
            or operation != "UPDATE"
            or user is None
            or MASTERS in user.groups
        ):
            return
        if verb == "sign" and _decided(obj) == _decided(old):
            return
        signer = (old or {})["spec"]["signerName"]
        for name in (signer, f"{signer.partition('/')[0]}/*"):
            if (await self._authorizer.decide(user, RequestAttributes(verb, _GROUP, "signers", name=name))).allowed:
                return
        raise forbidden(context, old, f"user not permitted to {verb} requests with signerName {quote(signer)}")


class CertificateApproval(_SignerRights):
    verb, subresource = "approve", "approval"


class CertificateSigning(_SignerRights):
    verb, subresource = "sign", "status"


def _decided(request: Json | None) -> list[Any]:
    status = (request or {}).get("status") or {}
    return [status.get(field) for field in _DECIDING]
