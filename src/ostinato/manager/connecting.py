"""Connecting: how a manager reaches its API server, by several ways that it keeps apart.

The leader's requests have a deadline, and the lease is renewed in another thread: each has a transport to itself.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from ostinato.client.config.config import Config
from ostinato.client.transport.metrics import ClientMetrics
from ostinato.client.transport.protocol import Deadline, Transport
from ostinato.world import World


class Purpose(NamedTuple):
    """What a transport is for."""

    name: str = ""  # appears in the user agent
    deadline: Deadline | None = None
    metrics: ClientMetrics | None = None
    identity: str = ""  # as whom, of those that a manager has; "" is the manager itself


Connect = Callable[[Purpose], Transport]
"""Makes a transport. That for leader election is made, and used, in another thread."""


def over_http(config: Config, world: World) -> Connect:
    from ostinato.client.http.transport import HttpTransport  # noqa: PLC0415 - a server in one process needs it not

    def connect(purpose: Purpose) -> Transport:
        named = config.with_agent(purpose.name) if purpose.name else config
        return HttpTransport(named, world, metrics=purpose.metrics, deadline=purpose.deadline)

    return connect
