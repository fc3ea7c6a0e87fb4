"""The certificates group: requests to sign certificates, approved or denied by one, signed by another."""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from typing import Any, ClassVar

from ostinato.api import names
from ostinato.api.apply import field_path, from_paths, without
from ostinato.api.apply.fieldset import Filter
from ostinato.api.field_errors import FieldError, Path
from ostinato.server.resources.strategy import Json, NameRule, Strategy
from ostinato.world import Clock, World

_pem_block = re.compile(rb"(?:^|\n)-----BEGIN (?P<type>[^\n-]*)-----\n.*?\n-----END (?P=type)-----", re.DOTALL).search
_CONDITIONS = Path("status", "conditions")
_SHORTEST = 600
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
_APPLICABLE = {
    "": without(from_paths(field_path("spec"), field_path("status"))),
    "status": without(from_paths(field_path("spec"), field_path("status", "conditions"))),
    "approval": without(from_paths(field_path("spec"), field_path("status", "certificate"))),
}
_FINAL = ("Approved", "Denied", "Failed")


def _conditions(obj: Json) -> list[Json]:
    found: list[Json] = (obj.get("status") or {}).get("conditions") or []
    return found


class CertificateSigningRequest(Strategy):
    """What is asked never changes, nor does who asked; `approval` writes the conditions, `status` the certificate."""

    name_rule: ClassVar[NameRule] = staticmethod(names.name_is_path_segment)
    status = False  # which part of it may be written is said below
    empty_status: ClassVar[Json] = {}
    selectable = ("spec.signerName",)

    def __init__(self, clock: Clock | None = None) -> None:
        self._clock = clock
        if clock is not None:
            self.subresources = {"approval": _Approval(clock)}  # type: ignore[misc]

    def for_server(self, world: World) -> Strategy:
        return CertificateSigningRequest(world.clock)

    def applicable(self, subresource: str) -> Filter | None:
        return _APPLICABLE.get(subresource)

    def prepare_update(self, new: Json, old: Json) -> None:
        for field in ("spec", "status"):
            new[field] = old.get(field, {})

    def prepare_status_update(self, new: Json, old: Json) -> None:
        super().prepare_status_update(new, old)
        for kind in ("Approved", "Denied"):
            self._keep(new, old, kind)
        self._stamp(new, old)

    def _keep(self, new: Json, old: Json, kind: str) -> None:
        """Approvals and denials are not for signers to word."""
        before = [c for c in _conditions(old) if c.get("type") == kind]
        places = [i for i, c in enumerate(_conditions(new)) if c.get("type") == kind]
        if len(before) == len(places):
            for place, condition in zip(places, before, strict=True):
                new["status"]["conditions"][place] = condition

    def _stamp(self, new: Json, old: Json) -> None:
        """Conditions carry the times at which they came."""
        assert self._clock is not None
        now = self._clock.now().isoformat(timespec="seconds")[:19] + "Z"
        for condition in _conditions(new):
            condition["lastUpdateTime"] = condition.get("lastUpdateTime") or now
            if not condition.get("lastTransitionTime"):
                same = (
                    c["lastTransitionTime"]
                    for c in _conditions(old)
                    if c.get("type") == condition.get("type")
                    and c.get("status") == condition.get("status")
                    and c.get("lastTransitionTime")
                )
                condition["lastTransitionTime"] = next(same, now)

    def validate(self, obj: Json) -> list[FieldError]:
        spec, path = obj.get("spec") or {}, Path("spec")
        errors = []
        if not _is_request(spec.get("request") or ""):
            detail = "PEM block type must be CERTIFICATE REQUEST"
            errors.append(FieldError.invalid(path.child("request"), spec.get("request") or "", detail))
        usages = spec.get("usages") or []
        if not usages:
            errors.append(FieldError.required(path.child("usages")))
        for i, usage in enumerate(usages):
            if usage not in _USAGES:
                errors.append(FieldError.not_supported(path.child("usages").index(i), usage, _USAGES))
        for i, usage in enumerate(usages):
            if usage in usages[:i]:
                errors.append(FieldError.duplicate(path.child("usages").index(i), usage))
        errors += _signer_errors(spec.get("signerName", ""), path.child("signerName"))
        seconds = spec.get("expirationSeconds")
        if seconds is not None and seconds < _SHORTEST:
            detail = f"may not specify a duration less than {_SHORTEST} seconds (10 minutes)"
            errors.append(FieldError.invalid(path.child("expirationSeconds"), seconds, detail))
        return errors

    def validate_update(self, new: Json, old: Json) -> list[FieldError]:
        return _condition_errors(new, old, changeable=())

    def validate_status_update(self, new: Json, old: Json) -> list[FieldError]:
        return _condition_errors(new, old, changeable=("Failed",))

    def fields(self, obj: Mapping[str, Any]) -> dict[str, str]:
        return {"spec.signerName": (obj.get("spec") or {}).get("signerName", "")}


class _Approval(CertificateSigningRequest):
    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    def prepare_update(self, new: Json, old: Json) -> None:
        self._stamp(new, old)
        conditions = _conditions(new)
        new["spec"] = old.get("spec", {})
        new["status"] = {k: v for k, v in (old.get("status") or {}).items() if k != "conditions"}
        if conditions:
            new["status"]["conditions"] = conditions

    def validate_update(self, new: Json, old: Json) -> list[FieldError]:
        return _condition_errors(new, old, changeable=("Approved", "Denied"))


def _is_request(text: str) -> bool:
    """Whether a request, in base64, is a PEM block of a certificate request."""
    found = _pem_block(base64.b64decode(text))
    return found is not None and found["type"] == b"CERTIFICATE REQUEST"


def _signer_errors(name: str, path: Path) -> list[FieldError]:
    if not name:
        return [FieldError.required(path)]
    domain, slash, rest = name.partition("/")
    if not slash or not domain or not rest or "." not in domain:
        detail = "must be a fully qualified domain and path of the form 'example.com/signer-name'"
        return [FieldError.invalid(path, name, detail)]
    return [FieldError.invalid(path, name, text) for text in names.is_dns1123_subdomain(domain)]


def _condition_errors(new: Json, old: Json, *, changeable: tuple[str, ...]) -> list[FieldError]:
    """A verdict stays, and nobody gives one who may not."""
    before, after = ([c.get("type") for c in _conditions(obj)] for obj in (old, new))
    errors = []
    for kind in _FINAL:
        if kind in before and kind not in after:
            detail = f'updates may not remove a condition of type "{kind}"'
            errors.append(FieldError.forbidden(_CONDITIONS, detail))
        elif kind in after and kind not in before and kind not in changeable:
            detail = f'updates may not add a condition of type "{kind}"'
            errors.append(FieldError.forbidden(_CONDITIONS, detail))
    if "Approved" in after and "Denied" in after:
        errors.append(
            FieldError.invalid(_CONDITIONS, "Denied", "Approved and Denied conditions are mutually exclusive")
        )
    return errors


STRATEGIES: dict[tuple[str, str], Strategy] = {
    ("certificates.k8s.io", "certificatesigningrequests"): CertificateSigningRequest(),
}
