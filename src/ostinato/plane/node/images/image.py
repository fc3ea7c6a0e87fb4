"""What an image says about the containers that are made of it."""

from __future__ import annotations

import platform
from pathlib import Path
from typing import Any, Final

import msgspec

_ARCHITECTURES: Final = {"x86_64": "amd64", "aarch64": "arm64", "armv7l": "arm", "i686": "386"}


class ImageError(ValueError):
    """An image cannot be read, unpacked or built; the message names the file and the reason."""


class ImageConfig(msgspec.Struct, frozen=True, rename="pascal"):
    """The part of an image's configuration that concerns its containers. An archive may have null for each field."""

    entrypoint: list[str] | None = None
    cmd: list[str] | None = None
    env: list[str] | None = None
    user: str | None = None
    working_dir: str | None = None
    stop_signal: str | None = None
    labels: dict[str, str] | None = None
    exposed_ports: dict[str, dict[str, Any]] | None = None

    @property
    def environment(self) -> dict[str, str]:
        return dict(each.partition("=")[::2] for each in self.env or [])


class RootFs(msgspec.Struct, frozen=True):
    """`diff_ids`: the digests of its layers, uncompressed."""

    diff_ids: list[str] = []
    type: str = "layers"


class ImageDocument(msgspec.Struct, frozen=True):
    """The configuration of an image, as stored; its digest is the id of the image."""

    architecture: str = ""
    os: str = ""
    config: ImageConfig | None = None
    rootfs: RootFs = RootFs()


class Image(msgspec.Struct, frozen=True, kw_only=True):
    """An image in the store.

    - `id`: the digest of its configuration; `manifest`: that of its manifest, by which others may name it.
    - `names`: with tags, as they were given.
    - `root`: its unpacked file system. Read-only: containers mount it as the lower layer.
    """

    id: str
    manifest: str
    names: list[str]
    size: int
    config: ImageConfig
    root: Path


def decode_document(data: bytes, source: str) -> ImageDocument:
    """Decode the configuration of an image; `ImageError` if that is malformed."""
    try:
        return msgspec.json.decode(data, type=ImageDocument)
    except msgspec.DecodeError as error:
        raise ImageError(f"{source}: the image's configuration is malformed: {error}") from None


def machine_architecture() -> str:
    """This machine's architecture in the terms of images."""
    return _ARCHITECTURES.get(platform.machine(), platform.machine())
