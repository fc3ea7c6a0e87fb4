// Events that travel along the edges: a bounded number of dots on a canvas, drawn once per animation frame.
//
// - A write travels from its author to its kind, and from there, as a watch event, to the controllers that watch the kind.
// - Over the limit, events are not drawn; the counts beside the graph include them.
// - Without motion (prefers-reduced-motion) edges light up and fade instead.
import type { Batch, GraphEdge, Write } from "../protocol";
import { reducedMotion } from "../theme";
import { type Layout, pointAt, type Route } from "./layout";

const LIMIT = 240;
const SPEED = 260; // pixels per second
const LEAST = 0.35; // seconds on an edge
const SPREAD = 0.25; // seconds over which the events of a batch set out
const GLOW = 1.2; // seconds that an edge stays lit

interface Particle { route: Route; start: number; seconds: number; tone: Tone; then: Route[] }
export type Tone = "event" | "create" | "delete" | "update";

export class Particles {
  private particles: Particle[] = [];
  private routes = new Map<string, Route>();
  private watching = new Map<string, Route[]>();
  private controllers = new Set<string>();
  private frame = 0;
  private colours: Record<Tone, string> = { event: "", create: "", delete: "", update: "" };
  readonly lit = new Map<Route, number>(); // when an event last took this edge
  frames = 0; // drawn so far, for measurements

  constructor(private readonly canvas: HTMLCanvasElement, private layout: Layout, private scale: number) {
    this.place(layout, scale);
  }

  place(layout: Layout, scale: number): void {
    this.layout = layout;
    this.scale = scale;
    this.routes = new Map(layout.routes.map((route) => [key(route.edge), route]));
    this.controllers = new Set(layout.boxes.filter((box) => box.node.type === "controller").map((box) => box.node.id));
    this.watching = new Map();
    for (const route of layout.routes) {
      if (route.edge.type !== "watches") continue;
      this.watching.set(route.edge.from, [...(this.watching.get(route.edge.from) ?? []), route]);
    }
    this.particles = [];
    const style = getComputedStyle(this.canvas);
    this.colours = {
      event: style.getPropertyValue("--event"), create: style.getPropertyValue("--ok"),
      delete: style.getPropertyValue("--bad"), update: style.getPropertyValue("--accent"),
    };
    const ratio = window.devicePixelRatio || 1;
    this.canvas.width = Math.ceil(layout.width * scale * ratio);
    this.canvas.height = Math.ceil((layout.height + 60) * scale * ratio);
    this.run();
  }

  stop(): void {
    cancelAnimationFrame(this.frame);
    this.frame = 0;
    this.particles = [];
  }

  show(batch: Batch): void {
    const begin = performance.now() / 1000;
    const step = SPREAD / Math.max(batch.writes.length, 1);
    batch.writes.forEach((write, index) => this.write(write, begin + index * step));
    for (const count of batch.counts ?? []) {
      const route = this.routes.get(`${count.from} ${count.to}`);
      if (route) this.send(route, begin, "update", []);
    }
    this.run();
  }

  private write(write: Write, start: number): void {
    const kind = `kind:${write.ref.apiVersion}/${write.ref.kind}`;
    const controller = `controller:${write.author}`;
    const author = this.controllers.has(controller) ? controller : "user";
    const tone = write.verb === "create" ? "create" : write.verb === "delete" ? "delete" : "update";
    const watchers = this.watching.get(kind) ?? [];
    const route = this.routes.get(`${author} ${kind}`);
    if (route) this.send(route, start, tone, watchers);
    else for (const watcher of watchers) this.send(watcher, start, "event", []);
  }

  private send(route: Route, start: number, tone: Tone, then: Route[]): void {
    this.lit.set(route, start);
    if (reducedMotion.matches) {
      for (const next of then) this.lit.set(next, start);
      return;
    }
    if (this.particles.length >= LIMIT) return;
    this.particles.push({ route, start, seconds: Math.max(route.length / SPEED, LEAST), tone, then });
  }

  private run(): void {
    if (!this.frame) this.frame = requestAnimationFrame(() => this.draw());
  }

  private draw(): void {
    this.frame = 0;
    this.frames += 1;
    const context = this.canvas.getContext("2d");
    if (!context) return;
    const now = performance.now() / 1000;
    const zoom = this.scale * (window.devicePixelRatio || 1);
    context.setTransform(zoom, 0, 0, zoom, 0, 0);
    context.clearRect(0, 0, this.layout.width, this.layout.height + 60);
    this.drawLit(context, now);
    const staying: Particle[] = [];
    const arrived: Particle[] = [];
    for (const particle of this.particles) {
      const part = (now - particle.start) / particle.seconds;
      if (part >= 1) {
        arrived.push(particle);
        continue;
      }
      staying.push(particle);
      if (part < 0) continue;
      const { x, y } = pointAt(particle.route, part);
      const small = particle.tone === "event";
      context.globalAlpha = small ? 0.65 : 1;
      context.fillStyle = this.colours[particle.tone];
      context.beginPath();
      context.arc(x, y, small ? 2.2 : 4, 0, Math.PI * 2);
      context.fill();
    }
    context.globalAlpha = 1;
    this.particles = staying;
    for (const { then } of arrived) for (const route of then) this.send(route, now, "event", []);
    if (this.particles.length || this.lit.size) this.run();
  }

  private drawLit(context: CanvasRenderingContext2D, now: number): void {
    context.lineWidth = 2;
    context.strokeStyle = this.colours.update;
    for (const [route, since] of this.lit) {
      const age = now - since;
      if (age > GLOW) {
        this.lit.delete(route);
        continue;
      }
      context.globalAlpha = Math.min(1, 1 - age / GLOW) * 0.45;
      context.beginPath();
      const first = route.curves[0];
      if (!first) continue;
      context.moveTo(first.x0, first.y0);
      for (const c of route.curves) context.bezierCurveTo(c.x1, c.y1, c.x2, c.y2, c.x3, c.y3);
      context.stroke();
    }
    context.globalAlpha = 1;
  }
}

const key = (edge: GraphEdge): string => `${edge.from} ${edge.to}`;
