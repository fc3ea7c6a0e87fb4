"""Clients that send requests as a node."""

from __future__ import annotations

from collections.abc import Callable

from ostinato.cache.client import CachedClient
from ostinato.manager import Manager
from ostinato.plane.access.identities import user_of_node

ClientOf = Callable[[str], CachedClient]
"""`client_of(node)` returns the client that sends requests as that node."""


def node_clients(manager: Manager) -> ClientOf:
    """Return clients that impersonate the nodes of a manager, each with its own identity."""
    return lambda name: manager.client_as(user_of_node(name))
