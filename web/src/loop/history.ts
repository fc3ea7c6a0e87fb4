// The last minutes, to go back to: a position in recorded batches, which plays on from there.
import { signal } from "@preact/signals";
import { get } from "../api";
import type { Alarm, Batch, ControllerStats } from "../protocol";
import { onBatch } from "../state";

/** Where the loop is: null is live, otherwise the time that is shown. */
export const position = signal<number | null>(null);
export const playing = signal(false);
export const span = signal<{ oldest: number; newest: number }>({ oldest: 0, newest: 0 });
export const shownStats = signal<ReadonlyMap<string, ControllerStats>>(new Map());
export const shownAlarms = signal<Alarm[]>([]); // at the position

const REACH = 900; // seconds

let batches: Batch[] = [];
let next = 0; // index of the first batch after the position
const listeners = new Set<(batch: Batch) => void>();

/** Batches as they are shown: live, or from the position on. */
export function subscribe(listener: (batch: Batch) => void): () => void {
  listeners.add(listener);
  const stop = onBatch((batch) => {
    if (position.value === null) listener(batch);
  });
  return () => {
    listeners.delete(listener);
    stop();
  };
}

export async function load(): Promise<void> {
  const history = await get<{ batches: Batch[] }>("history", { from: String(Date.now() / 1000 - REACH) });
  batches = history.batches;
  span.value = { oldest: batches[0]?.at ?? 0, newest: batches.at(-1)?.at ?? 0 };
}

export function seek(at: number): void {
  position.value = at;
  const after = batches.findIndex((batch) => batch.at > at);
  next = after < 0 ? batches.length : after;
  const stats = new Map<string, ControllerStats>();
  let alarms: Alarm[] = [];
  for (const batch of batches.slice(0, next)) {
    for (const one of batch.controllers) stats.set(one.name, one);
    alarms = batch.alarms ?? alarms;
  }
  shownStats.value = stats;
  shownAlarms.value = alarms;
}

export function live(): void {
  position.value = null;
  playing.value = false;
}

/** Writes and reconciles up to the position, newest first. */
export function recent(count: number): Batch["writes"] {
  const writes: Batch["writes"] = [];
  for (let index = next - 1; index >= 0 && writes.length < count; index -= 1) writes.push(...[...batches[index]!.writes].reverse());
  return writes.slice(0, count);
}

export const all = (): Batch[] => batches;

let last = 0;
function advance(now: number): void {
  if (!playing.value || position.value === null) return;
  const at = position.value + (now - last) / 1000;
  last = now;
  let stats: Map<string, ControllerStats> | null = null;
  for (let batch = batches[next]; batch && batch.at <= at; batch = batches[++next]) {
    for (const listener of listeners) listener(batch);
    stats ??= new Map(shownStats.value);
    for (const one of batch.controllers) stats.set(one.name, one);
    if (batch.alarms) shownAlarms.value = batch.alarms;
  }
  if (stats) shownStats.value = stats;
  position.value = at;
  if (next >= batches.length) playing.value = false;
  else requestAnimationFrame(advance);
}

export function play(): void {
  playing.value = true;
  last = performance.now();
  requestAnimationFrame(advance);
}

/** One batch with writes forward or back. */
export function step(by: 1 | -1): void {
  let index = by > 0 ? next : next - 2;
  while (batches[index] && !batches[index]!.writes.length) index += by;
  const target = batches[index];
  if (!target) return;
  seek(target.at);
  if (by > 0) for (const listener of listeners) listener(target);
}
