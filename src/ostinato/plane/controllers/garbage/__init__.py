"""The garbage collector: what has lost all of its owners goes, too.

- An object with owners stays as long as one of them is there. Of several, those that are gone are struck off.
- *Background*: dependents go after their owner has gone. *Foreground*: the owner, held by a finalizer, waits until the
  dependents that block its deletion have gone. *Orphan*: dependents lose the reference, and stay.
- An owner is one by uid. One that nobody has heard of is looked up at the server, where the reference says: what is
  not there under that uid is gone.
- An owner is in the namespace of what it owns, or in none. What refers to another namespace has no such owner, and an
  event says so; a cluster-scoped object that refers to a namespaced owner is left alone.
- Every kind counts that can be listed, watched and deleted, events apart; kinds that are defined later, too.

`graph` knows who owns whom, `monitors` keep it up to date, `collector` acts on it.
"""

from __future__ import annotations

from ostinato.manager import Manager
from ostinato.plane.controllers import Options
from ostinato.plane.controllers.garbage.collector import GarbageCollector
from ostinato.plane.controllers.garbage.graph import Graph
from ostinato.plane.controllers.garbage.monitors import Monitors

NAME = "garbage-collector-controller"
_WORKERS = 20


def add_to(manager: Manager, options: Options) -> None:  # noqa: ARG001 - every module has the same door
    graph = Graph()
    manager.build(NAME).watches_source(Monitors(graph)).with_options(max_concurrent=_WORKERS).complete(
        GarbageCollector(graph)
    )
