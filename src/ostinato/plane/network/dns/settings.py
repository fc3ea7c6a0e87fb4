"""Settings of the cluster DNS, and the DNS servers of the machine."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Final

import msgspec

from ostinato.api.validation import names

DNS: Final = "dns"
"""Name of this component."""

DEFAULT_ADDRESS: Final = "10.0.0.10"
DEFAULT_DOMAIN: Final = "cluster.local"
_RESOLV_CONFS: Final = ("/etc/resolv.conf", "/run/systemd/resolve/resolv.conf")


class ClusterDns(msgspec.Struct, frozen=True, kw_only=True):
    """
    - `address`: of the DNS server; a cluster IP. Defaults to 10.0.0.10.
    - `domain`: of the cluster. Defaults to cluster.local.

    ValueError if one of them is invalid.
    """

    address: str = DEFAULT_ADDRESS
    domain: str = DEFAULT_DOMAIN

    def __post_init__(self) -> None:
        try:
            ipaddress.ip_address(self.address)
        except ValueError:
            raise ValueError(f"--cluster-dns {self.address}: want an IP address") from None
        if problems := names.is_dns1123_subdomain(self.domain):
            raise ValueError(f"--cluster-domain {self.domain}: {'; '.join(problems)}")


def nameservers() -> list[str]:
    """The DNS servers of the machine. Those of systemd-resolved stand for its address on the loopback."""
    return [words[1] for line in machine_resolv_conf().splitlines() if _is_server(words := line.split())]


def machine_resolv_conf() -> str:
    """The machine's resolver configuration, as Pods with networks of their own can use it.

    A resolver on the machine's loopback (systemd-resolved) is out of their reach: then its own upstream servers are
    used, if it has written them down.
    """
    texts = []
    for path in _RESOLV_CONFS:
        with suppress(OSError):
            texts.append(Path(path).read_text(errors="replace"))
    return next((each for each in texts if not _is_loopback_only(each)), texts[0] if texts else "")


def _is_loopback_only(text: str) -> bool:
    servers = [words[1] for line in text.splitlines() if _is_server(words := line.split())]
    with suppress(ValueError):
        return bool(servers) and all(_is_loopback(each) for each in servers)
    return False


def _is_server(words: list[str]) -> bool:
    return len(words) > 1 and words[0] == "nameserver"


def _is_loopback(server: str) -> bool:
    return ipaddress.ip_address(server.partition("%")[0]).is_loopback


def limited(searches: Iterable[str]) -> list[str]:
    """As many search domains as a resolver accepts: 32, and 2,048 characters."""
    kept: list[str] = []
    for each in dict.fromkeys(searches):
        if len(kept) == 32 or sum(map(len, kept)) + len(kept) + len(each) > 2048:
            break
        kept.append(each)
    return kept
