// The address bar is the state of the page: `#/view?key=value`. A view reads parameters, links and filters write them.
import { signal } from "@preact/signals";
import type { Ref } from "./protocol";

export interface Route { view: string; params: URLSearchParams }

function parse(): Route {
  const [path = "", query = ""] = location.hash.replace(/^#\/?/, "").split("?", 2);
  return { view: path || "overview", params: new URLSearchParams(query) };
}

export const route = signal<Route>(parse());
addEventListener("hashchange", () => (route.value = parse()));

export function href(view: string, params: Record<string, string> = {}): string {
  const query = new URLSearchParams(Object.entries(params).filter(([, value]) => value !== "")).toString();
  return `#/${view}${query ? `?${query}` : ""}`;
}

export function go(view: string, params: Record<string, string> = {}): void {
  location.hash = href(view, params);
}

/** Change parameters of the current view without a new entry in the browser's history. */
export function adjust(changes: Record<string, string>): void {
  const params = { ...Object.fromEntries(route.value.params), ...changes };
  history.replaceState(null, "", href(route.value.view, params));
  route.value = parse();
}

export function refParams(ref: Ref): Record<string, string> {
  return { apiVersion: ref.apiVersion, kind: ref.kind, namespace: ref.namespace, name: ref.name };
}

export const objectHref = (ref: Ref, extra: Record<string, string> = {}): string => href("object", { ...refParams(ref), ...extra });
export const controllerHref = (name: string): string => href("controller", { name });
