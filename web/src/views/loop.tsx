// The loop: who watches what and writes what, with the events as they happen, now or some minutes ago.
import { computed, signal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect, useMemo } from "preact/hooks";
import { clock, duration } from "../format";
import { activeIds, fromUsers, restrict, withPrimaries } from "../loop/active";
import { LoopGraph } from "../loop/graph";
import * as past from "../loop/history";
import { Card, Empty, Page } from "../parts/basics";
import { WriteList } from "../parts/writes";
import type { Graph } from "../protocol";
import { changes, controllers, dropped, graph, reconciles, writes } from "../state";
import { AlarmList } from "./alarms";

const everything = signal(false);
const SHOWN = 14;

/** Ids of the nodes in the picture; the same set as long as no other node becomes active. */
const shown = (() => {
  let before = new Set<string>();
  return computed(() => {
    changes.value;
    const ids = activeIds(graph.value, writes, reconciles);
    if (ids.size === before.size && [...ids].every((id) => before.has(id))) return before;
    before = ids;
    return before;
  });
})();

const completed = computed(() => withPrimaries(graph.value));

/** The graph of what is active; of that, if `compact`, what users' writes lead to. */
export function useShownGraph(compact = false): Graph {
  const all = everything.value && !compact;
  const ids = shown.value;
  const full = completed.value;
  return useMemo(() => (all ? full : restrict(full, compact ? fromUsers(full, ids) : ids)), [all, ids, full, compact]);
}

export function Loop(): JSX.Element {
  const visible = useShownGraph();
  const isLive = past.position.value === null;
  useEffect(() => () => past.live(), []);
  const hidden = graph.value.nodes.length - visible.nodes.length;
  return (
    <Page
      title="Loop"
      note="Who watches what and writes what. Writes travel from their author to a kind; watch events from a kind to its controllers."
      tools={
        <label class="switch">
          <input type="checkbox" checked={everything.value} onChange={(event) => (everything.value = event.currentTarget.checked)} />
          Show idle kinds and controllers{hidden > 0 && ` (${hidden})`}
        </label>
      }
    >
      <section class="card loop-card" aria-label="Graph">
        {visible.nodes.length ? <LoopGraph graph={visible} stats={isLive ? controllers.value : past.shownStats.value} subscribe={past.subscribe} />
          : <Empty title="No events yet">As soon as an object is written, its kind and the controllers behind it appear here.</Empty>}
        <Legend />
      </section>
      <Slider />
      {!isLive && past.shownAlarms.value.length > 0 && (
        <Card title={`Alarms at ${clock(past.position.value ?? 0)}`}><AlarmList of={past.shownAlarms.value} /></Card>
      )}
      <Card title={isLive ? "Latest writes" : `Writes before ${clock(past.position.value ?? 0)}`} note={isLive && dropped.value > 0 ? `${dropped.value.toLocaleString("en")} more were counted, not listed` : undefined}>
        <Latest />
      </Card>
    </Page>
  );
}

function Latest(): JSX.Element {
  changes.value;
  const list = past.position.value === null ? writes.slice(-SHOWN).reverse() : past.recent(SHOWN);
  return <WriteList writes={list.map(({ diff: _, ...write }) => write)} />;
}

function Legend(): JSX.Element {
  return (
    <ul class="legend" aria-label="Legend">
      <li><span class="dot dot-create" /> create</li>
      <li><span class="dot dot-update" /> update</li>
      <li><span class="dot dot-delete" /> delete</li>
      <li><span class="dot dot-event" /> watch event</li>
      <li><span class="line-sample writes" /> writes</li>
      <li><span class="line-sample watches" /> watches</li>
    </ul>
  );
}

function Slider(): JSX.Element {
  const at = past.position.value;
  const { oldest, newest } = past.span.value;
  const begin = async (): Promise<void> => {
    if (past.position.value !== null) return;
    await past.load();
    past.seek(past.span.value.newest);
  };
  return (
    <div class="slider card" role="group" aria-label="Time">
      <button type="button" class="button" onClick={() => void begin().then(() => past.step(-1))} aria-label="Previous write">‹</button>
      <button
        type="button" class="button" disabled={at === null}
        onClick={() => (past.playing.value ? (past.playing.value = false) : past.play())}
      >
        {past.playing.value ? "Pause" : "Play"}
      </button>
      <button type="button" class="button" disabled={at === null} onClick={() => past.step(1)} aria-label="Next write">›</button>
      <input
        type="range" aria-label="Time shown" min={oldest} max={newest || 1} step="0.1" value={at ?? (newest || 1)}
        aria-valuetext={at === null ? "live" : clock(at)} onPointerDown={() => void begin()} onKeyDown={() => void begin()}
        onInput={(event) => {
          past.playing.value = false;
          if (past.position.value !== null) past.seek(Number(event.currentTarget.value));
        }}
      />
      <output class="slider-at">{at === null ? "Live" : `${clock(at)} (${duration(Math.max(0, newest - at))} back)`}</output>
      <button type="button" class="button button-accent" disabled={at === null} onClick={() => past.live()}>Live</button>
    </div>
  );
}
