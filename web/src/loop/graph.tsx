// The loop as a picture: boxes are buttons, edges are SVG, events are dots on a canvas.
import type { JSX } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { amount, duration, plural } from "../format";
import type { Batch, ControllerStats, Graph } from "../protocol";
import { go } from "../route";
import { isBehind } from "../state";
import { theme } from "../theme";
import { type Box, layout, type Layout, pathOf } from "./layout";
import { Particles } from "./particles";

const SMALLEST = 0.62;
const LARGEST = 1.15;
const COMPACT_HEIGHT = 300; // pixels, as far as the text stays readable

interface Props {
  graph: Graph;
  stats: ReadonlyMap<string, ControllerStats>;
  subscribe: (listener: (batch: Batch) => void) => () => void;
  compact?: boolean;
}

export function LoopGraph({ graph, stats, subscribe, compact = false }: Props): JSX.Element {
  const placed = useMemo(() => layout(graph), [graph]);
  const frame = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const particles = useRef<Particles | null>(null);
  const [room, setRoom] = useState(0);
  const [focus, setFocus] = useState<string | null>(null);
  const fitting = Math.min(room / (placed.width + 24), compact ? COMPACT_HEIGHT / (placed.height + 24) : LARGEST);
  const scale = room ? Math.min(Math.max(fitting, SMALLEST), LARGEST) : 1;

  useEffect(() => {
    const element = frame.current;
    if (!element) return;
    const observer = new ResizeObserver(() => setRoom(element.clientWidth));
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
  useEffect(() => {
    if (!canvas.current) return;
    if (particles.current) particles.current.place(placed, scale);
    else particles.current = new Particles(canvas.current, placed, scale);
  }, [placed, scale, theme.value]);
  useEffect(() => {
    const stop = subscribe((batch) => particles.current?.show(batch));
    return () => {
      stop();
      particles.current?.stop();
      particles.current = null;
    };
  }, [subscribe]);

  const width = placed.width * scale;
  const height = (placed.height + (compact ? 24 : 40)) * scale;
  return (
    <div class="loop-frame" ref={frame} role="group" aria-label="Kinds and controllers, left to right">
      <div class="loop-graph" style={{ width: `${width}px`, height: `${height}px` }}>
        <Edges placed={placed} width={width} height={height} scale={scale} focus={focus} />
        <canvas ref={canvas} class="loop-canvas" aria-hidden="true" style={{ width: `${width}px`, height: `${(placed.height + 60) * scale}px` }} />
        <div class="loop-boxes" style={{ transform: `scale(${scale})` }}>
          {placed.boxes.map((box) => (
            <NodeBox key={box.node.id} box={box} stats={stats.get(box.node.label)} dim={focus !== null && !near(placed, focus, box.node.id)} onFocus={setFocus} />
          ))}
        </div>
      </div>
    </div>
  );
}

function near(placed: Layout, focus: string, id: string): boolean {
  return id === focus || placed.routes.some(({ edge }) => (edge.from === focus && edge.to === id) || (edge.to === focus && edge.from === id));
}

function Edges({ placed, width, height, scale, focus }: { placed: Layout; width: number; height: number; scale: number; focus: string | null }): JSX.Element {
  return (
    <svg class="loop-edges" width={width} height={height} viewBox={`0 0 ${width / scale} ${height / scale}`} aria-hidden="true">
      <defs>
        <marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="6" markerHeight="6" orient="auto"><path d="M0 0L8 4L0 8Z" /></marker>
      </defs>
      {placed.routes.map((route) => {
        const { from, to, type } = route.edge;
        const chosen = focus !== null && (from === focus || to === focus);
        const shade = focus === null ? (route.main ? "" : "faint") : chosen ? "chosen" : "faint";
        return <path key={`${from} ${to} ${type}`} class={`edge edge-${type} ${shade}`} d={pathOf(route)} marker-end="url(#arrow)" />;
      })}
    </svg>
  );
}

function NodeBox({ box, stats, dim, onFocus }: { box: Box; stats: ControllerStats | undefined; dim: boolean; onFocus: (id: string | null) => void }): JSX.Element {
  const { node } = box;
  const behind = stats ? isBehind(stats) : false;
  const place = { transform: `translate(${box.x}px, ${box.y}px)`, width: `${box.width}px`, height: `${box.height}px` };
  const listeners = {
    onMouseEnter: () => onFocus(node.id), onMouseLeave: () => onFocus(null), onFocus: () => onFocus(node.id), onBlur: () => onFocus(null),
  };
  const open = (): void => {
    if (node.type === "controller") go("controller", { name: node.label });
    else if (node.type === "kind") go("objects", { kind: node.id.slice("kind:".length).split("/").at(-1) ?? "" });
  };
  if (node.type !== "controller") {
    return (
      <button type="button" class={`node node-${node.type} ${dim ? "dim" : ""}`} style={place} {...listeners} onClick={open} aria-label={`${node.type === "kind" ? "Kind" : "Users"} ${node.label}`}>
        {node.label}
      </button>
    );
  }
  return (
    <button type="button" class={`node node-controller ${dim ? "dim" : ""} ${behind ? "behind" : ""}`} style={place} {...listeners} onClick={open} aria-label={describe(node.label, stats)}>
      <span class="node-name" title={node.label}>{node.label.replace(/-controller$/, "")}</span>
      {stats ? (
        <>
          <span class="node-queue">
            <span class="meter"><span style={{ width: `${Math.min(100, Math.sqrt(stats.depth) * 10)}%` }} /></span>
            <span>{plural(stats.depth, "key")}</span>
          </span>
          <span class="node-facts">
            <span title="busy workers of all">{stats.busy}/{stats.workers}</span>
            <span title="median duration of a reconcile">{duration(stats.p50)}</span>
            {stats.errors > 0 ? <span class="bad" title="errors per second">{amount(stats.errors)} err/s</span>
              : stats.retries > 0 ? <span class="warn" title="retries per second">{amount(stats.retries)} retr/s</span>
              : <span title="reconciles per second">{amount(stats.rate)}/s</span>}
          </span>
        </>
      ) : <span class="node-facts quiet">no queue statistics</span>}
    </button>
  );
}

function describe(name: string, stats: ControllerStats | undefined): string {
  if (!stats) return `Controller ${name}`;
  return `Controller ${name}: ${plural(stats.depth, "key")} waiting, ${stats.busy} of ${stats.workers} workers busy, median ${duration(stats.p50)}, ${amount(stats.errors)} errors per second`;
}
