"""The Container Storage Interface (CSI): calls of drivers, and the names that nodes and controllers share.

The node calls the node service of a driver (`plane/node/volumes/csi`), the controllers its controller service
(`plane/controllers/storage/csi`).
"""

from __future__ import annotations

from ostinato.plane.csi.service import CsiError, CsiService
from ostinato.plane.csi.volumes import access_mode, attachment_name, capability, unique_volume_name

__all__ = ["CsiError", "CsiService", "access_mode", "attachment_name", "capability", "unique_volume_name"]
