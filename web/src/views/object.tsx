// One object: why it is as it is, its fields with their owners, its writes, events and conditions, and what holds its deletion.
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { post, useResource } from "../api";
import { clock, duration, exact, fullName, past, plural } from "../format";
import { Card, Empty, Mark, ObjectLink, Page, Pill, Show, Since } from "../parts/basics";
import { type Tab, Tabs } from "../parts/tabs";
import { verbTone, Why, WriteList } from "../parts/writes";
import type { Condition, Line, ObjectDetail, Objects, Tree, Write } from "../protocol";
import { adjust, controllerHref, href, objectHref, refParams, route } from "../route";
import { about, controllers, now } from "../state";

const COLOURS = 8;

export function ObjectView(): JSX.Element {
  const { params } = route.value;
  const named = Object.fromEntries(["apiVersion", "kind", "namespace", "name"].map((name) => [name, params.get(name) ?? ""]));
  const detail = useResource<ObjectDetail>("object", named);
  const gone = detail.value.data?.gone;
  return (
    <Page
      title={<><span class="title-kind">{named["kind"]}</span> {named["name"]}</>}
      note={<>{named["namespace"] && <>{named["namespace"]} · </>}{named["apiVersion"]}{gone ? <> · deleted <Since at={gone} /></> : null}</>}
      tools={detail.value.data && <Tools detail={detail.value.data} />}
    >
      <Show of={detail.value}>{(data) => <Detail detail={data} />}</Show>
    </Page>
  );
}

function Tools({ detail }: { detail: ObjectDetail }): JSX.Element {
  const [error, setError] = useState("");
  const [asked, setAsked] = useState(false);
  const { ref } = detail;
  const remove = (): void => {
    setAsked(false);
    post("delete", { ref }).then(() => setError(""), (failure: Error) => setError(failure.message));
  };
  return (
    <>
      {error && <span class="bad" role="alert">{error}</span>}
      {ref.kind === "Pod" && !detail.gone && (
        <>
          <a class="button" href={href("pods", { ...refParams(ref), view: "logs" })}>Logs</a>
          <a class="button" href={href("scheduler", refParams(ref))}>Placement</a>
        </>
      )}
      {about.value?.writes && !detail.gone && (asked
        ? <><button type="button" class="button button-bad" onClick={remove}>Delete {ref.name}</button><button type="button" class="button" onClick={() => setAsked(false)}>Keep</button></>
        : <button type="button" class="button" onClick={() => setAsked(true)}>Delete…</button>)}
    </>
  );
}

function Detail({ detail }: { detail: ObjectDetail }): JSX.Element {
  const children = detail.children ?? [];
  const tabs: Tab[] = [
    { id: "why", label: "Why", render: () => <WhyTab detail={detail} /> },
    { id: "children", label: "Children", count: children.length, render: () => <Children detail={detail} /> },
    { id: "fields", label: "Fields", render: () => <Fields lines={detail.lines} owners={detail.owners} /> },
    { id: "writes", label: "Writes", count: detail.writes.length, render: () => <Card title="Writes" note="newest first"><WriteList writes={detail.writes} of={detail.ref} /></Card> },
    { id: "events", label: "Events", count: detail.events.length, render: () => <Events detail={detail} /> },
    { id: "conditions", label: "Conditions", count: new Set(detail.conditions.map((one) => one.type)).size, render: () => <Conditions conditions={detail.conditions} /> },
  ];
  if (detail.finalizers.length || detail.deleting !== null) tabs.splice(1, 0, { id: "deletion", label: "Deletion", count: detail.finalizers.length, render: () => <Deletion detail={detail} /> });
  return (
    <>
      <div class={`verdict verdict-${detail.ready}`}>
        <Mark ready={detail.ready} />
        <strong>{detail.gone ? "deleted" : detail.deleting !== null ? "being deleted" : detail.ready}</strong>
        {!["being deleted", "deleted"].includes(detail.message) && <span>{detail.message}</span>}
        {detail.deleting !== null && !detail.gone && detail.finalizers.length > 0 && (
          <span>waits for {detail.finalizers.map((one) => one.name).join(", ")}</span>
        )}
      </div>
      <Tabs label="Parts of the object" tabs={tabs} />
    </>
  );
}

function WhyTab({ detail }: { detail: ObjectDetail }): JSX.Element {
  const chosen = route.value.params.get("write");
  const current = chosen ?? detail.writes[0]?.id ?? null;
  return (
    <>
      <Replaced detail={detail} />
      <Card
        title={chosen ? "Why this write?" : "Why is it as it is?"}
        action={detail.writes.length > 0 && (
          <label class="field field-inline">
            <span>of</span>
            <select value={current ?? ""} onChange={(event) => adjust({ write: event.currentTarget.value })}>
              {chosen && !detail.writes.some((write) => write.id === chosen) && <option value={chosen}>the chosen write</option>}
              {detail.writes.map((write) => <option key={write.id} value={write.id}>{`${clock(write.at)} ${write.verb} by ${write.author}`}</option>)}
            </select>
          </label>
        )}
      >
        <Why of={detail.ref} write={chosen} />
      </Card>
    </>
  );
}

/** Pods below this object that were deleted or created: each leads to its own chain of causes. */
function Replaced({ detail }: { detail: ObjectDetail }): JSX.Element | null {
  const pods = (detail.children ?? []).filter((write) => write.ref.kind === "Pod").slice(0, 6);
  if (!pods.length) return null;
  return (
    <Card title="Pods created and deleted" note="newest first">
      <ChildRows writes={pods} />
    </Card>
  );
}

function ChildRows({ writes }: { writes: Write[] }): JSX.Element {
  return (
    <ul class="rows">
      {writes.map((write) => (
        <li key={write.id}>
          <a class="row" href={objectHref(write.ref, { tab: "why", write: write.id })} aria-label={`Why was ${write.ref.kind} ${write.ref.name} ${past(write)}?`}>
            <Pill tone={verbTone(write)}>{write.verb}</Pill>
            <span class="grow clip"><span class="kind">{write.ref.kind}</span> <span class="name">{write.ref.name}</span></span>
            <span class="quiet clip author">{write.author}</span>
            <Since at={write.at} />
            <span class="why-link" aria-hidden="true">Why?</span>
          </a>
        </li>
      ))}
    </ul>
  );
}

function Children({ detail }: { detail: ObjectDetail }): JSX.Element {
  const tree = useResource<Objects>("objects", { root: detail.ref.uid });
  return (
    <>
      <Card title="Owner tree">
        <Show of={tree.value}>
          {({ roots }) => (roots.length ? <ul class="small-tree">{roots.map((root) => <Branch key={root.ref.uid} tree={root} current={detail.ref.uid} />)}</ul> : <Empty title="Not in a tree" />)}
        </Show>
      </Card>
      <Card title="Created and deleted below" note="newest first">
        {detail.children?.length ? <ChildRows writes={detail.children} /> : <Empty title="No child was created or deleted in the last minutes" />}
      </Card>
    </>
  );
}

function Branch({ tree, current }: { tree: Tree; current: string }): JSX.Element {
  return (
    <li>
      <span class={tree.ref.uid === current ? "current" : ""}><Mark ready={tree.ready} /> <ObjectLink of={tree.ref} short /> <span class="quiet">{tree.message}</span></span>
      {tree.children.length > 0 && <ul>{tree.children.map((child) => <Branch key={child.ref.uid} tree={child} current={current} />)}</ul>}
    </li>
  );
}

function Fields({ lines, owners }: { lines: Line[]; owners: string[] }): JSX.Element {
  const [only, setOnly] = useState<string | null>(null);
  const colour = new Map(owners.map((owner, index) => [owner, index % COLOURS]));
  return (
    <Card title="Fields" note="colours show who owns each field (managedFields)">
      {owners.length > 0 && (
        <div class="owners" role="group" aria-label="Field owners">
          {owners.map((owner) => (
            <button key={owner} type="button" class={`owner owner-${colour.get(owner)}`} aria-pressed={only === owner} onClick={() => setOnly(only === owner ? null : owner)}>{owner}</button>
          ))}
          <span class="quiet">{only ? `fields of ${only}` : "choose one to see its fields alone"}</span>
        </div>
      )}
      <pre class="yaml" tabIndex={0} aria-label="YAML">
        {lines.map((line, index) => {
          const own = line.owner === null ? "" : ` owned owner-${colour.get(line.owner) ?? 0}`;
          return <span key={index} class={`yaml-line${own}${only !== null && line.owner !== only ? " dim" : ""}`} title={line.owner ?? undefined}>{line.text || " "}{"\n"}</span>;
        })}
      </pre>
    </Card>
  );
}

function Events({ detail }: { detail: ObjectDetail }): JSX.Element {
  if (!detail.events.length) return <Card title="Events"><Empty title="No events">Events are kept for an hour by the API server.</Empty></Card>;
  return (
    <Card title="Events" note="newest first">
      <div class="scroll-x" tabIndex={0} role="region" aria-label="Table of events">
        <table>
          <thead><tr><th>Type</th><th>Reason</th><th>Message</th><th>From</th><th class="num">Count</th><th class="num">Last</th></tr></thead>
          <tbody>
            {detail.events.map((event, index) => (
              <tr key={index}>
                <td><Pill tone={event.type === "Warning" ? "warn" : "plain"}>{event.type}</Pill></td>
                <td>{event.reason}</td><td class="wrap">{event.message}</td><td>{event.from}</td><td class="num">{event.count}</td>
                <td class="num"><Since at={event.at} /></td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </Card>
  );
}

function Conditions({ conditions }: { conditions: Condition[] }): JSX.Element {
  if (!conditions.length) return <Card title="Conditions"><Empty title="No conditions" /></Card>;
  const types = [...new Set(conditions.map((one) => one.type))].sort();
  const begin = Math.min(...conditions.map((one) => one.at ?? now.value));
  const end = Math.max(now.value, begin + 1);
  return (
    <Card title="Conditions over time" note={`${clock(begin)} to now`}>
      <div class="conditions">
        {types.map((type) => {
          const own = conditions.filter((one) => one.type === type).map((one) => ({ ...one, at: one.at ?? begin })).sort((a, b) => a.at - b.at);
          const last = own.at(-1)!;
          return (
            <div key={type} class="condition">
              <span class="name">{type}</span>
              <span class="condition-bar" role="img" aria-label={`${type}: ${own.map((one) => `${one.status} since ${clock(one.at)}`).join(", ")}`}>
                {own.map((one, index) => {
                  const until = own[index + 1]?.at ?? end;
                  return <span key={index} class={`condition-part status-${one.status.toLowerCase()}`} title={`${one.status} ${exact(one.at)} ${one.reason}`} style={{ left: `${((one.at - begin) / (end - begin)) * 100}%`, width: `${Math.max(0.4, ((until - one.at) / (end - begin)) * 100)}%` }} />;
                })}
              </span>
              <span class="condition-now"><strong>{last.status}</strong> <span class="quiet">{[last.reason, last.message].filter(Boolean).join(": ")}</span></span>
            </div>
          );
        })}
      </div>
    </Card>
  );
}

function Deletion({ detail }: { detail: ObjectDetail }): JSX.Element {
  const { deleting, finalizers } = detail;
  return (
    <Card title="What keeps it from being deleted?">
      <p class="why-headline">
        {deleting === null ? <>No deletion was requested. When it is, {plural(finalizers.length, "finalizer")} must be removed first.</>
          : finalizers.length ? <>Deletion was requested {duration(Math.max(0, now.value - deleting))} ago. {detail.ref.kind} <strong>{fullName(detail.ref)}</strong> is kept by {finalizers.length === 1 ? <>the finalizer <code>{finalizers[0]!.name}</code></> : plural(finalizers.length, "finalizer")}.</>
          : <>Deletion was requested {duration(Math.max(0, now.value - deleting))} ago. No finalizer holds it: {detail.message || "it waits for its grace period or its dependents"}.</>}
      </p>
      <ul class="finalizers">
        {finalizers.map(({ name, holder }) => (
          <li key={name}>
            <code>{name}</code>
            <span>{holder ? <>is removed by {controllers.value.has(holder) ? <a href={controllerHref(holder)}>{holder}</a> : <strong>{holder}</strong>}</> : <>has no controller known to this page; the one that set it must be running, or an administrator removes it</>}</span>
          </li>
        ))}
      </ul>
    </Card>
  );
}
