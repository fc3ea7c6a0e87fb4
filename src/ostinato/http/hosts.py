"""Hosts in URLs and `Host` headers."""

from __future__ import annotations


def bracketed(host: str) -> str:
    """Return a host in brackets if it is an IPv6 address."""
    return f"[{host}]" if ":" in host else host


def join_host_port(host: str, port: int | str) -> str:
    """Join host and port, as Go's net.JoinHostPort."""
    return f"{bracketed(host)}:{port}"
