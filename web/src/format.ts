// Times, amounts and names as text.
import type { Ref, Write } from "./protocol";

export function duration(seconds: number): string {
  if (!Number.isFinite(seconds)) return "–";
  if (seconds < 0) return "0 s";
  if (seconds < 0.0095) return `${(seconds * 1000).toFixed(1)} ms`;
  if (seconds < 0.9995) return `${Math.round(seconds * 1000)} ms`;
  if (seconds < 10) return `${seconds.toFixed(1)} s`;
  if (seconds < 120) return `${Math.round(seconds)} s`;
  if (seconds < 7200) return `${Math.round(seconds / 60)} min`;
  if (seconds < 172800) return `${Math.round(seconds / 3600)} h`;
  return `${Math.round(seconds / 86400)} d`;
}

export function ago(at: number, now: number): string {
  const seconds = now - at;
  return seconds < 1 ? "now" : `${duration(Math.floor(seconds)).replace(".0", "")} ago`;
}

const CLOCK = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", second: "2-digit", hour12: false });
export const clock = (at: number): string => CLOCK.format(at * 1000);
export const exact = (at: number): string => new Date(at * 1000).toISOString();

export function amount(value: number): string {
  if (value === 0) return "0";
  if (value < 10) return value.toFixed(1).replace(/\.0$/, "");
  return Math.round(value).toLocaleString("en");
}

export function bytes(value: number): string {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let unit = 0;
  while (value >= 1024 && unit < units.length - 1) {
    value /= 1024;
    unit += 1;
  }
  return `${unit && value < 10 ? value.toFixed(1) : Math.round(value)} ${units[unit]}`;
}

export const cores = (value: number): string => (value < 1 ? `${Math.round(value * 1000)} m` : value.toFixed(2));
export const percent = (part: number): string => `${Math.round(part * 100)} %`;
export const plural = (count: number, one: string, many = `${one}s`): string => `${count.toLocaleString("en")} ${count === 1 ? one : many}`;

export const kindId = (ref: Ref): string => `kind:${ref.apiVersion}/${ref.kind}`;
export const fullName = (ref: Ref): string => (ref.namespace ? `${ref.namespace}/${ref.name}` : ref.name);

const PAST: Record<Write["verb"], string> = { create: "created", update: "updated", delete: "deleted", status: "updated the status of" };
export const past = (write: Write): string => PAST[write.verb];

export function value(of: unknown): string {
  if (of === undefined || of === null) return "–";
  return typeof of === "string" ? of : JSON.stringify(of);
}

/** A controller by the word that distinguishes it: in a list, the column is narrow. */
export const short = (author: string): string => author.replace(/-controller$/, "");
