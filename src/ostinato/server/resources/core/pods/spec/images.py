"""Image references: the tag, and the default pull policy."""

from __future__ import annotations

import re
from functools import lru_cache

_COMPONENT = r"[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*"
_DOMAIN_PART = r"(?:[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?)"
_is_domain = re.compile(
    rf"(?:{_DOMAIN_PART}(?:\.{_DOMAIN_PART})*|\[[a-fA-F0-9:]+\])(?::[0-9]+)?|{_COMPONENT}"
).fullmatch
_reference = re.compile(
    rf"(?P<path>{_COMPONENT}(?:/{_COMPONENT})*)"
    r"(?::(?P<tag>[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}))?"
    r"(?P<digest>@(?:sha256:[a-f0-9]{64}|sha384:[a-f0-9]{96}|sha512:[a-f0-9]{128}))?"
).fullmatch
_is_identifier = re.compile(r"[a-f0-9]{64}").fullmatch
_LONGEST_PATH = 255
_LONGEST_KEPT = 512


def pull_policy(image: str) -> str:
    """The default imagePullPolicy of an image: Always for the tag `latest`."""
    if len(image) > _LONGEST_KEPT:
        return "IfNotPresent" if tag_of(image) != "latest" else "Always"
    return _pull_policy(image)


@lru_cache(maxsize=1024)
def _pull_policy(image: str) -> str:
    return "Always" if tag_of(image) == "latest" else "IfNotPresent"


def tag_of(image: str) -> str:
    """The tag; `latest` without tag and digest; "" for a digest, or if the reference is malformed."""
    if _is_identifier(image):
        return ""
    domain, slash, rest = image.partition("/")
    if not slash:
        rest = image
    elif domain == "localhost" or "." in domain or ":" in domain or domain.lower() != domain:
        if not _is_domain(domain):
            return ""
    else:
        rest = image
    found = _reference(rest)
    if found is None or len(found["path"]) > _LONGEST_PATH:
        return ""
    return found["tag"] or ("" if found["digest"] else "latest")
