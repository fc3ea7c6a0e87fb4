"""The image store of the process runtime: images that are unpacked once, and their names.

- A directory per image, named by its id: `root` (its file system) and `image.json`. It appears when it is complete.
- `names.json`: the id of each full name. Several processes may use the store: changes are made under a lock, and files
  are replaced, never modified.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import stat
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

import msgspec

from ostinato.plane.node.images.archive import ArchivedImage
from ostinato.plane.node.images.image import Image, ImageConfig, ImageError
from ostinato.plane.node.images.reference import full_name, with_tag
from ostinato.plane.node.private_files import make_directory, write_file

_NAMES: Final = "names.json"
_PART: Final = "part-"


class _Record(msgspec.Struct, frozen=True):
    """`image.json`."""

    id: str
    manifest: str
    size: int
    config: ImageConfig


class ImageStore:
    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def find(self, image: str) -> Image | None:
        """Find an image by name, by name and digest, or by id; ValueError if the name is malformed."""
        names = self._names()
        if image.startswith("sha256:"):
            return self._read(image, names)
        full = full_name(image)
        repository, _, digest = full.partition("@")
        if digest:
            repository = _without_tag(repository)
            ids = {known for name, known in names.items() if _without_tag(name) == repository}
            found = (self._read(each, names) for each in sorted(ids))
            return next((each for each in found if each is not None and digest in (each.manifest, each.id)), None)
        return self._read(names[full], names) if full in names else None

    def images(self) -> list[Image]:
        """Return all images, by id."""
        names = self._names()
        found = (self._read(each.name.replace("-", ":", 1), names) for each in sorted(self._directory.glob("sha256-*")))
        return [each for each in found if each is not None]

    def add(self, image: ArchivedImage, names: Collection[str]) -> Image:
        """Add an image of an archive with names, which another image may lose; `ImageError` if it is damaged."""
        config = image.document.config or ImageConfig()
        full = [full_name(each) for each in names]
        home = self._home(image.id)
        with self._locked():
            for part in self._directory.glob(f"{_PART}*"):  # of a process that was killed
                shutil.rmtree(part, ignore_errors=True)
            if not home.exists():
                part = make_directory(self._directory / f"{_PART}{home.name}")
                root = part / "root"
                root.mkdir()
                root.chmod(0o755)
                record = _Record(image.id, image.manifest, image.unpack(root), config)
                write_file(part / "image.json", msgspec.json.encode(record))
                _sync(root)  # after a power failure, an image is complete or not there
                part.rename(home)
            self._write_names(self._names() | dict.fromkeys(full, image.id))
        found = self._read(image.id, self._names())
        if found is None:
            raise ImageError(f"{home}: image.json is unreadable; remove this directory and load the image again")
        return found

    def remove(self, image: str, in_use: Collection[Path]) -> bool:
        """Remove a name, and the images without a name but those `in_use`; return whether there was such a name."""
        with self._locked():
            names = self._names()
            ids = [known for name, known in names.items() if image in (known, name) or name == _full(image)]
            for name in [name for name, known in names.items() if name == _full(image) or known == image]:
                del names[name]
            self._write_names(names)
            for each in self._directory.glob("sha256-*"):
                if each.name.replace("-", ":", 1) not in names.values() and each / "root" not in in_use:
                    shutil.rmtree(each)
        return bool(ids)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        make_directory(self._directory)
        descriptor = os.open(self._directory / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)

    def _home(self, image_id: str) -> Path:
        algorithm, _, value = image_id.partition(":")
        if algorithm != "sha256" or len(value) != 64 or not value.isalnum():
            raise ImageError(f"image id {image_id!r}: want sha256:HEX")
        return self._directory / f"sha256-{value}"

    def _read(self, image_id: str, names: dict[str, str]) -> Image | None:
        with suppress(OSError, msgspec.DecodeError, ImageError):
            home = self._home(image_id)
            record = msgspec.json.decode((home / "image.json").read_bytes(), type=_Record)
            mine = sorted(name for name, known in names.items() if known == image_id)
            return Image(
                id=record.id,
                manifest=record.manifest,
                names=mine,
                size=record.size,
                config=record.config,
                root=home / "root",
            )
        return None

    def _names(self) -> dict[str, str]:
        try:
            return msgspec.json.decode((self._directory / _NAMES).read_bytes(), type=dict[str, str])
        except FileNotFoundError:
            return {}
        except msgspec.DecodeError as error:
            message = f"{self._directory / _NAMES}: {error}; remove this directory and load the images again"
            raise ImageError(message) from None

    def _write_names(self, names: dict[str, str]) -> None:
        write_file(self._directory / _NAMES, msgspec.json.encode(dict(sorted(names.items()))))


def _sync(root: Path) -> None:
    for place, _, files in os.walk(root):
        for path in (place, *(os.path.join(place, name) for name in files)):
            if stat.S_ISREG(mode := os.lstat(path).st_mode) or stat.S_ISDIR(mode):
                descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
                try:
                    os.fsync(descriptor)
                finally:
                    os.close(descriptor)


def _full(image: str) -> str:
    try:
        return full_name(with_tag(image))
    except ValueError:
        return image  # an id


def _without_tag(name: str) -> str:
    head, slash, last = name.rpartition("/")
    return head + slash + last.partition(":")[0]
