"""Hosting: a program that loads somebody's file, and runs the managers in it by its own settings.

    with hosting(Host(config=config)) as host:
        import_the_file()
    serve_together(*host.managers)

- A manager that is made while the file is loaded takes what the host says before what the file says. What neither says
  is as always. A host that names the server decides about it alone: a file that names another is not heard.
- `run` of such a manager returns at once: the host has it in `managers`, and runs it later. So a file that ends with
  `Manager().add(widgets).run()` can be run by itself, and loaded.
- All of this holds while the file is loaded, where it is loaded, and nowhere else.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import msgspec

from ostinato.cache.informers import InformerSettings
from ostinato.client.config.config import Config
from ostinato.manager.connecting import Connect
from ostinato.manager.connections import CacheOptions
from ostinato.manager.election.settings import LeaderElection


class Choices(msgspec.Struct, frozen=True, kw_only=True):
    """What may be decided about a manager by who runs it; see `Manager`. Empty is undecided."""

    config: Config | None = None
    connect: Connect | None = None
    leader_election: str | LeaderElection | None = None
    health: str = ""
    metrics: str = ""
    caches: CacheOptions | None = None


class Host(msgspec.Struct, kw_only=True):
    """
    - `choices`: what it says about every manager.
    - `namespace`: the only one of which caches hold anything. Defaults to all.
    - `managers`: those whose `run` was called.
    """

    choices: Choices = Choices()
    namespace: str = ""
    managers: list[Any] = []  # Any: managers, which know of hosts

    def decide(self, file: Choices) -> Choices:
        """What goes for a manager of which the file says this."""
        mine = self.choices
        server = mine if mine.config is not None or mine.connect is not None else file
        return Choices(
            config=server.config,
            connect=server.connect,
            leader_election=_named(file.leader_election, mine.leader_election),
            health=mine.health or file.health,
            metrics=mine.metrics or file.metrics,
            caches=_narrowed(file.caches or CacheOptions(), self.namespace) if self.namespace else file.caches,
        )


_current: ContextVar[Host | None] = ContextVar("host", default=None)


@contextmanager
def hosting(host: Host) -> Iterator[Host]:
    """Let the host decide about the managers that are made meanwhile."""
    before = _current.set(host)
    try:
        yield host
    finally:
        _current.reset(before)


def current_host() -> Host | None:
    return _current.get()


def _named(file: str | LeaderElection | None, host: str | LeaderElection | None) -> str | LeaderElection | None:
    """The host's election; if it is a name alone, with the file's times."""
    if isinstance(host, str) and host and isinstance(file, LeaderElection):
        return msgspec.structs.replace(file, name=host)
    return host or file


def _narrowed(caches: CacheOptions, namespace: str) -> CacheOptions:
    def narrow(settings: InformerSettings) -> InformerSettings:
        return msgspec.structs.replace(settings, namespaces=(namespace,))

    return msgspec.structs.replace(
        caches,
        defaults=narrow(caches.defaults),
        settings={kind: narrow(each) if each.namespaces == ("",) else each for kind, each in caches.settings.items()},
    )
