"""CSI volumes as their drivers need them: of a PersistentVolume, or inline in a Pod (ephemeral)."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence

import msgspec

from ostinato.api.quantity import Quantity
from ostinato.kinds.core_v1 import CSIVolumeSource, PersistentVolume, Pod, SecretReference, Volume


class CsiSource(msgspec.Struct, frozen=True, kw_only=True):
    """A volume.

    - `name`: of the PersistentVolume, or of the Pod's volume.
    - `read_only`: as the Pod asks for it.
    - `capacity`: of the PersistentVolume.
    """

    name: str
    driver: str
    handle: str
    is_ephemeral: bool = False
    is_block: bool = False
    read_only: bool = False
    fs_type: str = ""
    access_modes: Sequence[str] = ("ReadWriteOnce",)
    mount_options: Sequence[str] = ()
    attributes: Mapping[str, str] = {}
    capacity: Quantity | None = None
    publish_secret: SecretReference | None = None
    stage_secret: SecretReference | None = None
    expand_secret: SecretReference | None = None

    @property
    def volume(self) -> tuple[str, str]:
        """Driver and handle: what identifies the volume."""
        return self.driver, self.handle


def of_persistent_volume(volume: PersistentVolume, *, read_only: bool) -> CsiSource | None:
    """Return the CSI volume of a PersistentVolume; None if it has another source."""
    spec, csi = volume.spec, volume.spec.csi
    if csi is None:
        return None
    return CsiSource(
        name=volume.metadata.name,
        driver=csi.driver,
        handle=csi.volume_handle,
        is_block=spec.volume_mode == "Block",
        read_only=read_only,
        fs_type=csi.fs_type or "",
        access_modes=tuple(spec.access_modes) or ("ReadWriteOnce",),
        mount_options=tuple(spec.mount_options),
        attributes=csi.volume_attributes,
        capacity=spec.capacity.get("storage"),
        publish_secret=csi.node_publish_secret_ref,
        stage_secret=csi.node_stage_secret_ref,
        expand_secret=csi.node_expand_secret_ref,
    )


def of_inline_volume(pod: Pod, volume: Volume, csi: CSIVolumeSource) -> CsiSource:
    """Return an inline volume of a Pod: its handle is derived from the Pod."""
    digest = hashlib.sha256(f"{pod.metadata.uid}{volume.name}".encode()).hexdigest()
    secret = csi.node_publish_secret_ref
    reference = None if secret is None else SecretReference(name=secret.name, namespace=pod.metadata.namespace)
    return CsiSource(
        name=volume.name,
        driver=csi.driver,
        handle=f"csi-{digest}",
        is_ephemeral=True,
        read_only=bool(csi.read_only),
        fs_type=csi.fs_type or "",
        attributes=csi.volume_attributes,
        publish_secret=reference,
    )
