// What the page knows of the process: written by the stream, once per animation frame, and read by all views.
import { computed, signal } from "@preact/signals";
import type { About, Alarm, Batch, ControllerStats, Graph, Reconcile, Write } from "./protocol";

export type Connection = "connecting" | "live" | "hidden" | "lost" | "unauthorized";
export interface Sample { at: number; stats: ControllerStats }

const KEPT = 2000; // writes and reconciles, each
const KEPT_SAMPLES = 300; // per controller: five minutes

export const about = signal<About | null>(null);
export const connection = signal<Connection>("connecting");
export const graph = signal<Graph>({ nodes: [], edges: [] });
export const controllers = signal<ReadonlyMap<string, ControllerStats>>(new Map());
export const alarms = signal<Alarm[]>([]);
export const writeCount = signal(0); // grows with every write: what depends on objects may be old
export const changes = signal(0); // grows with every frame that changed the rings below
export const dropped = signal(0);

export const writes: Write[] = []; // newest last
export const reconciles: Reconcile[] = []; // newest last
export const samples = new Map<string, Sample[]>(); // by controller, newest last

/** Seconds since the epoch, by the clock of the process, once a second. */
export const now = signal(Date.now() / 1000);
let skew = 0;

/** Take the time of the process, as a batch that has just arrived has it. */
export function setTime(at: number): void {
  skew = at - Date.now() / 1000;
}

setInterval(() => {
  if (!document.hidden) now.value = Date.now() / 1000 + skew;
}, 1000);

export const byLag = computed(() =>
  [...controllers.value.values()].sort((a, b) => lag(b) - lag(a) || activity(b) - activity(a) || a.name.localeCompare(b.name)),
);

/** How far behind a controller is: those with a reason first, then by waiting time, keys and failures. */
function lag(stats: ControllerStats): number {
  return (isBehind(stats) ? 1e6 : 0) + stats.oldest + stats.depth * 0.01 + (stats.errors + stats.retries) * 0.1;
}

export const isBehind = (stats: ControllerStats): boolean => stats.reason !== "";

const runs = new Map<string, number>(); // reconciles seen, by controller
const activity = (stats: ControllerStats): number => runs.get(stats.name) ?? 0;

const listeners = new Set<(batch: Batch) => void>();

/** Call back for every batch, as it is applied; returns how to stop. */
export function onBatch(listener: (batch: Batch) => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

function append<T>(ring: T[], items: T[], limit: number): T[] {
  ring.push(...items);
  return ring.length > limit * 1.25 ? ring.splice(0, ring.length - limit) : [];
}

const known = new Set<string>(); // ids of what is in the rings: history and stream overlap

/** The items that are not in a ring yet, after they were added to it. */
function add<T extends { id: string }>(ring: T[], items: T[]): T[] {
  const fresh = items.filter((item) => !known.has(item.id));
  for (const item of fresh) known.add(item.id);
  for (const item of append(ring, fresh, KEPT)) known.delete(item.id);
  return fresh;
}

export function addSamples(stats: ControllerStats[], at: number): void {
  for (const one of stats) {
    const ring = samples.get(one.name) ?? [];
    samples.set(one.name, ring);
    append(ring, [{ at, stats: one }], KEPT_SAMPLES);
  }
}

export function apply(batches: Batch[]): void {
  let latest: Map<string, ControllerStats> | null = null;
  let written = 0;
  for (const batch of batches) {
    const fresh = { ...batch, writes: add(writes, batch.writes), reconciles: add(reconciles, batch.reconciles) };
    for (const { controller } of fresh.reconciles) runs.set(controller, (runs.get(controller) ?? 0) + 1);
    addSamples(batch.controllers, batch.at);
    written += fresh.writes.length + batch.dropped;
    if (batch.controllers.length) {
      latest ??= new Map(controllers.peek());
      for (const stats of batch.controllers) latest.set(stats.name, stats);
    }
    if (batch.alarms) alarms.value = batch.alarms;
    if (batch.graph) graph.value = batch.graph;
    dropped.value += batch.dropped;
    for (const listener of listeners) listener(fresh);
  }
  if (latest) controllers.value = latest;
  writeCount.value += written;
  changes.value += 1;
}
