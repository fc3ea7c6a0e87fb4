"""Records of mounted CSI volumes, on disk in kubelet's layout: they outlive the agent.

    pods/UID/volumes/kubernetes.io~csi/NAME/vol_data.json    a volume that is published, or may be
                                            mount            its target path
    plugins/kubernetes.io/csi/DRIVER/SHA/vol_data.json       a volume that is staged, or may be
                                         globalmount         its staging path

A record is written before the driver is called, and removed after the driver has undone it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

import msgspec

from ostinato.plane.csi.service import CsiError
from ostinato.plane.node.private_files import make_directory, write_file
from ostinato.plane.node.volumes.mounts import is_mount_point

_PLUGIN: Final = "kubernetes.io~csi"
_FILE: Final = "vol_data.json"


class Record(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """A volume that a driver has mounted, or may have. The names in the file are kubelet's."""

    driver_name: str
    volume_handle: str
    spec_vol_id: str = msgspec.field(default="", name="specVolID")
    node_name: str = ""
    attachment_id: str = msgspec.field(default="", name="attachmentID")
    volume_lifecycle_mode: str = ""

    @property
    def volume(self) -> tuple[str, str]:
        """Driver and handle."""
        return self.driver_name, self.volume_handle

    @property
    def is_ephemeral(self) -> bool:
        return self.volume_lifecycle_mode == "Ephemeral"


class Records:
    """The records of a node. `directory`: of its state."""

    def __init__(self, directory: Path) -> None:
        self._pods = directory / "pods"
        self._plugins = directory / "plugins" / "kubernetes.io" / "csi"

    def target(self, uid: str, name: str) -> Path:
        """Return the target path of a Pod's volume, which the driver creates."""
        return self._pods / uid / "volumes" / _PLUGIN / name / "mount"

    def staging(self, driver: str, handle: str) -> Path:
        return self._plugins / driver / hashlib.sha256(handle.encode()).hexdigest() / "globalmount"

    def write(self, path: Path, record: Record) -> None:
        """Write the record of a target or staging path."""
        make_directory(path.parent)
        write_file(path.parent / _FILE, msgspec.json.encode(record))

    def remove(self, path: Path) -> None:
        """Remove a target or staging path, which must not be mounted, and its record."""
        if is_mount_point(path):
            raise CsiError(f"{path} is still mounted after the driver has unmounted it")
        with suppress(FileNotFoundError, NotADirectoryError):
            path.rmdir()  # drivers should have removed it; OSError: it has files
        (path.parent / _FILE).unlink(missing_ok=True)
        with suppress(FileNotFoundError):
            path.parent.rmdir()

    def published(self, uid: str = "*") -> Iterator[tuple[str, Path, Record]]:
        """Yield uid of the Pod, target path and record of each published volume; of one Pod if `uid` is given."""
        for file in sorted(self._pods.glob(f"{uid}/volumes/{_PLUGIN}/*/{_FILE}")):
            if (record := _read(file)) is not None:
                yield file.parents[3].name, file.parent / "mount", record

    def staged(self) -> Iterator[tuple[Path, Record]]:
        """Yield staging path and record of each staged volume."""
        for file in sorted(self._plugins.glob(f"*/*/{_FILE}")):
            if (record := _read(file)) is not None:
                yield file.parent / "globalmount", record


def _read(file: Path) -> Record | None:
    try:
        return msgspec.json.decode(file.read_bytes(), type=Record)
    except FileNotFoundError:  # removed meanwhile
        return None
    except msgspec.DecodeError as error:
        raise CsiError(f"{file} is damaged: {error}; unmount the volume and remove the directory") from None
