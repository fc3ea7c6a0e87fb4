// Writes with their author and diff, and the chain of causes behind one.
import type { JSX } from "preact";
import { useResource } from "../api";
import { clock, duration, exact, fullName, past, value } from "../format";
import type { Change, Explained, Reconcile, Ref, Step, Write } from "../protocol";
import { controllerHref, objectHref, refParams } from "../route";
import { Empty, ObjectLink, Pill, Show, Since } from "./basics";

const SHOWN_CHANGES = 12;
const SHOWN_IN_CHAIN = 4;

export function Diff({ changes, most = SHOWN_CHANGES }: { changes: Change[]; most?: number }): JSX.Element {
  return (
    <dl class="diff">
      {changes.slice(0, most).map((change) => (
        <div key={change.path} class="diff-row">
          <dt>{change.path}</dt>
          <dd>
            {change.old !== undefined && change.old !== null && <del>{value(change.old)}</del>}
            {change.new !== undefined && change.new !== null && <ins>{value(change.new)}</ins>}
          </dd>
        </div>
      ))}
      {changes.length > most && <div class="quiet">and {changes.length - most} more fields</div>}
    </dl>
  );
}

export const verbTone = (write: Write): "ok" | "bad" | "plain" =>
  write.verb === "create" ? "ok" : write.verb === "delete" ? "bad" : "plain";

export function WriteList({ writes, of }: { writes: Write[]; of?: Ref }): JSX.Element {
  if (!writes.length) return <Empty title="No writes yet">Writes are kept for some minutes, from the start of the page on.</Empty>;
  return (
    <ol class="writes">
      {writes.map((write) => (
        <li key={write.id} class="write">
          <div class="write-head">
            <Pill tone={verbTone(write)}>{write.verb}</Pill>
            {!of && <ObjectLink of={write.ref} />}
            <span class="grow">by <strong>{write.author}</strong>{write.summary && <span class="quiet"> · {write.summary}</span>}</span>
            <time class="since" dateTime={exact(write.at)} title={exact(write.at)}>{clock(write.at)}</time>
            <a class="why-link" href={objectHref(write.ref, { tab: "why", write: write.id })} aria-label={`Why was ${write.ref.kind} ${write.ref.name} ${past(write)}?`}>Why?</a>
          </div>
          {write.diff && write.diff.length > 0 && <Diff changes={write.diff} />}
        </li>
      ))}
    </ol>
  );
}

/** The chain of causes of one write, or of the last write of an object, from its origin down to the effect. */
export function Why({ of, write }: { of: Ref; write: string | null }): JSX.Element {
  const chain = useResource<Explained>("why", write ? { write } : refParams(of));
  return <Show of={chain.value}>{(explained) => <Chain {...explained} />}</Show>;
}

function Chain({ chain, origins }: Explained): JSX.Element {
  if (!chain.length) return <Empty title="No cause is known">The history of the page does not reach back to this write.</Empty>;
  const ordered = [...chain].reverse(); // sent newest first; read from cause to effect
  return (
    <div class="why">
      <p class="why-headline">{headline(ordered, origins ?? [])}</p>
      <ol class="chain" aria-label="From the cause to the effect">
        {ordered.map((step, index) => <ChainStep key={index} step={step} effect={index === ordered.length - 1} />)}
      </ol>
    </div>
  );
}

/** A deletion leaves no trace of its author in managedFields. */
const who = (name: string): string => (name === "unknown" ? "a client that is not recorded" : name);

/** One sentence: the effect, and the first cause, or all of them. */
function headline(steps: Step[], origins: Step[]): JSX.Element {
  const effect = steps.at(-1);
  const result = effect?.type === "write" || effect?.type === "user" ? effect.write : null;
  const target = result ? <>{result.ref.kind} <strong>{result.ref.name}</strong> was {result.verb === "status" ? "updated" : past(result)}</> : <>This happened</>;
  const first = steps.find((step) => step.type === "write");
  const known = (origins.length ? origins : steps.slice(0, 1)).filter((origin) => origin.type !== "unknown");
  if (known.length) return <>{target} {known.map((origin, index) => <span key={index}>{index > 0 && ", and "}because {cause(origin)}</span>)}.</>;
  const unknown = steps[0]?.type === "unknown" ? steps[0].why : "its history is not complete";
  return (
    <>
      {target}
      {first && first !== effect && <> after <strong>{first.write.author}</strong> {past(first.write)} {first.write.ref.kind} <strong>{first.write.ref.name}</strong></>}
      ; the first cause is not known: {unknown}
    </>
  );
}

function cause(origin: Step): JSX.Element {
  switch (origin.type) {
    case "user": {
      const { write } = origin;
      const field = write.verb === "update" ? write.diff?.[0] : undefined;
      return (
        <>
          <strong>{who(origin.who)}</strong> {past(write)} {write.ref.kind} <strong>{write.ref.name}</strong>
          {field && <> (<code>{field.path}</code>: {value(field.old)} → {value(field.new)})</>}
        </>
      );
    }
    case "reason":
      return <><strong>{origin.who}</strong> found that {origin.why}</>;
    case "reconcile":
      return <><strong>{origin.reconcile.controller}</strong> reconciled {origin.reconcile.key}: {origin.reconcile.reasons.join(", ") || "no reason was recorded"}</>;
    case "write":
      return <><strong>{origin.write.author}</strong> {past(origin.write)} {origin.write.ref.kind} <strong>{origin.write.ref.name}</strong></>;
    default:
      return <>of something that is not known</>;
  }
}

function ChainStep({ step, effect }: { step: Step; effect: boolean }): JSX.Element {
  switch (step.type) {
    case "reconcile":
      return (
        <li class="step step-reconcile">
          <ReconcileLine reconcile={step.reconcile} />
          {step.also && step.also.length > 0 && (
            <div class="also">
              also because
              <ul>{step.also.map((write) => <li key={write.id}>{who(write.author)} {past(write)} <ObjectLink of={write.ref} /> <a class="why-link" href={objectHref(write.ref, { tab: "why", write: write.id })} aria-label={`Why was ${write.ref.kind} ${write.ref.name} ${past(write)}?`}>Why?</a></li>)}</ul>
            </div>
          )}
        </li>
      );
    case "reason":
      return <li class="step step-user"><span class="step-title"><strong>{step.who}</strong> found that {step.why}</span></li>;
    case "skipped":
      return <li class="step step-skipped quiet">{step.n} more steps of the same kind</li>;
    case "unknown":
      return <li class="step step-unknown"><span class="step-title">Unknown</span> <span class="quiet">{step.why}</span>{step.write && <div class="quiet">{step.write.author} {past(step.write)} <ObjectLink of={step.write.ref} /></div>}</li>;
    default:
      return (
        <li class={`step step-${step.type} ${effect ? "step-effect" : ""}`}>
          <div class="step-line">
            <span class="step-title">
              <strong>{who(step.type === "user" ? step.who : step.write.author)}</strong> {past(step.write)} <ObjectLink of={step.write.ref} />
            </span>
            <Since at={step.write.at} />
          </div>
          {step.write.diff?.length ? <Diff changes={step.write.diff} most={SHOWN_IN_CHAIN} /> : step.write.summary && <div class="quiet">{step.write.summary}</div>}
        </li>
      );
  }
}

const RESULT_TONES = { success: "ok", requeue: "plain", conflict: "warn", error: "bad" } as const;

export function ReconcileLine({ reconcile, own = false }: { reconcile: Reconcile; own?: boolean }): JSX.Element {
  return (
    <>
      <div class="step-line">
        <span class="step-title">
          {!own && <><a href={controllerHref(reconcile.controller)}>{reconcile.controller}</a> reconciled </>}<span class="name">{reconcile.key}</span>{" "}
          {reconcile.result !== "success" && <Pill tone={RESULT_TONES[reconcile.result]}>{reconcile.result}</Pill>}
        </span>
        <Since at={reconcile.at} />
      </div>
      <div class="quiet">
        waited {duration(reconcile.waited)}, took {duration(reconcile.seconds)}
        {reconcile.reasons.length > 0 && <> · because of {reconcile.reasons.join(", ")}</>}
        {reconcile.causes.length > 0 && !reconcile.reasons.length && <> · because of {reconcile.causes.map((cause) => `${cause.ref.kind} ${fullName(cause.ref)}`).join(", ")}</>}
      </div>
      {reconcile.error && <pre class="error-text">{reconcile.error}</pre>}
    </>
  );
}
