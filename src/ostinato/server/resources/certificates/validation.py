"""Validation of CertificateSigningRequests: request, conditions, certificate.

- Approved and Denied conditions are set through `approval` only, and never removed.
- The certificate is set through `status` only, and never changed.
- Errors that the stored object already had are ignored on an update.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from ostinato.api.text.go_format import quote
from ostinato.api.validation import names
from ostinato.api.validation.field_errors import FieldError, Path
from ostinato.server.resources.strategy import Json

if TYPE_CHECKING:
    from cryptography.x509 import CertificateSigningRequest

_PEM = re.compile(rb"(?:^|\n)-----BEGIN (?P<type>[^\n-]*)-----\s*\n(?P<inside>.*?)\n-----END (?P=type)-----", re.DOTALL)
_SPEC = Path("spec")
_CONDITIONS = Path("status", "conditions")
_CERTIFICATE = Path("status", "certificate")
_SHORTEST = 600
_LONGEST_DOMAIN, _LONGEST_SIGNER = 253, 571
_LEGACY = "kubernetes.io/legacy-unknown"
_REQUEST_TYPE, _CERTIFICATE_TYPE = "CERTIFICATE REQUEST", "CERTIFICATE"
_USAGES = (
    "any",
    "cert sign",
    "client auth",
    "code signing",
    "content commitment",
    "crl sign",
    "data encipherment",
    "decipher only",
    "digital signature",
    "email protection",
    "encipher only",
    "ipsec end system",
    "ipsec tunnel",
    "ipsec user",
    "key agreement",
    "key encipherment",
    "microsoft sgc",
    "netscape sgc",
    "ocsp signing",
    "s/mime",
    "server auth",
    "signing",
    "timestamping",
)
_APPROVED, _DENIED, _FAILED = "Approved", "Denied", "Failed"
_STATES = ("False", "True", "Unknown")


def conditions_of(obj: Json) -> list[Json]:
    found: list[Json] = (obj.get("status") or {}).get("conditions") or []
    return found


def parse_request(text: str) -> CertificateSigningRequest:
    """Parse the request from base64 of PEM; ValueError if it is invalid."""
    from cryptography import x509  # noqa: PLC0415 - loads with the first request

    block = next(_blocks(base64.b64decode(text)), None)
    if block is None or block.type != _REQUEST_TYPE:
        raise ValueError("PEM block type must be CERTIFICATE REQUEST")
    try:
        return x509.load_der_x509_csr(block.content)
    except ValueError:
        raise ValueError("asn1: structure error: this is no certificate request") from None


def validate(obj: Json, old: Json | None) -> list[FieldError]:
    spec = obj.get("spec") or {}
    errors = []
    why = _wrong_request(spec.get("request") or "")
    if why:
        errors.append(FieldError.invalid(_SPEC.child("request"), spec.get("request"), why))
    errors += _wrong_usages(spec.get("usages") or [])
    errors += _wrong_signer(spec.get("signerName", ""), _SPEC.child("signerName"))
    seconds = spec.get("expirationSeconds")
    if seconds is not None and seconds < _SHORTEST:
        detail = f"may not specify a duration less than {_SHORTEST} seconds (10 minutes)"
        errors.append(FieldError.invalid(_SPEC.child("expirationSeconds"), seconds, detail))
    errors += _wrong_conditions(obj, old)
    certificate = _certificate(obj)
    if old is None or (certificate != _certificate(old) and not _wrong_certificate(_certificate(old))):
        why = _wrong_certificate(certificate)
        if why:
            errors.append(FieldError.invalid(_CERTIFICATE, "<certificate data>", why))
    return errors


def validate_update(new: Json, old: Json, *, approval: bool = False, certificate: bool = False) -> list[FieldError]:
    """Validate an update; the allowed changes depend on the subresource."""
    errors = validate(new, old)
    before, after = ([c.get("type", "") for c in conditions_of(obj)] for obj in (old, new))
    for kind in (_APPROVED, _DENIED, _FAILED):
        if after.count(kind) < before.count(kind):
            detail = f"updates may not remove a condition of type {quote(kind)}"
            errors.append(FieldError.forbidden(_CONDITIONS, detail))
    for kind in () if approval else (_APPROVED, _DENIED):
        if after.count(kind) > before.count(kind):
            detail = f"updates may not add a condition of type {quote(kind)}"
            errors.append(FieldError.forbidden(_CONDITIONS, detail))
    if _certificate(new) != _certificate(old):
        if not certificate:
            errors.append(FieldError.forbidden(_CERTIFICATE, "updates may not set certificate content"))
        elif _certificate(old):
            errors.append(FieldError.forbidden(_CERTIFICATE, "updates may not modify existing certificate content"))
    return errors


class _Block(NamedTuple):
    type: str
    content: bytes
    headers: bool


def _blocks(data: bytes) -> Iterator[_Block]:
    """The PEM blocks of a text; text between them and blocks that are not base64 are skipped."""
    for found in _PEM.finditer(data):
        head, blank, rest = found["inside"].partition(b"\n\n")
        headers = bool(blank) and b":" in head
        try:
            content = base64.b64decode(b"".join((rest if headers else found["inside"]).split()), validate=True)
        except ValueError:
            continue
        yield _Block(found["type"].decode(errors="replace"), content, headers)


def _certificate(obj: Json) -> str:
    text: str = (obj.get("status") or {}).get("certificate") or ""
    return text


def _wrong_request(text: str) -> str:
    try:
        return "" if parse_request(text).is_signature_valid else "x509: the signature does not fit the request"
    except ValueError as error:
        return str(error)


def _wrong_certificate(text: str) -> str:
    """Why base64 text is not a PEM list of certificates; "" if it is."""
    if not text:
        return ""
    from cryptography import x509  # noqa: PLC0415 - loads with the first certificate

    blocks = list(_blocks(base64.b64decode(text)))
    for block in blocks:
        if block.type != _CERTIFICATE_TYPE:
            return f"only CERTIFICATE PEM blocks are allowed, found {quote(block.type)}"
        if block.headers:
            return "no PEM block headers are permitted"
        try:
            x509.load_der_x509_certificate(block.content)
        except ValueError:
            return "x509: malformed certificate"
    return "" if blocks else "must contain at least one CERTIFICATE PEM block"


def _wrong_usages(usages: list[str]) -> list[FieldError]:
    path = _SPEC.child("usages")
    errors = [] if usages else [FieldError.required(path)]
    for i, usage in enumerate(usages):
        if usage not in _USAGES:
            errors.append(FieldError.not_supported(path.index(i), usage, _USAGES))
    return errors + [
        FieldError.duplicate(path.index(i), usage) for i, usage in enumerate(usages) if usage in usages[:i]
    ]


def _wrong_signer(name: str, path: Path) -> list[FieldError]:
    if not name:
        return [FieldError.required(path)]
    if name == _LEGACY:
        return [FieldError.invalid(path, name, "the legacy signerName is not allowed via this API version")]
    if name.count("/") != 1:
        detail = "must be a fully qualified domain and path of the form 'example.com/signer-name'"
        return [FieldError.invalid(path, name, detail)]
    domain, rest = name.split("/")
    errors = []
    if len(domain) > _LONGEST_DOMAIN:
        errors.append(FieldError.too_long(path, _LONGEST_DOMAIN))
    errors += _wrong_labels(domain, path, names.is_dns1123_label)
    if "." not in domain:
        detail = "should be a domain with at least two segments separated by dots"
        errors.append(FieldError.invalid(path, domain, detail))
    errors += _wrong_labels(rest, path, names.is_dns1123_subdomain)
    if len(name) > _LONGEST_SIGNER:
        errors.append(FieldError.too_long(path, _LONGEST_SIGNER))
    return errors


def _wrong_labels(value: str, path: Path, rule: Callable[[str], list[str]]) -> list[FieldError]:
    """The errors of the first invalid label of a dotted name."""
    for label in value.split("."):
        found = rule(label)
        if found:
            return [FieldError.invalid(path, value, f"validating label {quote(label)}: {text}") for text in found]
    return []


def _wrong_conditions(obj: Json, old: Json | None) -> list[FieldError]:
    before = [] if old is None else [c.get("type", "") for c in conditions_of(old)]
    both_before = _APPROVED in before and _DENIED in before
    errors, seen = [], set[str]()
    for i, condition in enumerate(conditions_of(obj)):
        path, kind, state = _CONDITIONS.index(i), condition.get("type", ""), condition.get("status", "")
        if not kind and "" not in before:
            errors.append(FieldError.required(path.child("type")))
        allowed = ("True",) if kind in (_APPROVED, _DENIED, _FAILED) else _STATES
        if not state:
            errors.append(FieldError.required(path.child("status")))
        elif state not in allowed:
            errors.append(FieldError.not_supported(path.child("status"), state, allowed))
        other = {_APPROVED: _DENIED, _DENIED: _APPROVED}.get(kind)
        if other in seen and not both_before:
            detail = "Approved and Denied conditions are mutually exclusive"
            errors.append(FieldError.invalid(_CONDITIONS, kind, detail))
        if kind in seen and len(set(before)) == len(before):
            errors.append(FieldError.duplicate(path.child("type"), kind))
        seen.add(kind)
    return errors
