"""The controller services of CSI drivers on this machine, found by the names that they report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from ostinato.controllers import Context
from ostinato.kinds.core_v1 import PersistentVolume, Secret, SecretReference
from ostinato.plane.csi import CsiError, CsiService, access_mode, capability
from ostinato.plane.csi.volumes import HAS_TOPOLOGY, SINGLE_WRITERS
from ostinato.world import Clock

_TIMEOUT: Final = 10.0  # seconds for a driver to tell its name


class ControllerDriver:
    """A driver. What it can do is asked once."""

    def __init__(self, name: str, service: CsiService) -> None:
        self.name = name
        self.service = service
        self._capabilities: frozenset[int] | None = None
        self._has_topology: bool | None = None

    async def has(self, capability: int) -> bool:
        """Return whether the controller service has a capability."""
        if self._capabilities is None:
            self._capabilities = await self.service.capabilities("ControllerGetCapabilities")
        return capability in self._capabilities

    async def has_topology(self) -> bool:
        """Return whether its volumes are accessible from some nodes only."""
        if self._has_topology is None:
            found = (await self.service.call("GetPluginCapabilities")).get("capabilities", ())
            self._has_topology = any(each.get("service", {}).get("type") == HAS_TOPOLOGY for each in found)
        return self._has_topology

    async def capability_of(self, access_modes: Sequence[str], **how: Any) -> dict[str, Any]:
        """Return the VolumeCapability of a volume. `how`: see `csi.capability`."""
        mode = (access_modes or ("ReadWriteOnce",))[0]
        return capability(access_mode(mode, single_writers=await self.has(SINGLE_WRITERS)), **how)

    async def capability_of_volume(self, volume: PersistentVolume) -> dict[str, Any]:
        spec, csi = volume.spec, volume.spec.csi
        assert csi is not None
        return await self.capability_of(
            spec.access_modes,
            fs_type=csi.fs_type or "",
            mount_flags=spec.mount_options,
            is_block=spec.volume_mode == "Block",
        )


class ControllerDrivers:
    """Drivers by name. A socket whose driver does not answer is asked again at the next search."""

    def __init__(self, sockets: Sequence[Path], clock: Clock) -> None:
        self._unknown = [CsiService(socket, clock) for socket in sockets]
        self._drivers: dict[str, ControllerDriver] = {}

    async def find(self, name: str) -> ControllerDriver | None:
        """Return a driver; None if it is not one of these. `CsiError` if it may be, as one does not answer."""
        if name in self._drivers:
            return self._drivers[name]
        failure: CsiError | None = None
        for service in [*self._unknown]:
            try:
                found = (await service.call("GetPluginInfo", within=_TIMEOUT)).get("name", "")
            except CsiError as error:
                failure = CsiError(f"CSI driver at {service.socket} does not answer: {error}", error.code)
                continue
            if service in self._unknown:
                self._unknown.remove(service)
                self._drivers[found] = ControllerDriver(found, service)
        if name not in self._drivers and failure is not None:
            raise failure
        return self._drivers.get(name)


async def secrets_of(reference: SecretReference | None, ctx: Context) -> Mapping[str, str]:
    """Return the data of a Secret; `CsiError` if it does not exist."""
    if reference is None:
        return {}
    namespace, name = reference.namespace or "", reference.name or ""
    found = await ctx.client.live.get(Secret, name, namespace=namespace, missing=None)
    if found is None:
        raise CsiError(f'failed to get secret {namespace}/{name}: secrets "{name}" not found')
    return {key: value.decode("utf-8", "replace") for key, value in found.data.items()}
