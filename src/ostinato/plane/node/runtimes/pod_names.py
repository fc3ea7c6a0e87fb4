"""Names of a Pod: its host name, its /etc/hosts and its /etc/resolv.conf, as a kubelet writes them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from ostinato.kinds.core_v1 import Pod
from ostinato.plane.network.dns.settings import ClusterDns, limited

_LONGEST_HOSTNAME: Final = 63
_SERVERS: Final = 3  # that a resolver accepts
_NDOTS: Final = "5"  # so that names with up to four dots are searched for in the cluster first


def hostname_of(pod: Pod, domain: str = "") -> str:
    """The host name that containers of a Pod see. `domain`: of the cluster."""
    spec = pod.spec
    if spec.hostname_override:
        return spec.hostname_override
    name, below = _names_of(pod, domain)
    return f"{name}.{below}" if spec.set_hostname_as_fqdn and below else name


def _names_of(pod: Pod, domain: str) -> tuple[str, str]:
    name = (pod.spec.hostname or pod.metadata.name)[:_LONGEST_HOSTNAME].rstrip("-.")
    return name, f"{pod.spec.subdomain}.{pod.metadata.namespace}.svc.{domain}" if pod.spec.subdomain else ""


def hosts_file(pod: Pod, addresses: Sequence[str], cluster_domain: str = "") -> str:
    """The content of a Pod's /etc/hosts."""
    name, domain = _names_of(pod, cluster_domain)
    lines = [
        "# Kubernetes-managed hosts file.",
        "127.0.0.1\tlocalhost",
        "::1\tlocalhost ip6-localhost ip6-loopback",
        "fe00::0\tip6-localnet",
        "fe00::0\tip6-mcastprefix",
        "fe00::1\tip6-allnodes",
        "fe00::2\tip6-allrouters",
        *(f"{each}\t{name}.{domain}\t{name}" if domain else f"{each}\t{name}" for each in addresses),
    ]
    if pod.spec.host_aliases:
        lines += ["", "# Entries added by HostAliases."]
        lines += ["\t".join((alias.ip, *alias.hostnames)) for alias in pod.spec.host_aliases]
    return "\n".join(lines) + "\n"


def dns_config(pod: Pod, resolv_conf: str, cluster: ClusterDns | None = None) -> dict[str, Any]:
    """A Pod's DNS configuration in the terms of the CRI.

    - `resolv_conf`: the machine's, which a Pod inherits unless its dnsPolicy is None.
    - `cluster`: the cluster DNS, for Pods whose dnsPolicy asks for it. Defaults to None: there is none.
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
    if cluster is not None and _uses_cluster_dns(pod):
        own = (f"{pod.metadata.namespace}.svc.{cluster.domain}", f"svc.{cluster.domain}", cluster.domain)
        servers, searches, options = [cluster.address], [*own, *searches], {"ndots": _NDOTS}
    if pod.spec.dns_config is not None:
        servers += [each for each in pod.spec.dns_config.nameservers if each not in servers]
        searches += [each for each in pod.spec.dns_config.searches if each not in searches]
        options |= {each.name: each.value for each in pod.spec.dns_config.options if each.name}
    written = [f"{name}:{value}" if value else name for name, value in options.items()]
    return {"servers": servers[:_SERVERS], "searches": limited(searches), "options": written}


def _uses_cluster_dns(pod: Pod) -> bool:
    policy = pod.spec.dns_policy or "ClusterFirst"
    return policy == "ClusterFirstWithHostNet" or (policy == "ClusterFirst" and not pod.spec.host_network)


def resolv_conf(pod: Pod, machine: str, cluster: ClusterDns | None = None) -> str:
    """The content of a Pod's /etc/resolv.conf; `machine`: that of the machine."""
    config = dns_config(pod, machine, cluster)
    lines = [f"nameserver {each}" for each in config["servers"]]
    if config["searches"]:
        lines.append("search " + " ".join(config["searches"]))
    if config["options"]:
        lines.append("options " + " ".join(config["options"]))
    return "".join(f"{each}\n" for each in lines)
