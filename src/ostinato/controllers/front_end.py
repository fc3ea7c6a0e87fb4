"""Front end: an operator in another form than a reconciler, which a manager runs and `ostinato run` finds in a module.

A front end is a `Runnable` that also says what it uses, so that roles and CustomResourceDefinitions can be derived.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ostinato.controllers.runnable import Dependencies
from ostinato.controllers.sources.sources import Source


class FrontEnd(ABC):
    """Base class of front ends. Subclasses set the attributes that differ from these defaults.

    - `name`: in logs, metrics and errors; unique within a manager.
    - `needs_leader_election`: Defaults to None, the manager's option for controllers.
    - `reconciles`, `owns`, `watches`, `access`: what it uses, as of a controller; see `ostinato.crd.rbac`.
    - `definitions`: CustomResourceDefinitions that it brings, as dicts.
    - `sharded`: with sharding, replicas share its objects, as those of a controller: it runs in all of them, with
      `Dependencies.shards`. Defaults to False.
    """

    name: str = ""
    needs_leader_election: bool | None = None
    reconciles: Sequence[Any] = ()
    owns: Sequence[Any] = ()
    watches: Sequence[Any] = ()
    access: Sequence[Any] = ()
    sources: Sequence[Source] = ()
    definitions: Sequence[dict[str, Any]] = ()
    sharded: bool = False

    @property
    def metrics_handlers(self) -> Mapping[str, Callable[[Any], Any]]:
        """Pages that it serves on the metrics endpoint of its manager, by path. Defaults to none."""
        return {}

    @property
    def has_synced(self) -> bool:
        """Whether it has started, as far as tests wait for it. Defaults to True."""
        return True

    def deciders(self) -> Mapping[str, Any]:
        """Return its deciders by the name of their controller, to replay recordings. Defaults to none."""
        return {}

    @abstractmethod
    async def run(self, dependencies: Dependencies, /) -> None:
        """Run until cancelled; see `runnable`."""
