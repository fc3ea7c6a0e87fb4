"""Hosting: a program loads a user's file and runs the managers in it with its own settings (`ostinato run`).

    with hosting(Host(choices=Choices(config=config))) as host:
        import_the_file()
    serve_together(*host.managers)

- For a manager that is created while the file is loaded, the host's settings override the file's. If the host sets the
  server, the server in the file is ignored.
- `run` of such a manager returns immediately and appends it to `Host.managers`; the host runs it later. A file that
  ends with `Manager().add(widgets).run()` can therefore be executed and loaded.
- The host is a context variable, set only while the file is loaded.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import msgspec

from ostinato.cache.informers import InformerSettings
from ostinato.client.config.config import Config
from ostinato.controllers.options import ControllerOptions
from ostinato.controllers.reports.observing import Observer
from ostinato.controllers.sources.namespace_patterns import is_pattern
from ostinato.manager.connecting import Connect
from ostinato.manager.connections import CacheOptions
from ostinato.manager.election.settings import LeaderElection
from ostinato.manager.serving.metrics import MetricsOptions
from ostinato.manager.sharding.settings import Sharding


class Choices(msgspec.Struct, frozen=True, kw_only=True):
    """The options of `Manager` that a host can override. Empty values are not set."""

    config: Config | None = None
    connect: Connect | None = None
    leader_election: str | LeaderElection | None = None
    sharding: str | Sharding | None = None
    health: str = ""
    metrics: str | MetricsOptions = ""
    profiler: str = ""
    caches: CacheOptions | None = None
    controllers: ControllerOptions | None = None
    observer: Observer | None = None


class Host(msgspec.Struct, kw_only=True):
    """
    - `choices`: overrides for every manager.
    - `namespace`: restricts the caches to this namespace, or the controllers to those that match a pattern. Defaults to
      "", all.
    - `managers`: the managers whose `run` was called.
    - `registered`: runnables that decorators have created in loaded modules, imported ones too.
    """

    choices: Choices = Choices()
    namespace: str = ""
    managers: list[Any] = []  # Any: Manager imports this module
    registered: list[Any] = []

    def decide(self, file: Choices) -> Choices:
        """Return the options of a manager, given those of the file."""
        mine = self.choices
        only, pattern = ("", self.namespace) if is_pattern(self.namespace) else (self.namespace, "")
        server = mine if mine.config is not None or mine.connect is not None else file
        return Choices(
            config=server.config,
            connect=server.connect,
            leader_election=_named(file.leader_election, mine.leader_election),
            sharding=_renamed(file.sharding, mine.sharding),
            health=mine.health or file.health,
            metrics=_at(file.metrics, mine.metrics),
            profiler=mine.profiler or file.profiler,
            caches=_narrowed(file.caches or CacheOptions(), only) if only else file.caches,
            controllers=_matching(file.controllers, pattern) if pattern else file.controllers,
            observer=mine.observer or file.observer,
        )


_current: ContextVar[Host | None] = ContextVar("host", default=None)


@contextmanager
def hosting(host: Host) -> Iterator[Host]:
    """Apply the host to the managers that are created within the block."""
    before = _current.set(host)
    try:
        yield host
    finally:
        _current.reset(before)


def current_host() -> Host | None:
    return _current.get()


def _named(file: str | LeaderElection | None, host: str | LeaderElection | None) -> str | LeaderElection | None:
    """Return the host's leader election; if it is only a name, with the file's other options."""
    if isinstance(host, str) and host and isinstance(file, LeaderElection):
        return msgspec.structs.replace(file, name=host)
    return host or file


def _renamed(file: str | Sharding | None, host: str | Sharding | None) -> str | Sharding | None:
    """Return the host's sharding; if it is only a name, with the file's other options."""
    if isinstance(host, str) and host and isinstance(file, Sharding):
        return msgspec.structs.replace(file, name=host)
    return host or file


def _at(file: str | MetricsOptions, host: str | MetricsOptions) -> str | MetricsOptions:
    """Return the host's metrics endpoint; if it is only an address, with the file's other options."""
    if isinstance(host, str) and host and isinstance(file, MetricsOptions):
        return msgspec.structs.replace(file, address=host)
    return host or file


def _matching(controllers: ControllerOptions | None, pattern: str) -> ControllerOptions:
    return msgspec.structs.replace(controllers or ControllerOptions(), namespaces=pattern)


def _narrowed(caches: CacheOptions, namespace: str) -> CacheOptions:
    def narrow(settings: InformerSettings) -> InformerSettings:
        return msgspec.structs.replace(settings, namespaces=(namespace,))

    return msgspec.structs.replace(
        caches,
        defaults=narrow(caches.defaults),
        settings={kind: narrow(each) if each.namespaces == ("",) else each for kind, each in caches.settings.items()},
    )
