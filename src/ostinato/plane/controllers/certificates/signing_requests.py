"""CertificateSigningRequest controllers: approver, signer, cleaner.

- A kubelet client certificate is approved if a SubjectAccessReview allows it.
- A kubelet serving certificate is approved if the node requests it itself, for names and addresses of its Node only.
  kube-controller-manager does not do this. Other requests need manual approval.
- Approved requests for the built-in signers are signed with the cluster's CA, or with the one that the options name. A
  request that violates the rules of its signer gets the condition Failed.
- Requests are deleted one hour after they were signed, denied or failed, and 24 hours after creation if undecided.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ostinato.api.codec import to_dict
from ostinato.api.time import Time
from ostinato.client.patching import MergePatch
from ostinato.controllers import Context, Request, Result
from ostinato.kinds.authorization_v1 import ResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec
from ostinato.kinds.certificates_v1 import CertificateSigningRequest, CertificateSigningRequestCondition
from ostinato.kinds.core_v1 import Node
from ostinato.manager import Manager
from ostinato.plane.controllers import Options
from ostinato.world import World

if TYPE_CHECKING:
    from cryptography import x509

_CLIENT: Final = "kubernetes.io/kube-apiserver-client"
_NODE_CLIENT: Final = "kubernetes.io/kube-apiserver-client-kubelet"
_NODE_SERVING: Final = "kubernetes.io/kubelet-serving"
_LONGEST: Final = timedelta(days=365)
_SHORTEST: Final = timedelta(minutes=10)
_BACKDATED: Final = timedelta(minutes=5)
_DECIDED: Final = timedelta(hours=1)
_UNDECIDED: Final = timedelta(days=1)


def add_to(manager: Manager, options: Options) -> None:
    approver = Approver()
    manager.build("csrapproving-controller").watch_for(CertificateSigningRequest).complete(approver)
    manager.build("csrcleaner-controller").watch_for(CertificateSigningRequest).complete(Cleaner())
    signing = options.signing
    if signing is None and options.ca_certificate is not None and options.ca_key is not None:
        signing = options.ca_certificate, options.ca_key
    if signing is not None:
        signer = Signer(*signing)
        manager.build("csrsigning-controller").watch_for(CertificateSigningRequest).complete(signer)


class Approver:
    async def reconcile(self, request: Request, ctx: Context) -> None:
        csr = await ctx.client.get(CertificateSigningRequest, request, missing=None)
        if csr is None or csr.status.certificate or _has_condition(csr, "Approved") or _has_condition(csr, "Denied"):
            return
        if csr.spec.signer_name == _NODE_SERVING:
            await self._approve_serving(csr, ctx)
        if csr.spec.signer_name != _NODE_CLIENT:
            return
        parsed = _parse(csr)
        if parsed is None or _check_kubelet_client(parsed, set(csr.spec.usages)):
            return
        kinds = [("nodeclient", "Auto approving kubelet client certificate after SubjectAccessReview.")]
        if _common_name(parsed) == csr.spec.username:
            kinds.insert(
                0, ("selfnodeclient", "Auto approving self kubelet client certificate after SubjectAccessReview.")
            )
        for subresource, message in kinds:
            if await self._is_authorized(csr, subresource, ctx):
                now = Time.of(ctx.world.clock.now())
                await _add_condition(csr, "Approved", "AutoApproved", message, now, "approval", ctx)
                return

    async def _approve_serving(self, csr: CertificateSigningRequest, ctx: Context) -> None:
        """Approve a serving certificate for names and addresses of the requesting Node."""
        parsed = _parse(csr)
        if parsed is None or _check_kubelet_serving(parsed, set(csr.spec.usages)):
            return
        user = csr.spec.username or ""
        if _common_name(parsed) != user or "system:nodes" not in csr.spec.groups:
            return
        node = await ctx.client.get(Node, user.removeprefix("system:node:"), missing=None)
        if node is None:
            return
        own = {node.metadata.name, *(each.address for each in node.status.addresses)}
        names = _names_by_kind(parsed)
        if all(str(each.value) in own for each in (*names["DNS"], *names["IP"])):
            now = Time.of(ctx.world.clock.now())
            message = "Auto approving kubelet serving certificate for the addresses of its Node."
            await _add_condition(csr, "Approved", "AutoApproved", message, now, "approval", ctx)

    async def _is_authorized(self, csr: CertificateSigningRequest, subresource: str, ctx: Context) -> bool:
        attributes = ResourceAttributes(
            group="certificates.k8s.io",
            resource="certificatesigningrequests",
            verb="create",
            subresource=subresource,
            version="*",
        )
        spec = SubjectAccessReviewSpec(
            user=csr.spec.username,
            uid=csr.spec.uid,
            groups=csr.spec.groups,
            extra=csr.spec.extra,
            resource_attributes=attributes,
        )
        review = await ctx.client.live.create(SubjectAccessReview(spec=spec))
        return review.status.allowed


class Signer:
    def __init__(self, certificate: Path, key: Path) -> None:
        self._certificate = certificate
        self._key = key

    async def reconcile(self, request: Request, ctx: Context) -> None:
        csr = await ctx.client.get(CertificateSigningRequest, request, missing=None)
        if (
            csr is None
            or csr.status.certificate
            or not _has_condition(csr, "Approved")
            or _has_condition(csr, "Failed")
        ):
            return
        check = _CHECKS.get(csr.spec.signer_name)
        parsed = _parse(csr)
        if check is None or parsed is None:
            return
        if why := check(parsed, set(csr.spec.usages)):
            now = Time.of(ctx.world.clock.now())
            await _add_condition(csr, "Failed", "SignerValidationFailure", why, now, "status", ctx)
            return
        signed = await ctx.world.executor.run(self._sign, parsed, csr, ctx.world)
        change = {"metadata": {"uid": csr.metadata.uid}, "status": {"certificate": signed}}
        await ctx.client.patch(CertificateSigningRequest, request, MergePatch(change), subresource="status")

    def _sign(self, parsed: x509.CertificateSigningRequest, csr: CertificateSigningRequest, world: World) -> str:
        """Return the certificate: PEM, base64-encoded."""
        import base64  # noqa: PLC0415 - with what follows, for the few clusters where certificates are signed

        from cryptography import x509  # noqa: PLC0415
        from cryptography.hazmat.primitives import hashes, serialization  # noqa: PLC0415

        issuer = x509.load_pem_x509_certificate(self._certificate.read_bytes())
        key: Any = serialization.load_pem_private_key(self._key.read_bytes(), None)  # Any: of any key type
        begins = world.clock.now() - _BACKDATED
        ends = min(begins + _BACKDATED + _lifetime(csr.spec.expiration_seconds), issuer.not_valid_after_utc)
        usages = set(csr.spec.usages)
        builder = (
            x509.CertificateBuilder()
            .subject_name(parsed.subject)
            .issuer_name(issuer.subject)
            .public_key(parsed.public_key())
            .serial_number(int.from_bytes(world.ids.token(19), "big") | 1)
            .not_valid_before(begins)
            .not_valid_after(ends)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(x509.ExtendedKeyUsage(_extended_key_usages(usages)), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(key.public_key()), critical=False)
        )
        if (key_usage := _key_usage(usages)) is not None:
            builder = builder.add_extension(key_usage, critical=True)
        names = _alternative_names(parsed)
        if names is not None:
            builder = builder.add_extension(names, critical=False)
        pem = builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
        return base64.b64encode(pem).decode()


class Cleaner:
    async def reconcile(self, request: Request, ctx: Context) -> Result | None:
        csr = await ctx.client.get(CertificateSigningRequest, request, missing=None)
        if csr is None:
            return None
        left = _time_left(csr, ctx.world.clock.now())
        if left > 0:
            return Result(requeue_after=left)
        await ctx.client.delete(csr, missing_ok=True)
        return None


def _time_left(csr: CertificateSigningRequest, now: datetime) -> float:
    """Return the seconds until the request is deleted."""
    created = csr.metadata.creation_timestamp or Time.of(now)
    ends = [created + _UNDECIDED] if not csr.status.conditions else []
    for condition in csr.status.conditions:
        is_open = condition.type == "Approved" and not csr.status.certificate
        ends.append((condition.last_update_time or created) + (_UNDECIDED if is_open else _DECIDED))
    return (min(ends) - Time.of(now)).total_seconds()


async def _add_condition(
    csr: CertificateSigningRequest, kind: str, reason: str, message: str, now: Time, subresource: str, ctx: Context
) -> None:
    new = CertificateSigningRequestCondition(
        type=kind, status="True", reason=reason, message=message, last_update_time=now, last_transition_time=now
    )
    conditions = [to_dict(each) for each in (*csr.status.conditions, new)]
    change = {
        "metadata": {"resourceVersion": csr.metadata.resource_version},
        "status": {"conditions": conditions},
    }
    await ctx.client.patch(CertificateSigningRequest, csr.metadata, MergePatch(change), subresource=subresource)


def _has_condition(csr: CertificateSigningRequest, kind: str) -> bool:
    return any(each.type == kind and each.status == "True" for each in csr.status.conditions)


def _parse(csr: CertificateSigningRequest) -> x509.CertificateSigningRequest | None:
    """Return the parsed request; None if it is malformed or its signature is invalid."""
    from cryptography import x509  # noqa: PLC0415

    try:
        parsed = x509.load_pem_x509_csr(csr.spec.request)
    except ValueError:
        return None
    return parsed if parsed.is_signature_valid else None


# Rules of each signer: return "" if the request is valid, otherwise the reason.

_Check = Callable[["x509.CertificateSigningRequest", set[str]], str]


def _check_kubelet_client(parsed: x509.CertificateSigningRequest, usages: set[str]) -> str:
    if wrong := _check_kubelet_subject(parsed):
        return wrong
    for kind, names in _names_by_kind(parsed).items():
        if names:
            return f"{kind} subjectAltNames are not allowed"
    return _check_usages(usages, "client auth")


def _check_kubelet_serving(parsed: x509.CertificateSigningRequest, usages: set[str]) -> str:
    if wrong := _check_kubelet_subject(parsed):
        return wrong
    names = _names_by_kind(parsed)
    if not names["DNS"] and not names["IP"]:
        return "DNS or IP subjectAltName is required"
    for kind in ("Email", "URI"):
        if names[kind]:
            return f"{kind} subjectAltNames are not allowed"
    return _check_usages(usages, "server auth")


def _check_client(parsed: x509.CertificateSigningRequest, usages: set[str]) -> str:  # noqa: ARG001 - any subject is allowed
    for usage in sorted(usages - {"digital signature", "key encipherment", "client auth"}):
        return f"invalid usage for client certificate: {usage}"
    return "" if "client auth" in usages else "missing required usage for client certificate: client auth"


_CHECKS: Final[dict[str, _Check]] = {
    _CLIENT: _check_client,
    _NODE_CLIENT: _check_kubelet_client,
    _NODE_SERVING: _check_kubelet_serving,
}


def _check_usages(usages: set[str], purpose: str) -> str:
    needed = {"digital signature", "key encipherment", purpose}
    if usages in (needed, needed - {"key encipherment"}):
        return ""
    return f"usages did not match [{' '.join(sorted(needed))}]"


def _check_kubelet_subject(parsed: x509.CertificateSigningRequest) -> str:
    from cryptography.x509 import NameOID  # noqa: PLC0415

    organisations = [each.value for each in parsed.subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)]
    if organisations != ["system:nodes"]:
        return "subject organization is not system:nodes"
    if not _common_name(parsed).startswith("system:node:"):
        return "subject common name does not begin with system:node:"
    return ""


def _common_name(parsed: x509.CertificateSigningRequest) -> str:
    from cryptography.x509 import NameOID  # noqa: PLC0415

    return next((str(each.value) for each in parsed.subject.get_attributes_for_oid(NameOID.COMMON_NAME)), "")


def _alternative_names(parsed: x509.CertificateSigningRequest) -> x509.SubjectAlternativeName | None:
    from cryptography import x509  # noqa: PLC0415

    try:
        return parsed.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return None


def _names_by_kind(parsed: x509.CertificateSigningRequest) -> dict[str, list[Any]]:
    from cryptography import x509  # noqa: PLC0415

    names = _alternative_names(parsed)
    kinds = {"DNS": x509.DNSName, "Email": x509.RFC822Name, "IP": x509.IPAddress, "URI": x509.UniformResourceIdentifier}
    return {kind: [each for each in names or () if isinstance(each, cls)] for kind, cls in kinds.items()}


def _key_usage(usages: set[str]) -> x509.KeyUsage | None:
    """Return the extension; None without a usage, since OpenSSL rejects certificates whose extension is empty."""
    from cryptography import x509  # noqa: PLC0415

    if not usages & {"digital signature", "key encipherment"}:
        return None
    return x509.KeyUsage(
        digital_signature="digital signature" in usages,
        content_commitment=False,
        key_encipherment="key encipherment" in usages,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=False,
        crl_sign=False,
        encipher_only=False,
        decipher_only=False,
    )


def _extended_key_usages(usages: set[str]) -> list[Any]:
    from cryptography.x509.oid import ExtendedKeyUsageOID  # noqa: PLC0415

    known = {"client auth": ExtendedKeyUsageOID.CLIENT_AUTH, "server auth": ExtendedKeyUsageOID.SERVER_AUTH}
    return [oid for usage, oid in known.items() if usage in usages]


def _lifetime(seconds: int | None) -> timedelta:
    return _LONGEST if seconds is None else min(max(timedelta(seconds=seconds), _SHORTEST), _LONGEST)
