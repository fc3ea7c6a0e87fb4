// A layered layout of kinds and controllers, left to right, along what each controller is for and what it writes.
//
// - Ranked edges: primary watches (of the kind that a controller is for) and writes of other kinds. All others point back or aside.
// - Cycles are broken by depth-first search from the user; a rank is the longest path.
// - Long edges pass through invisible points of each rank between, which take part in the ordering.
import type { Graph, GraphEdge, GraphNode } from "../protocol";

export interface Box { node: GraphNode; x: number; y: number; width: number; height: number }
export interface Curve { x0: number; y0: number; x1: number; y1: number; x2: number; y2: number; x3: number; y3: number }
export interface Route { edge: GraphEdge; curves: Curve[]; main: boolean; length: number }
export interface Layout { boxes: Box[]; routes: Route[]; width: number; height: number }

const HEIGHT = { kind: 36, user: 36, controller: 74 };
const CONTROLLER_WIDTH = 160;
const CHARACTER = 8; // pixels of a character of a kind
const GAP_X = 54;
const GAP_Y = 18;
const POINT = 14; // height of an invisible point
const SWEEPS = 8;
const PRIMARY = 5; // how much more a primary watch pulls its ends together than another edge

interface Cell { id: string; box: Box | null; rank: number; height: number; y: number }

interface Link { from: Cell; to: Cell; weight: number }

/** The edges that lead forward: from a kind to the controller that is for it, and from there to other kinds. */
function ranked(graph: Graph): Set<GraphEdge> {
  const primaries = new Set(graph.edges.filter((edge) => edge.primary).map((edge) => `${edge.to} ${edge.from}`));
  return new Set(graph.edges.filter((edge) => edge.primary || (edge.type === "writes" && !primaries.has(`${edge.from} ${edge.to}`))));
}

function sizeOf(node: GraphNode): { width: number; height: number } {
  const width = node.type === "controller" ? CONTROLLER_WIDTH : Math.max(84, Math.min(node.label.length * CHARACTER + 32, 210));
  return { width, height: HEIGHT[node.type] };
}

function acyclic(nodes: GraphNode[], edges: Iterable<GraphEdge>): GraphEdge[] {
  const outgoing = new Map<string, GraphEdge[]>();
  for (const edge of edges) outgoing.set(edge.from, [...(outgoing.get(edge.from) ?? []), edge]);
  const done = new Set<string>();
  const path = new Set<string>();
  const kept: GraphEdge[] = [];
  const visit = (id: string): void => {
    done.add(id);
    path.add(id);
    for (const edge of outgoing.get(id) ?? []) {
      if (path.has(edge.to)) continue;
      kept.push(edge);
      if (!done.has(edge.to)) visit(edge.to);
    }
    path.delete(id);
  };
  const incoming = new Set([...edges].map((edge) => edge.to));
  const order = [...nodes].sort((a, b) => start(a) - start(b) || a.label.localeCompare(b.label));
  function start(node: GraphNode): number {
    return node.type === "user" ? 0 : incoming.has(node.id) ? 2 : 1;
  }
  for (const node of order) if (!done.has(node.id)) visit(node.id);
  return kept;
}

function ranks(nodes: GraphNode[], edges: GraphEdge[]): Map<string, number> {
  const rank = new Map(nodes.map((node) => [node.id, node.type === "user" ? 0 : node.type === "kind" ? 1 : 2]));
  for (let round = 0; round < nodes.length; round += 1) {
    let moved = false;
    for (const edge of edges) {
      const least = (rank.get(edge.from) ?? 0) + 1;
      if ((rank.get(edge.to) ?? 0) < least) {
        rank.set(edge.to, least);
        moved = true;
      }
    }
    if (!moved) break;
  }
  return rank;
}

export function layout(graph: Graph): Layout {
  const known = new Set(graph.nodes.map((node) => node.id));
  const edges = graph.edges.filter((edge) => known.has(edge.from) && known.has(edge.to) && edge.from !== edge.to);
  const forward = acyclic(graph.nodes, ranked({ nodes: graph.nodes, edges }));
  const rank = ranks(graph.nodes, forward);

  const columns: Cell[][] = [];
  const cells = new Map<string, Cell>();
  const add = (cell: Cell): void => {
    (columns[cell.rank] ??= []).push(cell);
    cells.set(cell.id, cell);
  };
  for (const node of [...graph.nodes].sort((a, b) => a.label.localeCompare(b.label))) {
    const box = { node, x: 0, y: 0, ...sizeOf(node) };
    add({ id: node.id, box, rank: rank.get(node.id) ?? 0, height: box.height, y: 0 });
  }
  const chains = new Map<GraphEdge, Cell[]>();
  const links: Link[] = [];
  for (const edge of forward) {
    const from = cells.get(edge.from)!;
    const to = cells.get(edge.to)!;
    const chain = [from];
    for (let r = from.rank + 1; r < to.rank; r += 1) {
      const point = { id: `${edge.from} ${edge.to} ${r}`, box: null, rank: r, height: POINT, y: 0 };
      add(point);
      chain.push(point);
    }
    chain.push(to);
    chains.set(edge, chain);
    for (let i = 1; i < chain.length; i += 1) links.push({ from: chain[i - 1]!, to: chain[i]!, weight: edge.primary ? PRIMARY : 1 });
  }
  for (let r = 0; r < columns.length; r += 1) columns[r] ??= [];
  order(columns, links);
  const height = place(columns, links);

  let x = 0;
  const left: number[] = [];
  const widths = columns.map((column) => Math.max(...column.map((cell) => cell.box?.width ?? 0), 40));
  widths.forEach((width, r) => {
    left[r] = x;
    for (const cell of columns[r]!) {
      if (!cell.box) continue;
      cell.box.x = x + (width - cell.box.width) / 2;
      cell.box.y = cell.y;
    }
    x += width + GAP_X;
  });

  const routes = edges.map((edge): Route => {
    const chain = chains.get(edge);
    const curves = chain ? along(chain, left, widths) : back(cells.get(edge.from)!.box!, cells.get(edge.to)!.box!);
    return { edge, curves, main: chain !== undefined || edge.type === "writes", length: curves.reduce((sum, curve) => sum + chord(curve), 0) };
  });
  const boxes = [...cells.values()].flatMap((cell) => (cell.box ? [cell.box] : []));
  return { boxes, routes, width: Math.max(x - GAP_X, 0), height };
}

/** Order the cells of each column by the mean position of their neighbours, back and forth. */
function order(columns: Cell[][], links: Link[]): void {
  for (let sweep = 0; sweep < SWEEPS; sweep += 1) {
    const position = new Map<Cell, number>();
    for (const column of columns) column.forEach((cell, index) => position.set(cell, index / Math.max(column.length, 1)));
    const mean = means(links, sweep % 2 === 0, (cell) => position.get(cell)!);
    for (const column of columns) {
      const keys = new Map(column.map((cell) => [cell, mean.get(cell) ?? position.get(cell)!]));
      column.sort((a, b) => keys.get(a)! - keys.get(b)!);
    }
  }
}

function means(links: Link[], fromLeft: boolean, at: (cell: Cell) => number): Map<Cell, number> {
  const sums = new Map<Cell, [number, number]>();
  for (const { from, to, weight } of links) {
    const [target, neighbour] = fromLeft ? [to, from] : [from, to];
    const [sum, count] = sums.get(target) ?? [0, 0];
    sums.set(target, [sum + weight * at(neighbour), count + weight]);
  }
  return new Map([...sums].map(([cell, [sum, count]]) => [cell, sum / count]));
}

/** Give each cell its y: near its neighbours, without overlap. Returns the height of all. */
function place(columns: Cell[][], links: Link[]): number {
  const heights = columns.map((column) => column.reduce((sum, cell) => sum + cell.height + GAP_Y, -GAP_Y));
  const total = Math.max(...heights, 0);
  columns.forEach((column, r) => {
    let y = (total - heights[r]!) / 2;
    for (const cell of column) {
      cell.y = y;
      y += cell.height + GAP_Y;
    }
  });
  for (let sweep = 0; sweep < SWEEPS; sweep += 1) {
    const mean = means(links, sweep % 2 === 0, (cell) => cell.y + cell.height / 2);
    for (const column of columns) {
      const wanted = column.map((cell) => (mean.get(cell) ?? cell.y + cell.height / 2) - cell.height / 2);
      let floor = 0;
      column.forEach((cell, index) => {
        cell.y = Math.max(floor, wanted[index]!);
        floor = cell.y + cell.height + GAP_Y;
      });
      let ceiling = total;
      for (let index = column.length - 1; index >= 0; index -= 1) {
        const cell = column[index]!;
        cell.y = Math.min(cell.y, ceiling - cell.height);
        ceiling = cell.y - GAP_Y;
      }
    }
  }
  return total;
}

function along(chain: Cell[], left: number[], widths: number[]): Curve[] {
  const points = chain.map((cell, index) => ({
    in: cell.box ? cell.box.x : left[cell.rank]!,
    out: cell.box ? cell.box.x + cell.box.width : left[cell.rank]! + widths[cell.rank]!,
    y: cell.y + cell.height / 2,
    index,
  }));
  const curves: Curve[] = [];
  for (let i = 1; i < points.length; i += 1) {
    const a = points[i - 1]!;
    const b = points[i]!;
    if (i > 1) curves.push(straight(a.in, a.y, a.out, a.y));
    const middle = (a.out + b.in) / 2;
    curves.push({ x0: a.out, y0: a.y, x1: middle, y1: a.y, x2: middle, y2: b.y, x3: b.in, y3: b.y });
  }
  return curves;
}

const straight = (x0: number, y0: number, x3: number, y3: number): Curve => ({ x0, y0, x1: x0 + (x3 - x0) / 3, y1: y0, x2: x0 + ((x3 - x0) * 2) / 3, y2: y3, x3, y3 });

/** An edge that leads back: out of the bottom of one box and into the bottom of the other. */
function back(from: Box, to: Box): Curve[] {
  const x0 = from.x + from.width / 2 + 14;
  const x3 = to.x + to.width / 2 + (to.x > from.x ? -14 : 14);
  const y0 = from.y + from.height;
  const y3 = to.y + to.height;
  const depth = Math.max(y0, y3) + 16 + Math.min(Math.abs(x0 - x3) * 0.08, 36);
  return [{ x0, y0, x1: x0, y1: depth, x2: x3, y2: depth, x3, y3 }];
}

const chord = (curve: Curve): number => Math.hypot(curve.x3 - curve.x0, curve.y3 - curve.y0) * 1.1;

export function pathOf(route: Route): string {
  const first = route.curves[0];
  if (!first) return "";
  const rest = route.curves.map((c) => `C${c.x1} ${c.y1} ${c.x2} ${c.y2} ${c.x3} ${c.y3}`);
  return `M${first.x0} ${first.y0}${rest.join("")}`;
}

/** The point at a part (0 to 1) of a route. */
export function pointAt(route: Route, part: number): { x: number; y: number } {
  const scaled = Math.min(Math.max(part, 0), 0.9999) * route.curves.length;
  const curve = route.curves[Math.floor(scaled)]!;
  const t = scaled % 1;
  const u = 1 - t;
  const [a, b, c, d] = [u * u * u, 3 * u * u * t, 3 * u * t * t, t * t * t];
  return { x: a * curve.x0 + b * curve.x1 + c * curve.x2 + d * curve.x3, y: a * curve.y0 + b * curve.y1 + c * curve.y2 + d * curve.y3 };
}
