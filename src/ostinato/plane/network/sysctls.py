"""Settings of a network namespace, below /proc/sys/net: those of the namespace that the thread is in."""

from __future__ import annotations

import errno
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path


def write_sysctls(wanted: Mapping[str, str]) -> None:
    for name, value in wanted.items():
        write_sysctl(name, value)


def write_sysctl(name: str, value: str, *, optional: bool = False) -> None:
    """Set one. OSError names a setting that is not of a network namespace, or that the kernel refuses.

    - `name`: with dots or slashes. In a name with dots, a slash stands for a dot of a link's name.
    - `optional`: a refusal is ignored. Defaults to False.
    """
    slashed = "/" in name.partition(".")[0]
    parts = name.split("/") if slashed else [each.replace("/", ".") for each in name.split(".")]
    if parts[0] != "net" or any(each in ("", ".", "..") for each in parts):
        raise OSError(errno.EINVAL, "not a setting of a network namespace", f"sysctl {name}")
    try:
        with open("/proc/sys/" + "/".join(parts), "w") as file:
            file.write(value)
    except OSError as error:
        if not optional:
            raise OSError(error.errno, error.strerror, f"sysctl {name}") from None


def enable_ipv6_forwarding() -> bool:
    """Forward IPv6 packets, on all links: the kernel has no setting of one; return whether that was off before.

    A machine that forwards does not accept router advertisements, unless a link is told to: those that do keep on.
    """
    every = Path("/proc/sys/net/ipv6/conf")
    if (every / "all" / "forwarding").read_text().strip() == "1":
        return False
    for link in every.iterdir():
        accepts = link / "accept_ra"
        with suppress(FileNotFoundError):  # the link is gone by now
            if accepts.read_text().strip() == "1":
                accepts.write_text("2")
    (every / "all" / "forwarding").write_text("1")
    return True


def enable_forwarding(device: str) -> bool:
    """Forward IPv4 packets that arrive on a link; return whether that was off before."""
    setting = Path(f"/proc/sys/net/ipv4/conf/{device}/forwarding")
    if setting.read_text().strip() == "1":
        return False
    setting.write_text("1")
    return True
