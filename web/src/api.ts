// Requests to the process, and resources that a view keeps up to date.
import { signal, type Signal } from "@preact/signals";
import { useEffect, useMemo } from "preact/hooks";
import { connection, writeCount } from "./state";

export class RequestFailed extends Error {
  constructor(readonly status: number, message: string) {
    super(message);
  }
}

export async function get<T>(path: string, params: Record<string, string> = {}, abort?: AbortSignal): Promise<T> {
  const query = new URLSearchParams(Object.entries(params).filter(([, value]) => value !== "")).toString();
  const response = await fetch(`/api/${path}${query ? `?${query}` : ""}`, { signal: abort ?? null });
  return answer<T>(response);
}

export async function post<T>(path: string, body: unknown): Promise<T> {
  const headers = { "Content-Type": "application/json", "X-Ostinato-Page": "1" };
  return answer<T>(await fetch(`/api/${path}`, { method: "POST", headers, body: JSON.stringify(body) }));
}

async function answer<T>(response: Response): Promise<T> {
  if (response.ok) return (await response.json()) as T;
  if (response.status === 401) connection.value = "unauthorized";
  let message = response.statusText || `HTTP ${response.status}`;
  try {
    message = ((await response.json()) as { error?: string }).error ?? message;
  } catch {
    // The status says it.
  }
  throw new RequestFailed(response.status, message);
}

export interface Loaded<T> { data: T | null; error: RequestFailed | Error | null; loading: boolean }

const MIN_INTERVAL = 1000;
const SHARE = 20; // of the time that a refresh takes, the pause before the next one

/**
 * The answer to a request, requested again after writes as long as the component is mounted.
 *
 * - At most once a second, and at most a twentieth of the time is spent on it: a large answer is refreshed less often.
 * - The last answer stays while a newer one is under way or has failed.
 * - `poll` seconds: also without writes, for data that changes by itself.
 */
export function useResource<T>(path: string | null, params: Record<string, string> = {}, poll = 0): Signal<Loaded<T>> {
  const key = path === null ? "" : `${path}?${new URLSearchParams(params).toString()}`;
  const resource = useMemo(() => signal<Loaded<T>>({ data: null, error: null, loading: key !== "" }), [key]);
  useEffect(() => {
    if (path === null) return;
    const abort = new AbortController();
    let timer = 0;
    const load = async (): Promise<void> => {
      const seen = writeCount.peek();
      const begin = performance.now();
      try {
        resource.value = { data: await get<T>(path, params, abort.signal), error: null, loading: false };
      } catch (error) {
        if (abort.signal.aborted) return;
        resource.value = { data: resource.peek().data, error: error as Error, loading: false };
      }
      wait(seen, begin, Math.max(MIN_INTERVAL, SHARE * (performance.now() - begin)));
    };
    const wait = (seen: number, begin: number, pause: number): void => {
      timer = window.setTimeout(() => {
        const due = writeCount.peek() !== seen || (poll > 0 && performance.now() - begin > poll * 1000);
        if (due && !document.hidden) void load();
        else wait(seen, begin, 250);
      }, pause);
    };
    void load();
    return () => {
      abort.abort();
      clearTimeout(timer);
    };
  }, [key]);
  return resource;
}
