"""Read images from OCI layouts (directories), OCI archives, and archives of `docker save`. Compressed archives too.

- Everything that a digest names is compared with it, the layers while they are unpacked.
- Of an index for several platforms, the image for this machine's is taken.
"""

from __future__ import annotations

import gzip
import hashlib
import importlib
import sys
import tarfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, Any, Final, Protocol, Self

import msgspec

from ostinato.plane.node.images.image import ImageDocument, ImageError, decode_document, machine_architecture
from ostinato.plane.node.images.layers import apply_layer
from ostinato.plane.node.images.reference import with_tag

_NAMES: Final = ("io.containerd.image.name", "org.opencontainers.image.ref.name")
_INDEXES: Final = (
    "application/vnd.oci.image.index.v1+json",
    "application/vnd.docker.distribution.manifest.list.v2+json",
)
_MOST_JSON: Final = 16 << 20  # bytes of an index, a manifest or a configuration
_GZIP: Final = b"\x1f\x8b"
_ZSTD: Final = b"\x28\xb5\x2f\xfd"
_ATTESTATION: Final = "vnd.docker.reference.type"


class _Descriptor(msgspec.Struct, frozen=True, rename="camel"):
    digest: str
    media_type: str = ""
    annotations: dict[str, str] | None = None
    platform: dict[str, Any] | None = None


class _Index(msgspec.Struct, frozen=True):
    manifests: list[_Descriptor]


class _Manifest(msgspec.Struct, frozen=True):
    config: _Descriptor
    layers: list[_Descriptor]


class _DockerImage(msgspec.Struct, frozen=True, rename="pascal"):
    config: str
    layers: list[str]
    repo_tags: list[str] | None = None


class _Files(Protocol):
    """The files of an archive or of a layout."""

    def open(self, name: str) -> IO[bytes] | None:
        """Open a file; None if it does not exist."""


class ArchivedImage:
    """An image in an archive that is open."""

    def __init__(self, files: _Files, source: str, names: list[str], config: bytes, layers: Sequence[str]) -> None:
        self.names = names
        self.config = config
        self.id = _digest(config)
        self.manifest = self.id  # unless the archive has one
        self.document: ImageDocument = decode_document(config, source)
        self._files = files
        self._source = source
        self._layers = layers  # file names
        if len(layers) != len(self.document.rootfs.diff_ids):
            counts = f"{len(layers)} layers and {len(self.document.rootfs.diff_ids)} digests of layers"
            raise ImageError(f"{source}: the image {self.id} has {counts}")

    def unpack(self, root: Path) -> int:
        """Unpack all layers into a directory; return the size of their files."""
        size = 0
        for name, digest in zip(self._layers, self.document.rootfs.diff_ids, strict=True):
            with self._opened(name) as stream:
                read = _Hashing(stream)
                size += apply_layer(read, root)
                read.drain()
            if read.digest() != digest:
                raise ImageError(f"{self._source}: layer {digest} is damaged: its digest is {read.digest()}")
        return size

    @contextmanager
    def _opened(self, name: str) -> Iterator[IO[bytes]]:
        file = self._files.open(name)
        if file is None:
            raise ImageError(f"{self._source}: layer {name} is missing")
        with file:
            start = file.read(4)
            file.seek(0)
            if start == _ZSTD:
                with _zstd_file(file, f"{self._source}: layer {name}") as plain:
                    yield plain
            elif start.startswith(_GZIP):
                with gzip.open(file) as plain:
                    yield plain  # type: ignore[misc]  # a GzipFile
            else:
                yield file


@contextmanager
def _zstd_file(file: IO[bytes], what: str) -> Iterator[IO[bytes]]:
    """Decompress a file: with the standard library since Python 3.14, before with its backport."""
    try:
        zstd = importlib.import_module("compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd")
    except ImportError:
        advice = "install ostinato[images] to read it, or save the image with gzip"
        raise ImageError(f"{what} is compressed with zstd; {advice}") from None
    try:
        with zstd.ZstdFile(file) as plain:
            yield plain
    except zstd.ZstdError as error:
        raise ImageError(f"{what} is damaged: {error}") from None


@contextmanager
def open_archive(path: Path) -> Iterator[list[ArchivedImage]]:
    """Open an archive or a layout, with its images; `ImageError` if it is malformed."""
    with ExitStack() as stack:
        try:
            files = _Directory(path) if path.is_dir() else stack.enter_context(_Archive(path))
            yield _images(files, str(path))
        except (tarfile.TarError, EOFError, gzip.BadGzipFile) as error:
            raise ImageError(f"{path}: is not an archive of images: {error}") from None
        except (OSError, msgspec.DecodeError) as error:
            raise ImageError(f"{path}: {error}") from None


def _images(files: _Files, source: str) -> list[ArchivedImage]:
    if (index := _content(files, "index.json")) is not None:
        return _oci_images(files, source, index)
    manifest = _content(files, "manifest.json")
    if manifest is None:
        raise ImageError(f"{source}: has neither index.json (OCI) nor manifest.json (docker save)")
    found = []
    for each in msgspec.json.decode(manifest, type=list[_DockerImage]):
        config = _read(files, each.config, source)
        found.append(ArchivedImage(files, source, each.repo_tags or [], config, each.layers))
    return found


def _oci_images(files: _Files, source: str, index: bytes) -> list[ArchivedImage]:
    found: dict[str, ArchivedImage] = {}
    for each in msgspec.json.decode(index, type=_Index).manifests:
        names = [name for key in _NAMES if (name := (each.annotations or {}).get(key)) and _is_name(name)]
        digest = _manifest_of(files, source, each)
        if digest is None:
            continue
        if digest not in found:
            manifest = msgspec.json.decode(_blob(files, digest, source), type=_Manifest)
            config = _blob(files, manifest.config.digest, source)
            layers = [_blob_name(layer.digest) for layer in manifest.layers]
            found[digest] = ArchivedImage(files, source, [], config, layers)
            found[digest].manifest = digest
        found[digest].names += [name for name in names[:1] if name not in found[digest].names]
    if not found:
        raise ImageError(f"{source}: has no image for linux/{machine_architecture()}")
    return list(found.values())


def _manifest_of(files: _Files, source: str, descriptor: _Descriptor) -> str | None:
    """The manifest for this machine; None if there is none."""
    if _ATTESTATION in (descriptor.annotations or {}):
        return None
    if descriptor.media_type in _INDEXES:
        index = msgspec.json.decode(_blob(files, descriptor.digest, source), type=_Index)
        manifests = (_manifest_of(files, source, each) for each in index.manifests)
        return next((each for each in manifests if each is not None), None)
    wanted = {"os": "linux", "architecture": machine_architecture()}
    given = descriptor.platform or wanted
    return descriptor.digest if all(given.get(key) == value for key, value in wanted.items()) else None


def _is_name(text: str) -> bool:
    """Whether an annotation is a name, and not just a tag."""
    try:
        with_tag(text)
    except ValueError:
        return False
    return "/" in text or ":" in text


def _blob_name(digest: str) -> str:
    algorithm, _, value = digest.partition(":")
    if algorithm != "sha256" or len(value) != 64 or not value.isalnum():
        raise ImageError(f"digest {digest!r}: want sha256:HEX")
    return f"blobs/sha256/{value}"


def _blob(files: _Files, digest: str, source: str) -> bytes:
    data = _read(files, _blob_name(digest), source)
    if _digest(data) != digest:
        raise ImageError(f"{source}: {digest} is damaged: its digest is {_digest(data)}")
    return data


def _read(files: _Files, name: str, source: str) -> bytes:
    data = _content(files, name)
    if data is None:
        raise ImageError(f"{source}: {name} is missing")
    return data


def _content(files: _Files, name: str) -> bytes | None:
    file = files.open(name)
    if file is None:
        return None
    with file:
        return file.read(_MOST_JSON)


def _digest(data: bytes) -> str:
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


class _Directory:
    def __init__(self, path: Path) -> None:
        self._path = path.resolve()

    def open(self, name: str) -> IO[bytes] | None:
        file = (self._path / name).resolve()
        if not file.is_relative_to(self._path):
            raise ImageError(f"{self._path}: {name} leads out of the layout")
        return file.open("rb") if file.is_file() else None


class _Archive:
    """A tar archive, whose members are read in any order."""

    def __init__(self, path: Path) -> None:
        self._tar = tarfile.open(path)  # noqa: SIM115 - closed by `__exit__`
        self._members = {each.name.removeprefix("./"): each for each in self._tar}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._tar.close()

    def open(self, name: str) -> IO[bytes] | None:
        member = self._members.get(name)
        for _ in range(8):  # `docker save` links layers that images share
            if member is None or not (member.issym() or member.islnk()):
                break
            folder = name.rpartition("/")[0] if member.issym() else ""
            member = self._members.get(_joined(folder, member.linkname))
        return None if member is None or not member.isfile() else self._tar.extractfile(member)


def _joined(folder: str, name: str) -> str:
    parts: list[str] = folder.split("/") if folder else []
    for part in name.split("/"):
        if part == "..":
            parts = parts[:-1]
        elif part not in ("", "."):
            parts.append(part)
    return "/".join(parts)


class _Hashing:
    """A stream that computes the digest of what is read."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self._hash = hashlib.sha256()

    def read(self, size: int, /) -> bytes:
        data = self._stream.read(size)
        self._hash.update(data)
        return data

    def drain(self) -> None:
        """Read the rest: the padding of the archive."""
        while self.read(1 << 20):
            pass

    def digest(self) -> str:
        return f"sha256:{self._hash.hexdigest()}"
