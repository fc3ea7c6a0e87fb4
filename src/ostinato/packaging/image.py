"""Container image references: `registry.example.com:5000/team/name:tag@sha256:…`."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from ostinato.packaging.error import PackageError

_PART: Final = r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*"
_HOST: Final = r"(?:[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?|\[[0-9a-fA-F:]+\])(?::[0-9]+)?"
_IMAGE: Final = re.compile(
    rf"(?P<repository>(?:{_HOST}/)?{_PART}(?:/{_PART})*)"
    r"(?::(?P<tag>\w[\w.-]{0,127}))?(?:@(?P<digest>sha256:[0-9a-f]{64}|sha512:[0-9a-f]{128}))?",
    re.ASCII,
)


class Image(NamedTuple):
    repository: str
    tag: str = ""
    digest: str = ""

    def __str__(self) -> str:
        tag = f":{self.tag}" if self.tag else ""
        return f"{self.repository}{tag}{'@' + self.digest if self.digest else ''}"


def parse_image(text: str) -> Image:
    """Return the parts of a reference; PackageError if it is not one."""
    found = _IMAGE.fullmatch(text)
    if found is None:
        raise PackageError(f"image {text!r} is not an image reference; use REGISTRY/NAME:TAG in lower case")
    return Image(found["repository"], found["tag"] or "", found["digest"] or "")
