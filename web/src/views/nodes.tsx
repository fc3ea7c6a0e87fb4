// Nodes as a grid: a cell each, filled by what is chosen.
import type { JSX } from "preact";
import { useRef, useState } from "preact/hooks";
import { useResource } from "../api";
import { percent, plural } from "../format";
import { Card, Empty, Page, Show } from "../parts/basics";
import type { NodeCell } from "../protocol";
import { adjust, href, route } from "../route";

type Measure = "pods" | "cpu" | "memory";
const STEPS = 6;

function share(node: NodeCell, measure: Measure): number {
  return measure === "pods" ? (node.capacity ? node.pods / node.capacity : 0) : node[measure];
}

export function Nodes(): JSX.Element {
  const nodes = useResource<{ nodes: NodeCell[] }>("nodes", {}, 5);
  const measure = (route.value.params.get("by") ?? "pods") as Measure;
  const data = nodes.value.data?.nodes;
  const ready = data?.filter((node) => node.ready).length ?? 0;
  return (
    <Page
      title="Nodes" note={data ? `${plural(data.length, "node")}, ${ready} ready, ${plural(data.reduce((sum, node) => sum + node.pods, 0), "Pod")}` : undefined}
      tools={
        <div class="segments" role="group" aria-label="Fill by">
          {(["pods", "cpu", "memory"] as const).map((one) => (
            <button key={one} type="button" aria-pressed={measure === one} onClick={() => adjust({ by: one })}>{{ pods: "Pods", cpu: "CPU requests", memory: "Memory requests" }[one]}</button>
          ))}
        </div>
      }
    >
      <Show of={nodes.value}>{(answer) => (answer.nodes.length ? <Grid nodes={answer.nodes} measure={measure} /> : <Empty title="There are no nodes" />)}</Show>
    </Page>
  );
}

function Grid({ nodes, measure }: { nodes: NodeCell[]; measure: Measure }): JSX.Element {
  const wanted = route.value.params.get("name");
  const [focus, setFocus] = useState(0);
  const grid = useRef<HTMLDivElement>(null);
  const chosen = nodes.find((node) => node.name === wanted) ?? null;
  const onKeyDown = (event: KeyboardEvent): void => {
    const cells = grid.current?.querySelectorAll("button");
    const first = cells?.[0];
    if (!cells || !first) return;
    let columns = 1;
    while (cells[columns]?.offsetTop === first.offsetTop) columns += 1;
    const by = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: columns, ArrowUp: -columns }[event.key];
    if (by === undefined) return;
    const next = Math.min(Math.max(focus + by, 0), nodes.length - 1);
    setFocus(next);
    cells[next]?.focus();
    event.preventDefault();
  };
  return (
    <>
      <section class="card" aria-label="Grid of nodes">
        <div class={`nodes ${nodes.length > 300 ? "nodes-many" : ""}`} ref={grid} role="group" aria-label="Nodes" onKeyDown={onKeyDown}>
          {nodes.map((node, index) => (
            <button
              key={node.name} type="button" class={`cell cell-${Math.min(STEPS, Math.ceil(share(node, measure) * STEPS))} ${node.ready ? "" : "cell-bad"} ${node.taints ? "cell-taint" : ""}`}
              tabIndex={index === focus ? 0 : -1} aria-pressed={node === chosen}
              aria-label={`${node.name}, ${node.ready ? "ready" : "not ready"}, ${node.pods} Pods, CPU ${percent(node.cpu)}, memory ${percent(node.memory)}`}
              title={node.name} onClick={() => {
                setFocus(index);
                adjust({ name: node.name });
              }}
            />
          ))}
        </div>
        <ul class="legend" aria-label="Legend">
          <li><span class="cell cell-0" /> empty</li><li><span class="cell cell-3" /> half</li><li><span class="cell cell-6" /> full</li>
          <li><span class="cell cell-bad" /> not ready</li><li><span class="cell cell-0 cell-taint" /> tainted</li>
        </ul>
      </section>
      {chosen && (
        <Card title={chosen.name} action={<a href={href("object", { apiVersion: "v1", kind: "Node", name: chosen.name })}>Open the object</a>}>
          <dl class="facts">
            <div><dt>State</dt><dd class={chosen.ready ? "" : "bad"}>{chosen.ready ? "ready" : "not ready"}</dd></div>
            <div><dt>Pods</dt><dd>{chosen.pods} of {chosen.capacity}</dd></div>
            <div><dt>CPU requested</dt><dd>{percent(chosen.cpu)}</dd></div>
            <div><dt>Memory requested</dt><dd>{percent(chosen.memory)}</dd></div>
            <div><dt>Taints</dt><dd>{chosen.taints}</dd></div>
          </dl>
        </Card>
      )}
    </>
  );
}
