"""CertificateSubjectRestriction: rejects client certificate requests for the group system:masters."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ostinato.server.admission.chain import Plugin, resources
from ostinato.server.admission.objects import forbidden, is_of
from ostinato.server.resources.certificates.validation import parse_request
from ostinato.server.resources.strategy import Json

if TYPE_CHECKING:
    from ostinato.server.request.context import Context

_SIGNER = "kubernetes.io/kube-apiserver-client"
_MASTERS = "system:masters"


class CertificateSubjectRestriction(Plugin):
    covers = resources("certificatesigningrequests.certificates.k8s.io")

    async def validate(
        self, context: Context, operation: str, obj: Json | None, old: Json | None, options: Any
    ) -> None:
        if operation != "CREATE" or not is_of(context, "certificates.k8s.io", "certificatesigningrequests"):
            return
        assert obj is not None
        if obj["spec"].get("signerName") != _SIGNER:
            return
        from cryptography.x509.oid import NameOID  # noqa: PLC0415 - imported with the first request

        groups = parse_request(obj["spec"]["request"]).subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)
        if any(group.value == _MASTERS for group in groups):
            raise forbidden(context, obj, f"use of {_SIGNER} signer with {_MASTERS} group is not allowed")
