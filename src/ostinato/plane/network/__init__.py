"""Networking of this machine: namespaces, netlink, the networks of Pods, and the service proxy.

| module | is |
|---|---|
| `messages`, `netlink`, `nftables` | the kernel interfaces: links, addresses, routes; source NAT |
| `namespaces`, `sysctls` | network namespaces and their settings |
| `pod_network`, `pod_cidrs` | the bridge of a node, its Pod CIDR, and the namespaces of its Pods |
| `host_ports` | ports of the machine that lead to a Pod |
| `dns` | the DNS server of the cluster |
| `services` | the proxy that answers at the addresses of Services |
"""
