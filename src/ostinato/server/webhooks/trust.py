"""Trust: TLS contexts from CA bundles, and verification of host names.

Error messages are those of Go's crypto/x509, which users can search for.
"""

from __future__ import annotations

import ipaddress
import ssl
from collections import OrderedDict
from datetime import datetime
from typing import Any, Final

from ostinato.server.webhooks.target import CallError, Identity, Target, UnusableTarget
from ostinato.world import Clock

_MOST: Final = 100  # cached contexts
_EXPIRED: Final = frozenset({9, 10})  # OpenSSL error codes: not yet valid, expired


class Contexts:
    """Cache of TLS contexts by CA bundle and client identity, least recently used evicted."""

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[bytes, bool, Identity | None], ssl.SSLContext] = OrderedDict()

    def of(self, target: Target) -> ssl.SSLContext:
        """The context for a target; UnusableTarget if the CA bundle or the client key pair is invalid."""
        key = (target.bundle, target.insecure, target.identity)
        context = self._kept.get(key)
        if context is None:
            context = unverifying() if target.insecure else trusting(target.bundle)
            if target.identity is not None:
                _load_client_certificate(context, target.identity)
            self._kept[key] = context
            if len(self._kept) > _MOST:
                self._kept.popitem(last=False)
        self._kept.move_to_end(key)
        return context


def unverifying() -> ssl.SSLContext:
    """A context without verification."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def trusting(bundle: bytes) -> ssl.SSLContext:
    """A context that trusts a CA bundle, or the system's if it is empty; UnusableTarget if it is not PEM."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.check_hostname = False  # `check_host` does it, with Go's messages
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN  # any certificate of the bundle is a trust anchor
    if not bundle:
        context.load_default_certs()
        return context
    try:
        context.load_verify_locations(cadata=bundle.decode("ascii"))
    except (ssl.SSLError, ValueError):
        raise UnusableTarget("unable to load root certificates: unable to parse bytes as PEM block") from None
    return context


def _load_client_certificate(context: ssl.SSLContext, identity: Identity) -> None:
    """Load the client certificate of an identity, if it has one."""
    if not identity.certificate or identity.key is None:
        return
    from ostinato.client.config.key_pair import load_key_pair  # noqa: PLC0415 - seldom needed

    try:
        load_key_pair(context, identity.certificate, identity.key.reveal().encode("latin-1"))
    except (ssl.SSLError, ValueError):
        raise UnusableTarget("tls: client certificate and key are not a pair in PEM") from None


def has_expired(error: ssl.SSLError) -> bool:
    return isinstance(error, ssl.SSLCertVerificationError) and error.verify_code in _EXPIRED


def expired(certificate: bytes, clock: Clock) -> str:
    """The message for an expired or not yet valid certificate (DER)."""
    from cryptography.x509 import load_der_x509_certificate  # noqa: PLC0415 - seldom needed

    message = "tls: failed to verify certificate: x509: certificate has expired or is not yet valid"
    try:
        found = load_der_x509_certificate(certificate)
    except ValueError:
        return message
    now = clock.now()
    if now < found.not_valid_before_utc:
        return f"{message}: current time {_time(now)} is before {_time(found.not_valid_before_utc)}"
    return f"{message}: current time {_time(now)} is after {_time(found.not_valid_after_utc)}"


def _time(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def fault_of(error: ssl.SSLError) -> str:
    """The message for a failed TLS handshake."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return "tls: failed to verify certificate: x509: certificate signed by unknown authority"
    if error.reason in ("WRONG_VERSION_NUMBER", "HTTP_REQUEST"):
        return "http: server gave HTTP response to HTTPS client"
    return f"remote error: tls: {(error.reason or str(error)).replace('_', ' ').lower()}"


def check_host(certificate: dict[str, Any], host: str) -> None:
    """CallError if a valid certificate is not for the host."""
    names = certificate.get("subjectAltName", ())
    addresses = [value for kind, value in names if kind == "IP Address"]
    domains = [value for kind, value in names if kind == "DNS"]
    address = _address(host)
    if address is not None:
        if any(_address(value) == address for value in addresses):
            return
    elif any(_fits(domain, host) for domain in domains):
        return
    raise CallError(f"tls: failed to verify certificate: x509: {_not_for(certificate, host, addresses, domains)}")


def _not_for(certificate: dict[str, Any], host: str, addresses: list[str], domains: list[str]) -> str:
    common = [value for part in certificate.get("subject", ()) for key, value in part if key == "commonName"]
    if not certificate.get("subjectAltName") and any(_fits(name, host) for name in common):
        return "certificate relies on legacy Common Name field, use SANs instead"
    if _address(host) is None:
        valid = domains
    elif addresses:
        valid = addresses
    else:
        return f"cannot validate certificate for {host} because it doesn't contain any IP SANs"
    if not valid:
        return f"certificate is not valid for any names, but wanted to match {host}"
    return f"certificate is valid for {', '.join(valid)}, not {host}"


def _address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(text.strip("[]"))
    except ValueError:
        return None


def _fits(pattern: str, host: str) -> bool:
    """Whether a DNS name of a certificate, possibly with a wildcard, matches a host."""
    wanted, given = pattern.lower().rstrip(".").split("."), host.lower().rstrip(".").split(".")
    if len(wanted) != len(given) or not all(given):
        return False
    return wanted[1:] == given[1:] and (wanted[0] == given[0] or (wanted[0] == "*" and len(wanted) > 1))
