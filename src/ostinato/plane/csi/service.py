"""Client of a CSI driver (`csi.v1`), and of the service by which plugins register, by method name.

Requests and responses are dictionaries with the message's field names. Empty and zero fields may be missing.
Requests contain secrets: they are never logged.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from ostinato.api.protobuf.decoding import read_message
from ostinato.api.protobuf.encoding import write_message
from ostinato.api.protobuf.tables import CSI, PLUGIN_REGISTRATION
from ostinato.api.wire.json import DecodeError
from ostinato.grpc import Channel, Code, Limits, RpcError, go_error
from ostinato.world import Clock

CALL_TIMEOUT: Final = 120.0  # seconds, as kubelet's
_NO_PINGS: Final = Limits(silence=0)  # drivers end connections with more than one in five minutes

_REGISTRATION: Final = {  # request and response types of pluginregistration.Registration
    "GetInfo": ("InfoRequest", "PluginInfo"),
    "NotifyRegistrationStatus": ("RegistrationStatus", "RegistrationStatusResponse"),
}
_IDENTITY: Final = frozenset({"GetPluginInfo", "GetPluginCapabilities", "Probe"})
_UNFINISHED: Final = frozenset(
    {Code.CANCELED, Code.DEADLINE_EXCEEDED, Code.UNAVAILABLE, Code.RESOURCE_EXHAUSTED, Code.ABORTED}
)


class CsiError(Exception):
    """A call of a driver failed. `is_final`: the driver is not working on it any more. `code`: gRPC's."""

    def __init__(self, message: str, code: int = Code.UNKNOWN) -> None:
        super().__init__(message)
        self.code = code
        self.is_final = code not in _UNFINISHED


class CsiService:
    """A driver, or the registration service of a plugin, at a Unix socket."""

    def __init__(self, socket: Path, clock: Clock) -> None:
        self.socket = socket
        self._channel = Channel(socket, clock, _NO_PINGS)

    async def call(
        self, method: str, request: Mapping[str, Any] | None = None, within: float = CALL_TIMEOUT
    ) -> dict[str, Any]:
        """Call a method; `CsiError` if it fails or does not answer in time."""
        path, asked, answered = _names(method)
        try:
            answer = await self._channel.call(path, write_message(asked, request or {}), within)
        except RpcError as error:
            raise CsiError(go_error(error), error.code) from None
        try:
            value = read_message(answered, answer)
        except DecodeError as error:
            raise CsiError(f"{method}: invalid response: {error}", Code.INTERNAL) from None
        assert isinstance(value, dict)
        return value

    async def capabilities(self, method: str) -> frozenset[int]:
        """Return the capabilities of the node or controller service. `method`: that lists them."""
        found = (await self.call(method)).get("capabilities", ())
        return frozenset(each.get("rpc", {}).get("type", 0) for each in found)

    async def close(self) -> None:
        """Close the connection; calls that are under way fail."""
        await self._channel.close()


def _names(method: str) -> tuple[str, str, str]:
    """Return the path of a method, and the types of its request and response."""
    if method in _REGISTRATION:
        asked, answered = _REGISTRATION[method]
        return (
            f"/{PLUGIN_REGISTRATION}Registration/{method}",
            PLUGIN_REGISTRATION + asked,
            PLUGIN_REGISTRATION + answered,
        )
    service = "Identity" if method in _IDENTITY else "Node" if method.startswith("Node") else "Controller"
    return f"/{CSI}{service}/{method}", f"{CSI}{method}Request", f"{CSI}{method}Response"
