"""Build images from directories and Dockerfiles, as OCI archives. No container is run, and no registry is asked.

- A directory becomes one layer; a Dockerfile a layer per COPY, on top of those of its base image.
- The same input gives the same image: entries are sorted, and times are those of the files.
"""

from __future__ import annotations

import hashlib
import io
import os
import stat
import tarfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import msgspec

from ostinato.plane.node.images.image import ImageConfig, ImageError, machine_architecture
from ostinato.plane.node.images.reference import full_name

Owner = tuple[int, int] | None  # None: that of the file
_LAYER: Final = "application/vnd.oci.image.layer.v1.tar"
_CONFIG: Final = "application/vnd.oci.image.config.v1+json"
_MANIFEST: Final = "application/vnd.oci.image.manifest.v1+json"


class Layer(msgspec.Struct, frozen=True):
    """An uncompressed layer in a file."""

    path: Path
    digest: str


@contextmanager
def new_layer(path: Path) -> Iterator[tuple[tarfile.TarFile, Callable[[], Layer]]]:
    """Write a layer: yields the archive, and a function that returns the layer once the block has ended."""
    with tarfile.open(path, "w", format=tarfile.PAX_FORMAT) as archive:
        yield archive, lambda: Layer(path, _digest_of(path))


def add_tree(archive: tarfile.TarFile, source: Path, name: str, owner: Owner, skip: Callable[[Path], bool]) -> None:
    """Add a file, or a directory with its contents, under a name in the image. Sockets and devices are left out."""
    if skip(source):
        return
    found = source.lstat()
    if stat.S_ISSOCK(found.st_mode):
        return
    entry = archive.gettarinfo(source, name or ".")
    entry.uname = entry.gname = ""
    if owner is not None:
        entry.uid, entry.gid = owner
    if stat.S_ISREG(found.st_mode):
        entry.type, entry.linkname, entry.size = tarfile.REGTYPE, "", found.st_size  # hard links become files
        with source.open("rb") as content:
            archive.addfile(entry, content)
    elif stat.S_ISDIR(found.st_mode):
        archive.addfile(entry)
        for each in sorted(os.listdir(source)):
            add_tree(archive, source / each, f"{name}/{each}".lstrip("/"), owner, skip)
    elif stat.S_ISLNK(found.st_mode) or stat.S_ISFIFO(found.st_mode):
        archive.addfile(entry)


def directory_layer(source: Path, path: Path, owner: Owner = None) -> Layer:
    """Return a directory as a layer in a new file."""
    if not source.is_dir():
        raise ImageError(f"{source}: is not a directory")
    with new_layer(path) as (archive, layer):
        add_tree(archive, source, "", owner, lambda _: False)
    return layer()


def write_archive(target: Path, names: Iterable[str], config: ImageConfig, layers: list[Layer]) -> None:
    """Write an OCI archive with one image."""
    document = {
        "architecture": machine_architecture(),
        "os": "linux",
        "config": msgspec.to_builtins(config),
        "rootfs": {"type": "layers", "diff_ids": [layer.digest for layer in layers]},
    }
    document["config"] = {key: value for key, value in document["config"].items() if value is not None}
    with tarfile.open(target, "w") as archive:
        described = [_add_file(archive, layer) for layer in layers]
        stored = _add_blob(archive, msgspec.json.encode(document), _CONFIG)
        manifest = {"schemaVersion": 2, "mediaType": _MANIFEST, "config": stored, "layers": described}
        descriptor = _add_blob(archive, msgspec.json.encode(manifest), _MANIFEST)
        index = [descriptor | {"annotations": {"io.containerd.image.name": full_name(each)}} for each in names]
        _add(archive, "index.json", msgspec.json.encode({"schemaVersion": 2, "manifests": index or [descriptor]}))
        _add(archive, "oci-layout", b'{"imageLayoutVersion":"1.0.0"}')


def _add_file(archive: tarfile.TarFile, layer: Layer) -> dict[str, Any]:
    name = f"blobs/sha256/{layer.digest.partition(':')[2]}"
    entry = tarfile.TarInfo(name)
    entry.size = layer.path.stat().st_size
    if name not in archive.getnames():
        with layer.path.open("rb") as content:
            archive.addfile(entry, content)
    return {"mediaType": _LAYER, "digest": layer.digest, "size": entry.size}


def _add_blob(archive: tarfile.TarFile, data: bytes, media_type: str) -> dict[str, Any]:
    digest = hashlib.sha256(data).hexdigest()
    _add(archive, f"blobs/sha256/{digest}", data)
    return {"mediaType": media_type, "digest": f"sha256:{digest}", "size": len(data)}


def _add(archive: tarfile.TarFile, name: str, data: bytes) -> None:
    entry = tarfile.TarInfo(name)
    entry.size = len(data)
    archive.addfile(entry, io.BytesIO(data))


def _digest_of(path: Path) -> str:
    with path.open("rb") as file:
        return f"sha256:{hashlib.file_digest(file, 'sha256').hexdigest()}"
