"""Networking of this machine: namespaces, netlink, the networks of Pods, and the service proxy.

| module | is |
|---|---|
| `messages`, `netlink`, `nf_messages` | the kernel interfaces: links, addresses, routes; chains and rules |
| `nftables` | source NAT of Pods |
| `namespaces`, `sysctls` | network namespaces and their settings |
| `pod_network`, `pod_cidrs` | the bridge of a node, its Pod CIDR, and the namespaces of its Pods |
| `host_ports` | ports of the machine that lead to a Pod |
| `policy` | network policies |
| `dns` | the DNS server of the cluster |
| `services` | the proxy that answers at the addresses of Services |
"""
