"""Networking of this machine: network namespaces, netlink, and the service proxy."""
