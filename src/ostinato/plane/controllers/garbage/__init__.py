"""Garbage collector: deletes objects whose owners no longer exist.

- An object is kept while one of its owners exists. References to deleted owners are removed.
- *Background*: dependents are deleted after their owner. *Foreground*: the owner keeps a finalizer until the dependents
  that block its deletion are deleted. *Orphan*: the references of dependents are removed.
- Owners are identified by uid. An owner that is not in the graph is looked up on the server; if no object with that uid
  exists, it counts as absent.
- An owner must be in the namespace of its dependent, or cluster-scoped. A reference to another namespace is invalid and
  reported by an event. A cluster-scoped object with a namespaced owner is left alone.
- All kinds that support list, watch and delete are monitored, except events; CustomResourceDefinitions included.

`graph` holds the ownership graph, `monitors` update it from informers, `collector` processes its nodes.
"""

from __future__ import annotations

from ostinato.manager import Manager
from ostinato.plane.controllers import Options
from ostinato.plane.controllers.garbage.collector import GarbageCollector
from ostinato.plane.controllers.garbage.graph import Graph
from ostinato.plane.controllers.garbage.monitors import Monitors

NAME = "garbage-collector-controller"
_WORKERS = 20


def add_to(manager: Manager, options: Options) -> None:  # noqa: ARG001 - signature of all controllers
    graph = Graph()
    manager.build(NAME).watches_source(Monitors(graph)).with_options(max_concurrent=_WORKERS).complete(
        GarbageCollector(graph)
    )
