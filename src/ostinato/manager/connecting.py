"""Transports of a manager to its API server.

Each purpose has a transport of its own: the leader's requests have a deadline, and the lease is renewed in another
thread.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from ostinato.client.config.config import Config
from ostinato.client.transport.metrics import ClientMetrics
from ostinato.client.transport.protocol import Deadline, Transport
from ostinato.world import World


class Purpose(NamedTuple):
    """The purpose of a transport."""

    name: str = ""  # part of the user agent
    deadline: Deadline | None = None
    metrics: ClientMetrics | None = None
    identity: str = ""  # of a runnable (`ClientOptions.identities`); "" is the manager's


Connect = Callable[[Purpose], Transport]
"""Creates a transport. The transport for leader election is created and used in another thread."""


def over_http(config: Config, world: World) -> Connect:
    from ostinato.client.http.transport import HttpTransport  # noqa: PLC0415 - not needed for a server in this process

    def connect(purpose: Purpose) -> Transport:
        named = config.with_agent(purpose.name) if purpose.name else config
        return HttpTransport(named, world, metrics=purpose.metrics, deadline=purpose.deadline)

    return connect
