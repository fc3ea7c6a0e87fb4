"""CertificateApproval and CertificateSigning: permissions on signers of CertificateSigningRequests.

The verb `approve` on the signer allows to approve or deny, `sign` to set the certificate or the Failed condition. A
signer `example.com/*` covers all signers of the domain.
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
_GUARDED = ("certificate", "conditions")  # status fields that need the permission


class _SignerPermission(Plugin):
    covers = resources(f"certificatesigningrequests.{_GROUP}")
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
        if verb == "sign" and _guarded(obj) == _guarded(old):
            return
        signer = (old or {})["spec"]["signerName"]
        for name in (signer, f"{signer.partition('/')[0]}/*"):
            if (await self._authorizer.decide(user, RequestAttributes(verb, _GROUP, "signers", name=name))).allowed:
                return
        raise forbidden(context, old, f"user not permitted to {verb} requests with signerName {quote(signer)}")


class CertificateApproval(_SignerPermission):
    verb, subresource = "approve", "approval"


class CertificateSigning(_SignerPermission):
    verb, subresource = "sign", "status"


def _guarded(request: Json | None) -> list[Any]:
    status = (request or {}).get("status") or {}
    return [status.get(field) for field in _GUARDED]
