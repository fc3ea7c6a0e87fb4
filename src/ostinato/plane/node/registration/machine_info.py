"""Properties of this machine: capacity, system, and address."""

from __future__ import annotations

import os
import platform
import shutil
import socket
from contextlib import suppress
from ipaddress import IPv6Address
from pathlib import Path
from typing import Final

from ostinato.plane.network.nftables import LINK_PREFIX
from ostinato.plane.node.registration.node_status import Machine

_ARCHITECTURES: Final = {"x86_64": "amd64", "aarch64": "arm64", "arm64": "arm64", "armv7l": "arm"}
_PODS: Final = "110"
_FAR: Final = {4: (socket.AF_INET, "192.0.2.1"), 6: (socket.AF_INET6, "2001:db8::1")}


def machine_info(name: str, runtime: str, directory: Path) -> Machine:
    """Return the properties of this machine. `directory`: on the disk that Pods use."""
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return Machine(
        name=name,
        addresses=(address(),),
        runtime=runtime,
        capacity={
            "cpu": str(os.cpu_count() or 1),
            "memory": f"{memory // 1024}Ki",
            "ephemeral-storage": f"{shutil.disk_usage(directory).total // 1024}Ki",
            "pods": _PODS,
        },
        kernel=platform.release(),
        image=_system(),
        architecture=_ARCHITECTURES.get(platform.machine(), platform.machine()),
        id=_read("/etc/machine-id") or name,
        boot_id=_read("/proc/sys/kernel/random/boot_id"),
    )


def address() -> str:
    """Return this machine's address on the default route; the loopback address without one."""
    return address_of(4) or address_of(6) or "127.0.0.1"


def address_of(version: int) -> str:
    """Return this machine's address of an IP version on the default route; without one its first global address.

    "" if it has none.
    """
    family, far = _FAR[version]
    with suppress(OSError), socket.socket(family, socket.SOCK_DGRAM) as probe:
        probe.connect((far, 9))  # sends nothing; selects the source address
        return str(probe.getsockname()[0])
    return _global_ipv6() if version == 6 else ""


def _global_ipv6() -> str:
    for line in _read("/proc/net/if_inet6").splitlines():
        digits, *_, device = line.split()
        found = IPv6Address(int(digits, 16))
        if not found.is_link_local and not found.is_loopback and not device.startswith(LINK_PREFIX):
            return str(found)
    return ""


def _system() -> str:
    for line in _read("/etc/os-release").splitlines():
        name, _, value = line.partition("=")
        if name == "PRETTY_NAME":
            return value.strip('"')
    return f"{platform.system()} {platform.release()}"


def _read(path: str) -> str:
    try:
        return Path(path).read_text().strip()
    except OSError:
        return ""
