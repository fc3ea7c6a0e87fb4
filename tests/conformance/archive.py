"""Container images as archives that `ctr images import` reads: layers of files of this machine and of the suite."""

from __future__ import annotations

import hashlib
import io
import json
import platform
import subprocess
import tarfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any, Final

_PATH: Final = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_ARCHITECTURES: Final = {"x86_64": "amd64", "aarch64": "arm64"}


class Layer:
    """A tar file under construction; the first entry of a path wins."""

    def __init__(self) -> None:
        self._buffer = io.BytesIO()
        self._tar = tarfile.TarFile(fileobj=self._buffer, mode="w")
        self._paths: set[str] = set()

    def directory(self, path: str, mode: int = 0o755) -> None:
        for each in reversed(PurePosixPath(path).parents[:-1]):
            self._add(str(each), tarfile.DIRTYPE, 0o755)
        self._add(path, tarfile.DIRTYPE, mode)

    def file(self, path: str, content: bytes, mode: int = 0o644) -> None:
        if len(PurePosixPath(path).parts) > 1:
            self.directory(str(PurePosixPath(path).parent))
        self._add(path, tarfile.REGTYPE, mode, content)

    def link(self, path: str, target: str) -> None:
        self._add(path, tarfile.SYMTYPE, 0o777, target=target)

    def program(self, source: Path, path: str = "") -> None:
        """Add a program of this machine with its libraries."""
        self.file(path or str(source).lstrip("/"), source.resolve().read_bytes(), 0o755)
        listed = subprocess.run(["ldd", str(source)], capture_output=True, text=True, check=False).stdout
        for word in listed.split():
            if word.startswith("/"):
                self.file(word.lstrip("/"), Path(word).resolve().read_bytes(), 0o755)

    def content(self) -> bytes:
        self._tar.close()
        return self._buffer.getvalue()

    def _add(self, path: str, kind: bytes, mode: int, content: bytes = b"", target: str = "") -> None:
        if path in self._paths:
            return
        self._paths.add(path)
        entry = tarfile.TarInfo(path)
        entry.type, entry.mode, entry.size, entry.linkname = kind, mode, len(content), target
        self._tar.addfile(entry, io.BytesIO(content))


@dataclass(frozen=True)
class Image:
    """An image: its names, its layers and its configuration (`Entrypoint`, `Cmd`, `User`)."""

    names: Sequence[str]
    layers: Sequence[bytes]
    config: Mapping[str, Any] = field(default_factory=dict)


def write_archive(path: Path, images: Sequence[Image]) -> None:
    """Write images as one archive; layers that they share are written once."""
    blobs: dict[str, bytes] = {}
    manifest = []
    for image in images:
        digests = [hashlib.sha256(layer).hexdigest() for layer in image.layers]
        blobs |= {f"{digest}.tar": layer for digest, layer in zip(digests, image.layers, strict=True)}
        settings = {
            "architecture": _ARCHITECTURES.get(platform.machine(), platform.machine()),
            "os": "linux",
            "config": {"Env": [_PATH], **image.config},
            "rootfs": {"type": "layers", "diff_ids": [f"sha256:{digest}" for digest in digests]},
            "comment": image.names[0],  # images of equal content must have different ids
        }
        encoded = json.dumps(settings, sort_keys=True).encode()
        name = f"{hashlib.sha256(encoded).hexdigest()}.json"
        blobs[name] = encoded
        layers = [f"{digest}.tar" for digest in digests]
        manifest.append({"Config": name, "RepoTags": list(image.names), "Layers": layers})
    blobs["manifest.json"] = json.dumps(manifest).encode()
    unfinished = path.with_name(f"{path.name}.new")
    with tarfile.open(unfinished, "w") as archive:
        for name, content in blobs.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    unfinished.replace(path)
