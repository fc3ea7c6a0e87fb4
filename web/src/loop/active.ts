// The part of the graph that is worth seeing: kinds and controllers with recent events.
import { kindId } from "../format";
import type { Graph, GraphEdge, Reconcile, Write } from "../protocol";

/** The ids of nodes that took part in these writes and reconciles. */
export function activeIds(graph: Graph, writes: Iterable<Write>, reconciles: Iterable<Reconcile>): Set<string> {
  const known = new Set(graph.nodes.map((node) => node.id));
  const ids = new Set<string>();
  for (const write of writes) {
    ids.add(kindId(write.ref));
    ids.add(known.has(`controller:${write.author}`) ? `controller:${write.author}` : "user");
  }
  for (const reconcile of reconciles) {
    if (reconcile.writes.length || reconcile.result === "error" || reconcile.result === "conflict") ids.add(`controller:${reconcile.controller}`);
    for (const written of reconcile.writes) ids.add(kindId(written.ref));
  }
  return new Set([...ids].filter((id) => known.has(id)));
}

/** The ids that a user's write leads to, over primary watches and writes, and the controllers that write such kinds. */
export function fromUsers(graph: Graph, ids: ReadonlySet<string>): Set<string> {
  const edges = graph.edges.filter((edge) => ids.has(edge.from) && ids.has(edge.to) && (edge.primary || edge.type === "writes"));
  const reached = new Set(["user"]);
  for (const id of reached) for (const edge of edges) if (edge.from === id) reached.add(edge.to); // a Set is iterated while it grows
  for (const edge of edges) if (edge.type === "writes" && reached.has(edge.to)) reached.add(edge.from);
  return reached.size > 1 ? reached : new Set(ids);
}

/** The graph with one primary watch for each controller at least: the one that its name tells, or its first. */
export function withPrimaries(graph: Graph): Graph {
  const watched = new Map<string, GraphEdge[]>();
  for (const edge of graph.edges) if (edge.type === "watches") watched.set(edge.to, [...(watched.get(edge.to) ?? []), edge]);
  const chosen = new Set<GraphEdge>();
  for (const [controller, edges] of watched) {
    if (edges.some((edge) => edge.primary)) continue;
    const named = edges.find((edge) => controller.includes(edge.from.split("/").at(-1)!.toLowerCase()));
    chosen.add(named ?? edges[0]!);
  }
  return { nodes: graph.nodes, edges: graph.edges.map((edge) => (chosen.has(edge) ? { ...edge, primary: true } : edge)) };
}

export function restrict(graph: Graph, ids: ReadonlySet<string>): Graph {
  return {
    nodes: graph.nodes.filter((node) => ids.has(node.id)),
    edges: graph.edges.filter((edge) => ids.has(edge.from) && ids.has(edge.to)),
  };
}
