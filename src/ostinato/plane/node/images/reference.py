"""Image references: `[domain[:port]/]path[:tag][@digest]`."""

from __future__ import annotations

import re
from typing import Final

_COMPONENT: Final = r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*"
_LABEL: Final = r"(?:[a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9])"
_REFERENCE: Final = re.compile(
    rf"(?P<name>(?:(?:{_LABEL}(?:\.{_LABEL})*|\[[a-fA-F0-9:]+\])(?::[0-9]+)?/)?{_COMPONENT}(?:/{_COMPONENT})*)"
    r"(?::(?P<tag>[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}))?"
    r"(?:@(?P<digest>[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,}))?"
)
_IDENTIFIER: Final = re.compile(r"[a-f0-9]{64}")
_LONGEST_NAME: Final = 255  # characters of the path
_LONGEST: Final = 4096  # characters; longer input is not matched
_DOMAIN: Final = "docker.io"


def with_tag(image: str) -> str:
    """Return the reference, with the tag `latest` if it has neither tag nor digest; ValueError if it is invalid."""
    if _IDENTIFIER.fullmatch(image):
        raise ValueError(f"invalid repository name ({image}), cannot specify 64-byte hexadecimal strings")
    domain, path = _split(image)
    repository = path.partition(":")[0]
    if repository != repository.lower():
        raise ValueError(f"invalid reference format: repository name ({repository}) must be lowercase")
    if len(image) > _LONGEST:
        raise ValueError("invalid reference format")
    found = _REFERENCE.fullmatch(f"{domain}/{path}")
    if found is None:
        raise ValueError("invalid reference format")
    if len(found["name"]) - len(domain) - 1 > _LONGEST_NAME:
        raise ValueError(f"repository name must not be more than {_LONGEST_NAME} characters")
    return image if found["tag"] or found["digest"] else f"{image}:latest"


def full_name(image: str) -> str:
    """Return the reference with its domain and a tag or digest: `busybox` is `docker.io/library/busybox:latest`."""
    domain, path = _split(with_tag(image))
    return f"{domain}/{path}"


def _split(image: str) -> tuple[str, str]:
    """Split into domain, docker.io by default, and path."""
    domain, slash, rest = image.partition("/")
    if slash and (domain == "localhost" or "." in domain or ":" in domain or domain != domain.lower()):
        return domain, rest
    return _DOMAIN, image if slash else f"library/{image}"
