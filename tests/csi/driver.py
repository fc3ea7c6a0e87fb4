"""A CSI driver whose volumes are directories: identity, controller and node service, and plugin registration.

    python -m tests.csi.driver --state DIR --socket DIR/csi.sock --registry NODE/plugins_registry [--trace FILE]

- Volumes are mounted by bind mounts where that is permitted; elsewhere target paths are plain directories.
- It is strict: calls in an order that CSI forbids are answered with FAILED_PRECONDITION and listed in `violations`.
- Tests make it fail (`fail`), or hang (`hang`), by method.
- Its state is in memory, except for the directories: a driver that restarts knows its mounts from the kernel.
"""

from __future__ import annotations

import argparse
import asyncio
import ctypes
import json
import os
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ostinato.api.protobuf.decoding import read_message
from ostinato.api.protobuf.encoding import write_message
from ostinato.api.protobuf.tables import fields_of
from ostinato.grpc import Code
from ostinato.plane.node.volumes.mounts import can_mount, unmount
from tests.unit.grpc.grpc_server import Exchange, serving

_BIND = 4096
_MESSAGES = {
    "GetInfo": ("pluginregistration.InfoRequest", "pluginregistration.PluginInfo"),
    "NotifyRegistrationStatus": (
        "pluginregistration.RegistrationStatus",
        "pluginregistration.RegistrationStatusResponse",
    ),
}


class Refusal(Exception):  # noqa: N818
    """An answer that is an error."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


@dataclass
class Driver:
    """`state`: directory of its volumes. `node_capabilities`: stage, stats, expand."""

    state: Path
    name: str = "dirs.csi.ostinato.dev"
    node: str = "node-1"
    socket: Path = Path()
    max_volumes: int = 0
    topology: dict[str, str] = field(default_factory=dict)
    capabilities: frozenset[int] = frozenset({1, 2, 9})  # of the controller
    node_capabilities: frozenset[int] = frozenset({1, 2, 3})
    expands_on_node: bool = True
    calls: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    fail: dict[str, Refusal] = field(default_factory=dict)
    hang: set[str] = field(default_factory=set)
    hung: asyncio.Event = field(default_factory=asyncio.Event)  # set when a call hangs
    violations: list[str] = field(default_factory=list)
    trace: Path | None = None
    attached: dict[str, set[str]] = field(default_factory=dict)  # nodes by volume
    sizes: dict[str, int] = field(default_factory=dict)
    _mounts: set[str] = field(default_factory=set)  # where bind mounts are not permitted

    def methods(self) -> list[str]:
        """The methods that change something, as they were called."""
        return [method for method, _ in self.calls if not method.endswith(("Info", "Capabilities", "Status", "Stats"))]

    async def serve(self, call: Exchange) -> None:
        method = call.method.rpartition("/")[2]
        asked, answered = _MESSAGES.get(method, (f"csi.v1.{method}Request", f"csi.v1.{method}Response"))
        request = read_message(asked, bytes(call.request[5:]))
        self.calls.append((method, request))
        if self.trace is not None:
            with self.trace.open("a") as file:
                file.write(json.dumps({"method": method, "request": request}, sort_keys=True) + "\n")
        if method in self.hang:
            self.hung.set()
            return
        try:
            if method in self.fail:
                raise self.fail[method]
            handler = getattr(self, method, None)
            if handler is None:
                raise Refusal(Code.UNIMPLEMENTED, f"{method} is not implemented")
            response = handler(request)
            fields_of(answered)
            await call.answer(write_message(answered, response or {}))
        except Refusal as refusal:
            await call.answer(status=refusal.code, message=str(refusal))

    @asynccontextmanager
    async def listening(self, *sockets: Path) -> AsyncIterator[Driver]:
        """Serve all services at each socket."""
        self.socket = sockets[0]
        async with _all(self, sockets):
            yield self

    def mounted(self) -> list[str]:
        """Every path that is mounted, by the driver's own account or the kernel's."""
        if not can_mount():
            return sorted(self._mounts)
        lines = Path("/proc/self/mountinfo").read_text().splitlines()
        return sorted(words[4] for line in lines if (words := line.split())[3].startswith(str(self.state)))

    # Registration and identity

    def GetInfo(self, _: Any) -> Any:  # noqa: N802 - CSI's names
        info = {"type": "CSIPlugin", "name": self.name, "supported_versions": ["1.0.0"]}
        return info | {"endpoint": str(self.socket)}

    def NotifyRegistrationStatus(self, _: Any) -> Any: ...  # noqa: N802

    def GetPluginInfo(self, _: Any) -> Any:  # noqa: N802
        return {"name": self.name, "vendor_version": "1"}

    def GetPluginCapabilities(self, _: Any) -> Any:  # noqa: N802
        types = [1, 2] if self.topology else [1]
        return {"capabilities": [{"service": {"type": each}} for each in types]}

    def Probe(self, _: Any) -> Any:  # noqa: N802
        return {"ready": {"value": True}}

    # Controller

    def ControllerGetCapabilities(self, _: Any) -> Any:  # noqa: N802
        return {"capabilities": [{"rpc": {"type": each}} for each in sorted(self.capabilities)]}

    def CreateVolume(self, request: Any) -> Any:  # noqa: N802
        name = request["name"]
        size = request.get("capacity_range", {}).get("required_bytes", 1 << 20)
        self.sizes.setdefault(name, size)
        (self.state / name).mkdir(exist_ok=True)
        (self.state / name).chmod(0o777)
        volume: dict[str, Any] = {"volume_id": name, "capacity_bytes": self.sizes[name]}
        volume["volume_context"] = {"made": "1"}
        if self.topology:
            volume["accessible_topology"] = [{"segments": self.topology}]
        return {"volume": volume}

    def DeleteVolume(self, request: Any) -> Any:  # noqa: N802
        self._check(not self.attached.get(request["volume_id"]), "DeleteVolume of an attached volume")
        self.sizes.pop(request["volume_id"], None)
        shutil.rmtree(self.state / request["volume_id"], ignore_errors=True)

    def ControllerPublishVolume(self, request: Any) -> Any:  # noqa: N802
        nodes = self.attached.setdefault(request["volume_id"], set())
        nodes.add(request["node_id"])
        return {"publish_context": {"device": f"/dev/{request['volume_id'][-4:]}"}}

    def ControllerUnpublishVolume(self, request: Any) -> Any:  # noqa: N802
        volume = request["volume_id"]
        used = [path for path in self.mounted() if self._source(path) == volume]
        self._check(not used, f"ControllerUnpublishVolume of {volume}, which is mounted")
        self.attached.get(volume, set()).discard(request.get("node_id", ""))

    def ControllerExpandVolume(self, request: Any) -> Any:  # noqa: N802
        self.sizes[request["volume_id"]] = request["capacity_range"]["required_bytes"]
        return {
            "capacity_bytes": request["capacity_range"]["required_bytes"],
            "node_expansion_required": self.expands_on_node,
        }

    # Node

    def NodeGetInfo(self, _: Any) -> Any:  # noqa: N802
        info: dict[str, Any] = {"node_id": self.node, "max_volumes_per_node": self.max_volumes}
        if self.topology:
            info["accessible_topology"] = {"segments": self.topology}
        return info

    def NodeGetCapabilities(self, _: Any) -> Any:  # noqa: N802
        return {"capabilities": [{"rpc": {"type": each}} for each in sorted(self.node_capabilities)]}

    def NodeStageVolume(self, request: Any) -> Any:  # noqa: N802
        path = Path(request["staging_target_path"])
        self._check(path.is_dir(), f"{path} does not exist")
        self._mount(self._home(request), path)

    def NodeUnstageVolume(self, request: Any) -> Any:  # noqa: N802
        home = self.state / request["volume_id"]
        published = [each for each in self.mounted() if "/pods/" in each and self._source(each) == home.name]
        self._check(not published, f"NodeUnstageVolume of {home.name}, which is published at {published}")
        self._unmount(Path(request["staging_target_path"]))

    def NodePublishVolume(self, request: Any) -> Any:  # noqa: N802
        target = Path(request["target_path"])
        self._check(target.parent.is_dir(), f"{target.parent} does not exist")
        if 1 in self.node_capabilities and "staging_target_path" in request:
            staging = request["staging_target_path"]
            self._check(staging in self.mounted(), f"NodePublishVolume of {request['volume_id']}, which is not staged")
        target.mkdir(exist_ok=True)
        self._mount(self._home(request), target)

    def NodeUnpublishVolume(self, request: Any) -> Any:  # noqa: N802
        target = Path(request["target_path"])
        self._unmount(target)
        with suppress(FileNotFoundError):
            target.rmdir()

    def NodeExpandVolume(self, request: Any) -> Any:  # noqa: N802
        self._check(request["volume_path"] in self.mounted(), f"NodeExpandVolume of {request['volume_path']}")
        return {"capacity_bytes": request["capacity_range"]["required_bytes"]}

    def NodeGetVolumeStats(self, request: Any) -> Any:  # noqa: N802
        found = os.statvfs(request["volume_path"])
        sizes = (found.f_blocks, found.f_bavail, found.f_blocks - found.f_bfree)
        total, available, used = (each * found.f_frsize for each in sizes)
        return {"usage": [{"unit": 1, "total": total, "available": available, "used": used}]}

    # Directories

    def _home(self, request: Any) -> Path:
        home = self.state / request["volume_id"]
        home.mkdir(exist_ok=True)  # inline volumes, and static ones
        return home

    def _source(self, path: str) -> str:
        """The volume that is mounted at a path."""
        for line in Path("/proc/self/mountinfo").read_text().splitlines():
            words = line.split()
            if words[4] == path and words[3].startswith(str(self.state)):
                return Path(words[3]).name
        return ""

    def _check(self, is_right: bool, violation: str) -> None:
        if not is_right:
            self.violations.append(violation)
            raise Refusal(Code.FAILED_PRECONDITION, violation)

    def _mount(self, source: Path, target: Path) -> None:
        if str(target) in self.mounted():
            return
        self._mounts.add(str(target))
        if can_mount():
            libc = ctypes.CDLL(None, use_errno=True)
            if libc.mount(os.fsencode(source), os.fsencode(target), None, _BIND, None) != 0:
                raise Refusal(Code.INTERNAL, f"mount {target}: {os.strerror(ctypes.get_errno())}")

    def _unmount(self, target: Path) -> None:
        self._mounts.discard(str(target))
        if can_mount():
            unmount(target)


@asynccontextmanager
async def _all(driver: Driver, sockets: tuple[Path, ...]) -> AsyncIterator[None]:
    if not sockets:
        yield
        return
    sockets[0].unlink(missing_ok=True)
    async with serving(sockets[0], driver.serve), _all(driver, sockets[1:]):
        try:
            yield
        finally:
            sockets[0].unlink(missing_ok=True)


async def _main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--state", type=Path, required=True)
    parser.add_argument("--socket", type=Path, required=True)
    parser.add_argument("--registry", type=Path, required=True)
    parser.add_argument("--node", default="node-1")
    parser.add_argument("--name", default=Driver.name)
    parser.add_argument("--max-volumes", type=int, default=0)
    parser.add_argument("--trace", type=Path)
    given = parser.parse_args()
    given.state.mkdir(parents=True, exist_ok=True)
    driver = Driver(given.state, given.name, given.node, max_volumes=given.max_volumes, trace=given.trace)
    async with driver.listening(given.socket, given.registry / f"{given.name}-reg.sock"):
        print("ready", flush=True)
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(_main())
