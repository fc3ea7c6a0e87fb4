"""Volumes of Pods: directories of this machine that are mounted into containers.

`volume_manager` is the entry point. Volumes of the Pod's own (emptyDir, projected objects) have a directory that is
removed with the Pod; hostPath volumes and claims refer to existing directories and are kept.
"""

from __future__ import annotations

from ostinato.plane.node.volumes.mounter import MountedVolume, MountError, VolumeMounter
from ostinato.plane.node.volumes.subpaths import SubPathError, open_subpath

__all__ = ["MountError", "MountedVolume", "SubPathError", "VolumeMounter", "open_subpath"]
