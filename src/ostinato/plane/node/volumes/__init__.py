"""Volumes: directories of this machine that containers see at places of their own.

Each volume of a Pod has a directory, which `VolumeMounter.mount` fills and `refresh` keeps up to date; what is not the
Pod's own (hostPath, claims) is only pointed at. All goes when the Pod goes, but for what is not its own.
"""

from __future__ import annotations

from ostinato.plane.node.volumes.mounter import Mounted, MountError, VolumeMounter
from ostinato.plane.node.volumes.subpaths import SubPathError, open_subpath

__all__ = ["MountError", "Mounted", "SubPathError", "VolumeMounter", "open_subpath"]
