// Pods: a list, and for one of them its logs, usage and a shell.
import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { useResource } from "../api";
import { bytes, cores, fullName } from "../format";
import { Card, Empty, Mark, ObjectLink, Page, Show } from "../parts/basics";
import { Chart } from "../parts/charts";
import { Tabs } from "../parts/tabs";
import type { Objects, Ref, Tree, Usage } from "../protocol";
import { href, refParams, route } from "../route";
import { about } from "../state";

const SHOWN = 500;
const LINES = 2000;

export function podsOf(trees: Tree[]): Tree[] {
  return trees.flatMap((tree) => [...(tree.ref.kind === "Pod" ? [tree] : []), ...podsOf(tree.children)]);
}

export function PodList({ view, order }: { view: string; order: (pod: Tree) => number }): JSX.Element {
  const objects = useResource<Objects>("objects", { kind: "Pod", limit: "10000" });
  const [text, setText] = useState("");
  const chosen = `${route.value.params.get("namespace")}/${route.value.params.get("name")}`;
  return (
    <aside class="card pod-list" aria-label="Pods">
      <input type="text" class="pod-filter" aria-label="Filter Pods" placeholder="Filter Pods" value={text} onInput={(event) => setText(event.currentTarget.value)} />
      <Show of={objects.value}>
        {({ roots }) => {
          const pods = podsOf(roots).filter((pod) => fullName(pod.ref).includes(text)).sort((a, b) => order(a) - order(b) || (b.created ?? 0) - (a.created ?? 0));
          if (!pods.length) return <Empty title={text ? "No Pod matches" : "No Pods"} />;
          return (
            <ul class="rows">
              {pods.slice(0, SHOWN).map((pod) => (
                <li key={pod.ref.uid}>
                  <a class="row" href={href(view, refParams(pod.ref))} aria-current={fullName(pod.ref) === chosen ? "true" : undefined}>
                    <Mark ready={pod.ready} /><span class="grow clip name">{pod.ref.name}</span><span class="quiet clip author">{pod.ref.namespace}</span>
                  </a>
                </li>
              ))}
              {pods.length > SHOWN && <li class="quiet row">{pods.length - SHOWN} more: filter by name</li>}
            </ul>
          );
        }}
      </Show>
    </aside>
  );
}

/** The Pod that the address names, if any. */
export function chosenPod(): Ref | null {
  const { params } = route.value;
  const name = params.get("name");
  return name ? { apiVersion: "v1", kind: "Pod", namespace: params.get("namespace") ?? "", name, uid: "" } : null;
}

export function Pods(): JSX.Element {
  const pod = chosenPod();
  return (
    <Page title="Pods" note="Logs, usage and a shell">
      <div class="side">
        <PodList view="pods" order={(tree) => (tree.ready === "ready" ? 1 : 0)} />
        {pod ? (
          <div class="side-main" key={fullName(pod)}>
            <p class="side-title"><ObjectLink of={pod} /></p>
            <Tabs label="Of the Pod" param="view" tabs={[
              { id: "logs", label: "Logs", render: () => <Logs pod={pod} /> },
              { id: "usage", label: "Usage", render: () => <UsageCharts pod={pod} /> },
              { id: "shell", label: "Shell", render: () => <Shell pod={pod} /> },
            ]} />
          </div>
        ) : <Card title="Pod"><Empty title="Choose a Pod">Its logs follow here as they are written.</Empty></Card>}
      </div>
    </Page>
  );
}

function Logs({ pod }: { pod: Ref }): JSX.Element {
  const box = useRef<HTMLPreElement>(null);
  const [state, setState] = useState("connecting");
  const [following, setFollowing] = useState(true);
  const [previous, setPrevious] = useState(false);
  const stick = useRef(true);
  stick.current = following;
  useEffect(() => {
    const element = box.current;
    if (!element) return;
    element.replaceChildren();
    const query = new URLSearchParams({ namespace: pod.namespace, name: pod.name, ...(previous ? { previous: "1" } : {}) });
    const source = new EventSource(`/api/pods/log?${query}`);
    let waiting: string[] = [];
    let frame = 0;
    const write = (): void => { // one text node per frame, the oldest ones removed over the limit
      frame = 0;
      element.append(document.createTextNode(`${waiting.join("\n")}\n`));
      waiting = [];
      while (element.childNodes.length > LINES) element.firstChild?.remove();
      if (stick.current) element.scrollTop = element.scrollHeight;
    };
    source.onopen = () => setState("");
    source.addEventListener("lines", (event) => {
      waiting.push(...(JSON.parse((event as MessageEvent<string>).data) as { lines: string[] }).lines);
      frame ||= requestAnimationFrame(write);
    });
    let problem = "";
    source.addEventListener("problem", (event) => {
      problem = (JSON.parse((event as MessageEvent<string>).data) as { error: string }).error;
    });
    source.addEventListener("end", () => {
      source.close();
      setState(problem || "The container has ended.");
    });
    source.onerror = () => {
      source.close();
      setState("The log cannot be read.");
    };
    return () => {
      source.close();
      cancelAnimationFrame(frame);
    };
  }, [pod.namespace, pod.name, previous]);
  return (
    <Card title="Logs" note={state === "connecting" ? "" : state} action={
      <>
        <label class="switch"><input type="checkbox" checked={previous} onChange={(event) => setPrevious(event.currentTarget.checked)} />Previous container</label>
        <label class="switch"><input type="checkbox" checked={following} onChange={(event) => setFollowing(event.currentTarget.checked)} />Follow</label>
      </>
    }>
      <pre class="logs" ref={box} tabIndex={0} role="log" aria-label={`Logs of ${pod.name}`} aria-live="off" />
    </Card>
  );
}

function UsageCharts({ pod }: { pod: Ref }): JSX.Element {
  const usage = useResource<Usage>("pods/usage", { namespace: pod.namespace, name: pod.name }, 5);
  return (
    <Show of={usage.value}>
      {({ samples, error }) => (samples.length ? (
        <div class="two">
          <Card title="Processor"><Chart title="Cores" points={samples.map(({ at, cpu }) => ({ at, value: cpu }))} format={cores} /></Card>
          <Card title="Memory"><Chart title="Working set" points={samples.map(({ at, memory }) => ({ at, value: memory }))} format={bytes} /></Card>
        </div>
      ) : <Card title="Usage"><Empty title="No samples yet">{error ?? "Usage comes from metrics.k8s.io; simulated Pods have none."}</Empty></Card>)}
    </Show>
  );
}

function Shell({ pod }: { pod: Ref }): JSX.Element {
  const box = useRef<HTMLDivElement>(null);
  const [state, setState] = useState("");
  const permitted = about.value?.writes ?? false;
  useEffect(() => {
    const element = box.current;
    if (!element || !permitted) return;
    let close = (): void => undefined;
    let left = false;
    void import("../parts/shell").then(({ openShell }) => {
      if (!left) close = openShell(element, pod, setState);
    });
    return () => {
      left = true;
      close();
    };
  }, [pod.namespace, pod.name, permitted]);
  if (!permitted) return <Card title="Shell"><Empty title="This page is read-only">Start the process with --page-writes to open a shell or delete objects here.</Empty></Card>;
  return (
    <Card title="Shell" note={state}>
      <div class="shell" ref={box} />
    </Card>
  );
}
