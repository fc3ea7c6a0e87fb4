"""Graph of the loop: kinds, controllers and users; who watches what, and who writes what. It only grows."""

from __future__ import annotations

from ostinato.api.gvk import GroupVersionKind
from ostinato.page.facts import USER_NODE, Edge, Graph, Node, controller_node, kind_node
from ostinato.page.reporting.reports import Watches


class LiveGraph:
    def __init__(self) -> None:
        self.version = 0  # increases with each new node or edge
        self._nodes: dict[str, Node] = {USER_NODE: Node(USER_NODE, "user", "users")}
        self._edges: dict[tuple[str, str, str], Edge] = {}

    def has_controller(self, name: str) -> bool:
        return controller_node(name) in self._nodes

    def author(self, controller: str) -> str:
        """Return the node of an author: its controller, or the users."""
        node = controller_node(controller)
        return node if controller and node in self._nodes else USER_NODE

    def watches(self, watch: Watches) -> None:
        kind = kind_node(GroupVersionKind.of(watch.api_version, watch.kind))
        self._add_nodes(kind, watch.controller)
        self._add_edge(Edge(kind, controller_node(watch.controller), "watches", watch.primary))

    def writes(self, controller: str, kind: str) -> None:
        """A controller, or a user if it is "", writes objects of a kind."""
        source = controller_node(controller) if controller else USER_NODE
        if (source, kind, "writes") not in self._edges:
            self._add_nodes(kind, controller)
            self._add_edge(Edge(source, kind, "writes"))

    def graph(self) -> Graph:
        return Graph([*self._nodes.values()], [*self._edges.values()])

    def _add_nodes(self, kind: str, controller: str) -> None:
        label = kind.rpartition("/")[2]
        self._nodes.setdefault(kind, Node(kind, "kind", label))
        if controller:
            node = controller_node(controller)
            self._nodes.setdefault(node, Node(node, "controller", controller))

    def _add_edge(self, edge: Edge) -> None:
        key = (edge.source, edge.target, edge.type)
        known = self._edges.get(key)
        if known is None or (edge.primary and not known.primary):
            self._edges[key] = edge
            self.version += 1
