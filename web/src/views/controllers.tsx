// All controllers by how far they are behind, and one of them: why, over time, and its last reconciles.
import type { JSX } from "preact";
import { amount, duration, plural } from "../format";
import { Chart, Sparkline } from "../parts/charts";
import { Card, Empty, Page, Pill } from "../parts/basics";
import { ReconcileLine } from "../parts/writes";
import type { ControllerStats, Reconcile } from "../protocol";
import { controllerHref, href, route } from "../route";
import { alarms, byLag, changes, controllers, graph, isBehind, reconciles, samples } from "../state";

const SHOWN = 40;

export function Controllers(): JSX.Element {
  return (
    <Page title="Controllers" note="Those that are furthest behind come first.">
      <section class="card" aria-label="Controllers">
        {byLag.value.length ? (
          <div class="scroll-x" tabIndex={0} role="region" aria-label="Table of controllers">
            <table>
              <thead>
                <tr><th>Controller</th><th class="num">Queue</th><th>Last minutes</th><th class="num">Oldest</th><th class="num">Workers</th><th class="num">Rate</th><th class="num">p50</th><th class="num">p99</th><th class="num">Errors</th><th class="num">Retries</th><th>Why</th></tr>
              </thead>
              <tbody>{byLag.value.map((stats) => <Row key={stats.name} stats={stats} />)}</tbody>
            </table>
          </div>
        ) : <Empty title="No controller has reported yet" />}
      </section>
    </Page>
  );
}

function Row({ stats }: { stats: ControllerStats }): JSX.Element {
  const points = (samples.get(stats.name) ?? []).map(({ at, stats: one }) => ({ at, value: one.depth }));
  return (
    <tr>
      <th scope="row"><a href={controllerHref(stats.name)}>{stats.name}</a></th>
      <td class="num">{stats.depth}</td>
      <td><Sparkline points={points} label={`Queue depth of ${stats.name}`} /></td>
      <td class="num">{stats.depth ? duration(stats.oldest) : "–"}</td>
      <td class="num">{stats.busy}/{stats.workers}</td>
      <td class="num">{amount(stats.rate)}/s</td>
      <td class="num">{duration(stats.p50)}</td>
      <td class="num">{duration(stats.p99)}</td>
      <td class={`num ${stats.errors > 0 ? "bad" : ""}`}>{amount(stats.errors)}/s</td>
      <td class={`num ${stats.retries > 0 ? "warn" : ""}`}>{amount(stats.retries)}/s</td>
      <td class="clip quiet">{stats.reason}</td>
    </tr>
  );
}

export function ControllerView(): JSX.Element {
  const name = route.value.params.get("name") ?? "";
  const stats = controllers.value.get(name);
  changes.value;
  const ring = samples.get(name) ?? [];
  const last = reconciles.filter((one) => one.controller === name).slice(-SHOWN).reverse();
  const own = alarms.value.filter((alarm) => alarm.controller === name);
  const edges = graph.value.edges.filter((edge) => edge.from === `controller:${name}` || edge.to === `controller:${name}`);
  const kinds = (type: "watches" | "writes"): string[] =>
    edges.filter((edge) => edge.type === type).map((edge) => (type === "watches" ? edge.from : edge.to).split("/").at(-1) ?? "");
  return (
    <Page title={name} note="Controller" tools={<a class="button" href={href("controllers")}>All controllers</a>}>
      {stats ? (
        <div class={`verdict ${isBehind(stats) ? "verdict-bad" : "verdict-ok"}`} role="status">
          <strong>{isBehind(stats) ? "Behind" : "Keeps up"}</strong>
          <span>{stats.reason || (isBehind(stats) ? `${plural(stats.depth, "key")} waiting, the oldest for ${duration(stats.oldest)}` : "No key waits for long, and reconciles succeed.")}</span>
        </div>
      ) : <Empty title="This controller has not reported yet" />}
      {stats && (
        <dl class="facts">
          <Fact term="Keys waiting" value={stats.depth.toLocaleString("en")} />
          <Fact term="Oldest waits" value={stats.depth ? duration(stats.oldest) : "–"} />
          <Fact term="Workers busy" value={`${stats.busy} of ${stats.workers}`} />
          <Fact term="Reconciles" value={`${amount(stats.rate)}/s`} />
          <Fact term="Median" value={duration(stats.p50)} />
          <Fact term="99th percentile" value={duration(stats.p99)} />
          <Fact term="Errors" value={`${amount(stats.errors)}/s`} />
          <Fact term="Retries" value={`${amount(stats.retries)}/s`} />
        </dl>
      )}
      {own.map((alarm) => (
        <div key={alarm.id} class="verdict verdict-bad"><strong>{alarm.type}</strong><span>{alarm.message} {alarm.detail}</span></div>
      ))}
      <div class="two">
        <Card title="Queue depth"><Chart title="Keys" points={ring.map(({ at, stats: one }) => ({ at, value: one.depth }))} format={(value) => amount(value)} /></Card>
        <Card title="Latency"><Chart title="99th percentile" points={ring.map(({ at, stats: one }) => ({ at, value: one.p99 }))} format={duration} /></Card>
      </div>
      <p class="quiet">
        Watches {list(kinds("watches"))}. Writes {list(kinds("writes"))}.
      </p>
      <Card title="Last reconciles" note={last.length ? plural(last.length, "reconcile") : undefined}>
        {last.length ? <ol class="reconciles">{last.map((one) => <ReconcileItem key={one.id} reconcile={one} />)}</ol>
          : <Empty title="No reconcile in the last minutes" />}
      </Card>
    </Page>
  );
}

const list = (names: string[]): string => [...new Set(names)].sort().join(", ") || "nothing yet";

function Fact({ term, value }: { term: string; value: string }): JSX.Element {
  return <div><dt>{term}</dt><dd>{value}</dd></div>;
}

function ReconcileItem({ reconcile }: { reconcile: Reconcile }): JSX.Element {
  return (
    <li class={`reconcile reconcile-${reconcile.result}`}>
      <ReconcileLine reconcile={reconcile} own />
      {reconcile.writes.length > 0 && <span class="quiet">wrote {reconcile.writes.map((write) => <Pill key={write.ref.uid + write.resourceVersion}>{write.ref.kind} {write.ref.name}</Pill>)}</span>}
    </li>
  );
}
