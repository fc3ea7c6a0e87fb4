// The start page: the loop in small, and three questions with their answers, or one click away from them.
import type { JSX } from "preact";
import { useResource } from "../api";
import { duration, fullName, past, plural, short } from "../format";
import { LoopGraph } from "../loop/graph";
import { subscribe } from "../loop/history";
import { Card, Empty, Mark, ObjectLink, Page, Pill, Show, Since } from "../parts/basics";
import { verbTone } from "../parts/writes";
import type { Objects, Tree, Write } from "../protocol";
import { controllerHref, href, objectHref } from "../route";
import { alarms, byLag, changes, controllers, isBehind, writes } from "../state";
import { useShownGraph } from "./loop";

const SHOWN = 9;
const QUIET_KINDS = new Set(["Event", "Lease", "EndpointSlice", "Endpoints", "ControllerRevision"]);
const WORKLOADS = new Set(["Deployment", "StatefulSet", "DaemonSet", "Job", "CronJob", "ReplicaSet", "Pod"]);

export function Overview(): JSX.Element {
  const objects = useResource<Objects>("objects", { limit: "100" }); // those with children come first
  const bare = useResource<Objects>("objects", { kind: "Pod", limit: "50" });
  const visible = useShownGraph(true);
  return (
    <Page title="Overview" note={<Summary objects={objects.value.data} />}>
      <section class="card loop-card" aria-label="The loop">
        {visible.nodes.length ? <LoopGraph graph={visible} stats={controllers.value} subscribe={subscribe} compact />
          : <Empty title="Nothing has happened yet">Create an object, with kubectl or a client, and watch it pass from controller to controller.</Empty>}
      </section>
      <div class="questions">
        <Changed />
        <Behind />
        <Stuck />
      </div>
      <Card title="Workloads" action={<a href={href("objects")}>All objects</a>}>
        <Show of={objects.value}>{(data) => <Workloads roots={[...data.roots, ...(bare.value.data?.roots ?? [])]} />}</Show>
      </Card>
    </Page>
  );
}

function Summary({ objects }: { objects: Objects | null }): JSX.Element {
  const behind = byLag.value.filter(isBehind).length;
  const all = controllers.value.size;
  const parts = [
    objects && plural(objects.total, "object"),
    all > 0 && (behind ? `${behind} of ${plural(all, "controller")} behind` : `${plural(all, "controller")}, none behind`),
    alarms.value.length ? plural(alarms.value.length, "alarm") : "no alarms",
  ];
  return <>{parts.filter(Boolean).join(" · ")}</>;
}

/** Creations and deletions, newest first: the changes that people ask about. */
function Changed(): JSX.Element {
  changes.value;
  const list: Write[] = [];
  for (let index = writes.length - 1; index >= 0 && list.length < SHOWN; index -= 1) {
    const write = writes[index]!;
    if ((write.verb === "create" || write.verb === "delete") && !QUIET_KINDS.has(write.ref.kind)) list.push(write);
  }
  return (
    <Card title="Why did it change?" note="created and deleted">
      {list.length ? (
        <ul class="rows">
          {list.map((write) => (
            <li key={write.id}>
              <a class="row" href={objectHref(write.ref, { tab: "why", write: write.id })} aria-label={`Why was ${write.ref.kind} ${write.ref.name} ${past(write)}?`}>
                <Pill tone={verbTone(write)}>{write.verb}</Pill>
                <span class="grow clip"><span class="kind">{write.ref.kind}</span> <span class="name">{write.ref.name}</span></span>
                <span class="quiet clip author" title={write.author}>{short(write.author)}</span>
                <Since at={write.at} />
              </a>
            </li>
          ))}
        </ul>
      ) : <Empty title="No object was created or deleted in the last minutes" />}
    </Card>
  );
}

function Behind(): JSX.Element {
  const list = byLag.value.slice(0, SHOWN);
  return (
    <Card title="Which controller is behind?" action={<a href={href("controllers")}>All</a>}>
      {list.length ? (
        <ul class="rows">
          {list.map((stats) => (
            <li key={stats.name}>
              <a class="row row-tall" href={controllerHref(stats.name)}>
                <span class={`mark ${isBehind(stats) ? "mark-failed" : "mark-ready"}`} aria-hidden="true">{isBehind(stats) ? "▲" : "●"}</span>
                <span class="grow clip">
                  <span class="name">{stats.name}</span>
                  {isBehind(stats) && <span class="reason clip">{stats.reason}</span>}
                </span>
                <span class="quiet nowrap">{stats.depth ? `${plural(stats.depth, "key")}, ${duration(stats.oldest)}` : "idle"}</span>
              </a>
            </li>
          ))}
        </ul>
      ) : <Empty title="No controller has reported yet" />}
    </Card>
  );
}

function Stuck(): JSX.Element {
  const deleting = useResource<Objects>("objects", { deleting: "1", limit: "50" });
  const flat: Tree[] = [];
  const collect = (trees: Tree[]): void => trees.forEach((tree) => {
    if (tree.deleting !== null) flat.push(tree);
    collect(tree.children);
  });
  collect(deleting.value.data?.roots ?? []);
  const oldest = flat.sort((a, b) => (a.deleting ?? 0) - (b.deleting ?? 0)).slice(0, SHOWN);
  const others = alarms.value.filter((alarm) => alarm.type !== "stuck-deletion").slice(0, Math.max(0, SHOWN - oldest.length));
  return (
    <Card title="What is stuck?" note="deletions and alarms" action={<a href={href("alarms")}>Alarms</a>}>
      {oldest.length || others.length ? (
        <ul class="rows">
          {oldest.map((tree) => (
            <li key={tree.ref.uid}>
              <a class="row row-tall" href={objectHref(tree.ref, { tab: "deletion" })} aria-label={`What keeps ${tree.ref.kind} ${fullName(tree.ref)} from being deleted?`}>
                <Pill tone="warn">deleting</Pill>
                <span class="grow clip">
                  <span><span class="kind">{tree.ref.kind}</span> <span class="name">{tree.ref.name}</span></span>
                  {tree.message && <span class="reason clip">{tree.message}</span>}
                </span>
                <Since at={tree.deleting} />
              </a>
            </li>
          ))}
          {others.map((alarm) => (
            <li key={alarm.id}>
              <a class="row row-tall" href={href("alarms", { id: alarm.id })}>
                <Pill tone={alarm.severity === "error" ? "bad" : "warn"}>{alarm.type}</Pill>
                <span class="grow clip">{alarm.message}</span>
                <Since at={alarm.at} />
              </a>
            </li>
          ))}
        </ul>
      ) : <Empty title="Nothing is stuck">No deletion is waiting for a finalizer, and there are no alarms.</Empty>}
    </Card>
  );
}

const SEVERITY = { failed: 0, progressing: 1, unknown: 2, ready: 3 };

function Workloads({ roots }: { roots: Tree[] }): JSX.Element {
  const list = [...new Map(roots.map((tree) => [tree.ref.uid, tree])).values()].filter((tree) => WORKLOADS.has(tree.ref.kind) || tree.children.some((child) => WORKLOADS.has(child.ref.kind)))
    .sort((a, b) => SEVERITY[a.ready] - SEVERITY[b.ready] || (b.created ?? 0) - (a.created ?? 0)).slice(0, 12);
  if (!list.length) return <Empty title="No workloads">Deployments, Jobs, Pods and custom resources with children appear here.</Empty>;
  return (
    <ul class="workloads">
      {list.map((tree) => {
        const leaves = pods(tree);
        return (
          <li key={tree.ref.uid} class="workload">
            <Mark ready={tree.ready} />
            <ObjectLink of={tree.ref} />
            <span class="grow clip quiet">{tree.message}</span>
            <span class="pod-dots" role="img" aria-label={`${leaves.filter((pod) => pod.ready === "ready").length} of ${plural(leaves.length, "Pod")} ready`}>
              {leaves.slice(0, 24).map((pod) => <span key={pod.ref.uid} class={`pod-dot pod-${pod.ready}`} />)}
              {leaves.length > 24 && <span class="quiet">+{leaves.length - 24}</span>}
            </span>
            <Since at={tree.created} />
          </li>
        );
      })}
    </ul>
  );
}

function pods(tree: Tree): Tree[] {
  return [...(tree.ref.kind === "Pod" ? [tree] : []), ...tree.children.flatMap(pods)];
}
