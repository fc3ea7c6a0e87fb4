// The server-sent events of the process, applied to the state once per animation frame.
import { batch as together } from "@preact/signals";
import { get } from "./api";
import type { About, Alarm, Batch, Graph } from "./protocol";
import { about, alarms, apply, connection, graph, reconciles, setTime, writes } from "./state";

const RETRY = [1000, 2000, 5000, 10000];
const RESTORED = 300; // seconds
const WAITING = 40; // batches that wait for a frame; a covered window has none
const HIDDEN = 2_000; // milliseconds until a hidden tab ends its stream, unless it is shown again: it costs the process

let pending: Batch[] = [];
let frame = 0;
let failures = 0;
let stream: EventSource | null = null;
let hiding = 0; // timer

function flush(): void {
  frame = 0;
  const batches = pending;
  pending = [];
  const last = batches.at(-1);
  if (last) setTime(last.at);
  together(() => apply(batches));
}

function receive(event: MessageEvent<string>): void {
  pending.push(JSON.parse(event.data) as Batch);
  if (pending.length > WAITING) flush();
  else if (!frame) frame = requestAnimationFrame(flush);
}

/** Follow the process until the page is closed, and connect again when the connection is lost. */
export async function follow(): Promise<void> {
  try {
    about.value = await get<About>("about"); // says, other than an EventSource, whether this browser has access
  } catch {
    retry();
    return;
  }
  if (document.hidden) {
    hide();
    return;
  }
  const source = (stream = new EventSource("/api/stream"));
  const fail = (): void => {
    if (source.readyState === EventSource.CLOSED) return;
    source.close();
    retry();
  };
  let early: MessageEvent<string>[] | null = []; // batches that arrive before the history
  source.onerror = fail;
  source.onopen = () => void restore().then(() => {
    if (source.readyState === EventSource.CLOSED) return;
    failures = 0;
    connection.value = "live";
    early?.forEach(receive);
    early = null;
  }, fail);
  source.addEventListener("batch", (event) => (early ? early.push(event) : receive(event)));
}

/** Read the graph, the alarms, and what happened before the page was opened or while the connection was lost. */
async function restore(): Promise<void> {
  const since = Math.max(writes.at(-1)?.at ?? 0, reconciles.at(-1)?.at ?? 0, Date.now() / 1000 - RESTORED);
  const [currentGraph, currentAlarms, history] = await Promise.all([
    get<Graph>("graph"), get<{ alarms: Alarm[] }>("alarms"), get<{ batches: Batch[] }>("history", { from: String(since - 1) }),
  ]);
  together(() => {
    apply(history.batches);
    graph.value = currentGraph;
    alarms.value = currentAlarms.alarms; // those of the history are older
  });
}

/** End the stream of a hidden tab; what it misses is read from the history when it is shown again. */
function hide(): void {
  stream?.close();
  stream = null;
  connection.value = "hidden";
}

document.addEventListener("visibilitychange", () => {
  clearTimeout(hiding);
  if (document.hidden) hiding = window.setTimeout(() => connection.value === "live" && hide(), HIDDEN);
  else if (connection.value === "hidden") {
    connection.value = "connecting";
    void follow();
  }
});

function retry(): void {
  if (connection.value !== "unauthorized") connection.value = "lost";
  window.setTimeout(() => void follow(), RETRY[Math.min(failures, RETRY.length - 1)]);
  failures += 1;
}

