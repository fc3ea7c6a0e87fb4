"""Proxy of a server, from the configuration or the environment, with the semantics of Go's `httpproxy`.

`HTTPS_PROXY` and `HTTP_PROXY` are URLs of the proxy. `NO_PROXY` lists hosts without one: a domain with its subdomains,
`.domain` for its subdomains only, addresses and networks, each optionally with a port, or `*`. Loopback addresses never
use a proxy.
"""

from __future__ import annotations

import ipaddress
from base64 import b64encode
from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

from ostinato.client.config.config import Config, proxy_problems
from ostinato.client.config.error import ConfigError
from ostinato.client.config.secret import Secret
from ostinato.http.hosts import bracketed


class Proxy(NamedTuple):
    url: str  # without user and password
    authorization: Secret | None


def proxy_for(config: Config, environ: Mapping[str, str]) -> Proxy | None:
    """Return the proxy for the configured server; None for a direct connection."""
    if config.proxy:
        return _proxy(config.proxy)
    if not config.environment_proxies:
        return None
    name = "HTTPS_PROXY" if config.secure else "HTTP_PROXY"
    text = environ.get(name) or environ.get(name.lower()) or ""
    if not config.secure and environ.get("REQUEST_METHOD"):
        text = ""  # in a CGI script HTTP_PROXY is the "Proxy" header of the client
    target = urlsplit(config.url)
    port = target.port or (443 if config.secure else 80)
    if not text or bypasses(environ.get("NO_PROXY") or environ.get("no_proxy") or "", target.hostname or "", port):
        return None
    url = Secret(text if "://" in text else f"http://{text}")
    problems = proxy_problems(url)
    if problems:
        raise ConfigError(*[f"environment: {name}: {problem.partition(': ')[2]}" for problem in problems])
    return _proxy(url)


def bypasses(listed: str, host: str, port: int) -> bool:
    """Whether a host matches a list like NO_PROXY."""
    host = host.lower()
    address = _address(host)
    if host == "localhost" or (address is not None and address.is_loopback):
        return True
    return any(_matches(entry.strip().lower(), host, address, port) for entry in listed.split(","))


def _matches(entry: str, host: str, address: ipaddress.IPv4Address | ipaddress.IPv6Address | None, port: int) -> bool:
    if not entry:
        return False
    if entry == "*":
        return True
    network = _network(entry)
    if network is not None:
        return address is not None and address in network
    name, wanted_port = _split_port(entry)
    if wanted_port and wanted_port != str(port):
        return False
    named = _address(name)
    if named is not None or address is not None:
        return named == address
    if not name:
        return False
    if name.startswith("*."):
        name = name[1:]
    if name.startswith("."):
        return host.endswith(name)
    return host == name or host.endswith(f".{name}")


def _network(entry: str) -> ipaddress.IPv4Network | ipaddress.IPv6Network | None:
    if "/" not in entry or not entry.rpartition("/")[2].isdecimal():
        return None
    try:
        return ipaddress.ip_network(entry, strict=False)
    except ValueError:
        return None


def _split_port(entry: str) -> tuple[str, str]:
    """Split into name and port. An IPv6 address can have a port only in brackets."""
    if entry.startswith("["):
        name, _, port = entry[1:].partition("]:")
        return (name, port) if port else (entry, "")
    if entry.count(":") == 1:
        name, _, port = entry.partition(":")
        return name, port
    return entry, ""


def _address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        found = ipaddress.ip_address(text)
    except ValueError:
        return None
    mapped = found.ipv4_mapped if isinstance(found, ipaddress.IPv6Address) else None
    return mapped or found


def _proxy(url: Secret) -> Proxy:
    parts = urlsplit(url.reveal())
    host = bracketed(parts.hostname or "")
    port = f":{parts.port}" if parts.port is not None else ""
    authorization = None
    if parts.username is not None:
        pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        authorization = Secret(f"Basic {b64encode(pair.encode()).decode()}")
    return Proxy(f"{parts.scheme}://{host}{port}", authorization)
