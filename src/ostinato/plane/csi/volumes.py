"""Names and capabilities of CSI volumes, as Kubernetes derives them."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any, Final

PLUGIN: Final = "kubernetes.io/csi"
INFO_PREFIX: Final = "csi.storage.k8s.io/"
"""Of parameters and attributes that Kubernetes itself sets or reads."""

# Capabilities of the node service.
NODE_STAGES: Final = 1
NODE_HAS_STATS: Final = 2
NODE_EXPANDS: Final = 3
NODE_SINGLE_WRITERS: Final = 5
NODE_MOUNTS_WITH_GROUP: Final = 6

# Capabilities of the controller service.
CREATES: Final = 1
PUBLISHES: Final = 2
EXPANDS: Final = 9
SINGLE_WRITERS: Final = 13

# Capabilities of the plugin.
HAS_CONTROLLER: Final = 1
HAS_TOPOLOGY: Final = 2

_MODES: Final = {"ReadWriteOnce": 1, "ReadOnlyMany": 3, "ReadWriteMany": 5, "ReadWriteOncePod": 1}
_SINGLE_WRITER_MODES: Final = _MODES | {"ReadWriteOnce": 7, "ReadWriteOncePod": 6}


def attachment_name(handle: str, driver: str, node: str) -> str:
    """Return the name of the VolumeAttachment of a volume on a node."""
    return f"csi-{hashlib.sha256(f'{handle}{driver}{node}'.encode()).hexdigest()}"


def unique_volume_name(driver: str, handle: str) -> str:
    """Return the name of a volume in `status.volumesAttached` and `status.volumesInUse` of a Node."""
    return f"{PLUGIN}/{driver}^{handle}"


def access_mode(mode: str, *, single_writers: bool) -> int:
    """Return CSI's access mode. `single_writers`: the driver has the capability SINGLE_NODE_MULTI_WRITER."""
    return (_SINGLE_WRITER_MODES if single_writers else _MODES).get(mode, 0)


def capability(
    mode: int, *, fs_type: str = "", mount_flags: Sequence[str] = (), is_block: bool = False, group: int | None = None
) -> dict[str, Any]:
    """Return a VolumeCapability. `mode`: CSI's access mode. `group`: fsGroup, for drivers that apply it."""
    access = {"access_mode": {"mode": mode}}
    if is_block:
        return {"block": {}, **access}
    mount: dict[str, Any] = {"fs_type": fs_type, "mount_flags": list(mount_flags)}
    if group is not None:
        mount["volume_mount_group"] = str(group)
    return {"mount": mount, **access}
