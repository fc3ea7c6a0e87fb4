// Lines over time, as SVG.
import type { JSX } from "preact";
import { clock } from "../format";

export interface Point { at: number; value: number }

function path(points: Point[], width: number, height: number, top: number): string {
  const first = points[0]?.at ?? 0;
  const span = Math.max((points.at(-1)?.at ?? 1) - first, 1);
  return points
    .map(({ at, value }, index) => {
      const x = ((at - first) / span) * width;
      const y = height - 1 - (value / top) * (height - 3);
      return `${index ? "L" : "M"}${x.toFixed(1)} ${y.toFixed(1)}`;
    })
    .join("");
}

export function Sparkline({ points, label, width = 96, height = 22 }: { points: Point[]; label: string; width?: number; height?: number }): JSX.Element {
  const top = Math.max(...points.map((point) => point.value), 1e-9);
  return (
    <svg class="spark" viewBox={`0 0 ${width} ${height}`} width={width} height={height} role="img" aria-label={label} preserveAspectRatio="none">
      {points.length > 1 && <path d={path(points, width, height, top)} />}
    </svg>
  );
}

export function Chart({ title, points, format }: { title: string; points: Point[]; format: (value: number) => string }): JSX.Element {
  const width = 600;
  const height = 140;
  const top = Math.max(...points.map((point) => point.value), 1e-9) * 1.15;
  const last = points.at(-1);
  const line = path(points, width, height, top);
  return (
    <figure class="chart">
      <figcaption>
        <span>{title}</span>
        <strong>{last ? format(last.value) : "–"}</strong>
      </figcaption>
      <svg viewBox={`0 0 ${width} ${height}`} role="img" aria-label={`${title}: ${last ? format(last.value) : "no samples"}`} preserveAspectRatio="none">
        {[0.25, 0.5, 0.75].map((part) => <line key={part} class="rule" x1="0" x2={width} y1={height * part} y2={height * part} />)}
        {points.length > 1 && <path class="area" d={`${line}L${width} ${height}L0 ${height}Z`} />}
        {points.length > 1 && <path class="line" d={line} />}
      </svg>
      <div class="chart-axis quiet">
        <span>{points[0] ? clock(points[0].at) : ""}</span>
        <span>max {format(top / 1.15)}</span>
        <span>{last ? clock(last.at) : ""}</span>
      </div>
    </figure>
  );
}
