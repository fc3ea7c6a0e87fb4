"""Answers about the cluster: the owner trees."""

from __future__ import annotations

from typing import Final

from ostinato.api.selectors import labels as label_selectors
from ostinato.page.answers.query import BadQuery, Query
from ostinato.page.facts import Fact, Tree
from ostinato.page.watching.cluster import Cluster
from ostinato.page.watching.trees import MAX_OBJECTS, Filter, Known, Owners, Trees
from ostinato.world import Clock

_FRESH: Final = 1.0  # seconds for which owners are reused


class Objects(Fact, frozen=True, kw_only=True):
    roots: list[Tree]
    total: int
    kinds: list[str]
    namespaces: list[str]


class ClusterFacts:
    def __init__(self, clock: Clock, cluster: Cluster) -> None:
        self._clock = clock
        self._cluster = cluster
        self._owners = Owners(())
        self._read_at = float("-inf")
        self._known: Known = {}

    def owners(self) -> Owners:
        """Return the owner references of all objects, at most a second old."""
        now = self._clock.monotonic()
        if now - self._read_at > _FRESH:
            self._owners, self._read_at = Owners(self._cluster.entries()), now
        return self._owners

    async def objects(self, query: Query) -> Objects:
        wanted = _filter(query)
        owners = self.owners()
        roots, total = owners.select(wanted)
        self._known = {uid: known for uid, known in self._known.items() if owners.get(uid) is not None}
        trees = Trees(owners, wanted, self._clock, self._known)
        trees.left = query.count("limit", 1_000, MAX_OBJECTS)
        shown: list[Tree] = []
        for root in roots:
            if trees.left <= 0:
                break
            shown.append(await trees.build(root))
        kinds = sorted({f"{each.api_version}/{each.kind}" for each in self._cluster.kinds})
        namespaces = {entry.key.namespace for entry in self._cluster.entries()} - {""}
        return Objects(
            roots=shown,
            total=total,
            kinds=kinds,
            namespaces=sorted(namespaces),
        )


def _filter(query: Query) -> Filter:
    labels = query.text("labels")
    try:
        selector = label_selectors.parse(labels) if labels else None
    except ValueError as error:
        raise BadQuery(f"labels: {error}") from None
    return Filter(
        kind=query.text("kind"),
        namespace=query.text("namespace"),
        labels=selector,
        text=query.text("q").lower(),
        deleting=query.flag("deleting"),
        root=query.text("root"),
    )
