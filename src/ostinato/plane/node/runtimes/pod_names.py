"""Names of a Pod: its host name, its /etc/hosts and its /etc/resolv.conf, as a kubelet writes them."""

from __future__ import annotations

import ipaddress
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from ostinato.kinds.core_v1 import Pod

_LONGEST_HOSTNAME: Final = 63
_RESOLV_CONFS: Final = ("/etc/resolv.conf", "/run/systemd/resolve/resolv.conf")


def hostname_of(pod: Pod) -> str:
    """The host name that containers of a Pod see."""
    spec = pod.spec
    if spec.hostname_override:
        return spec.hostname_override
    name, domain = _names_of(pod)
    return f"{name}.{domain}" if spec.set_hostname_as_fqdn and domain else name


def _names_of(pod: Pod) -> tuple[str, str]:
    name = (pod.spec.hostname or pod.metadata.name)[:_LONGEST_HOSTNAME].rstrip("-.")
    return name, f"{pod.spec.subdomain}.{pod.metadata.namespace}.svc." if pod.spec.subdomain else ""


def hosts_file(pod: Pod, address: str) -> str:
    """The content of a Pod's /etc/hosts."""
    name, domain = _names_of(pod)
    lines = [
        "# Kubernetes-managed hosts file.",
        "127.0.0.1\tlocalhost",
        "::1\tlocalhost ip6-localhost ip6-loopback",
        "fe00::0\tip6-localnet",
        "fe00::0\tip6-mcastprefix",
        "fe00::1\tip6-allnodes",
        "fe00::2\tip6-allrouters",
        f"{address}\t{name}.{domain}\t{name}" if domain else f"{address}\t{name}",
    ]
    if pod.spec.host_aliases:
        lines += ["", "# Entries added by HostAliases."]
        lines += ["\t".join((alias.ip, *alias.hostnames)) for alias in pod.spec.host_aliases]
    return "\n".join(lines) + "\n"


def dns_config(pod: Pod, resolv_conf: str) -> dict[str, Any]:
    """A Pod's DNS configuration in the terms of the CRI.

    - `resolv_conf`: the machine's, which a Pod inherits unless its dnsPolicy is None.
    - The Pod's dnsConfig is added to it.
    """
    servers: list[str] = []
    searches: list[str] = []
    options: dict[str, str | None] = {}
    if pod.spec.dns_policy != "None":
        for line in resolv_conf.splitlines():
            word, *rest = line.split()[:64] or [""]
            if word == "nameserver" and rest:
                servers.append(rest[0])
            elif word == "search":
                searches = rest
            elif word == "options":
                options |= {name: value for name, _, value in (each.partition(":") for each in rest)}
    if pod.spec.dns_config is not None:
        servers += [each for each in pod.spec.dns_config.nameservers if each not in servers]
        searches += [each for each in pod.spec.dns_config.searches if each not in searches]
        options |= {each.name: each.value for each in pod.spec.dns_config.options if each.name}
    written = [f"{name}:{value}" if value else name for name, value in options.items()]
    return {"servers": servers, "searches": searches, "options": written}


def resolv_conf(pod: Pod, machine: str) -> str:
    """The content of a Pod's /etc/resolv.conf; `machine`: that of the machine."""
    config = dns_config(pod, machine)
    lines = [f"nameserver {each}" for each in config["servers"]]
    if config["searches"]:
        lines.append("search " + " ".join(config["searches"]))
    if config["options"]:
        lines.append("options " + " ".join(config["options"]))
    return "".join(f"{each}\n" for each in lines)


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
    servers = [words[1] for line in text.splitlines() if len(words := line.split()) > 1 and words[0] == "nameserver"]
    with suppress(ValueError):
        return bool(servers) and all(ipaddress.ip_address(each.partition("%")[0]).is_loopback for each in servers)
    return False
