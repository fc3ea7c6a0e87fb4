// Small pieces that every view uses.
import type { ComponentChildren, JSX } from "preact";
import type { Loaded } from "../api";
import { RequestFailed } from "../api";
import { ago, exact, fullName } from "../format";
import type { Ready, Ref } from "../protocol";
import { objectHref } from "../route";
import { now } from "../state";

const MARKS: Record<Ready, string> = { ready: "●", progressing: "◐", failed: "✕", unknown: "○" };

/** Readiness as shape, colour and, for screen readers, a word. */
export function Mark({ ready }: { ready: Ready }): JSX.Element {
  return <span class={`mark mark-${ready}`} role="img" aria-label={ready} title={ready}>{MARKS[ready]}</span>;
}

export function Pill({ tone = "plain", children }: { tone?: "plain" | "ok" | "warn" | "bad" | "accent"; children: ComponentChildren }): JSX.Element {
  return <span class={`pill pill-${tone}`}>{children}</span>;
}

export function Since({ at }: { at: number | null }): JSX.Element {
  if (at === null) return <span class="since">–</span>;
  return <time class="since" dateTime={exact(at)} title={exact(at)}>{ago(at, now.value)}</time>;
}

export function ObjectLink({ of, extra, short = false }: { of: Ref; extra?: Record<string, string>; short?: boolean }): JSX.Element {
  return (
    <a class="object-link" href={objectHref(of, extra)} title={`${of.kind} ${fullName(of)}`}>
      <span class="kind">{of.kind}</span> <span class="name">{short ? of.name : fullName(of)}</span>
    </a>
  );
}

export function Card({ title, note, action, class: name = "", children }: {
  title: string; note?: ComponentChildren; action?: ComponentChildren; class?: string; children: ComponentChildren;
}): JSX.Element {
  return (
    <section class={`card ${name}`} aria-label={title}>
      <header class="card-head">
        <h2>{title}</h2>
        {note !== undefined && <span class="quiet">{note}</span>}
        {action !== undefined && <span class="card-action">{action}</span>}
      </header>
      {children}
    </section>
  );
}

export function Empty({ title, children }: { title: string; children?: ComponentChildren }): JSX.Element {
  return (
    <div class="empty">
      <p class="empty-title">{title}</p>
      {children && <p class="quiet">{children}</p>}
    </div>
  );
}

export function Problem({ error }: { error: Error }): JSX.Element {
  const forbidden = error instanceof RequestFailed && error.status === 403;
  const lost = !(error instanceof RequestFailed);
  return (
    <div class="problem" role="alert">
      <strong>{forbidden ? "Not permitted" : lost ? "The process does not answer" : "The request failed"}</strong>
      <span>{lost ? "The page tries again by itself." : error.message}</span>
    </div>
  );
}

/** What a resource holds, or why it does not yet. */
export function Show<T>({ of, children }: { of: Loaded<T>; children: (data: T) => ComponentChildren }): JSX.Element {
  return (
    <>
      {of.error && <Problem error={of.error} />}
      {of.data !== null ? children(of.data) : of.loading && <Loading />}
    </>
  );
}

export function Loading(): JSX.Element {
  return <div class="loading" role="status"><span class="visually-hidden">Loading</span></div>;
}

export function Page({ title, note, tools, children }: {
  title: ComponentChildren; note?: ComponentChildren; tools?: ComponentChildren; children: ComponentChildren;
}): JSX.Element {
  return (
    <>
      <header class="page-head">
        <div>
          <h1 tabIndex={-1}>{title}</h1>
          {note && <p class="quiet">{note}</p>}
        </div>
        {tools && <div class="tools">{tools}</div>}
      </header>
      {children}
    </>
  );
}
