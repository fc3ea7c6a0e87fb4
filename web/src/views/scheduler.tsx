// Why a Pod is where it is, or pending: the attempts of the scheduler and the plugins' verdicts by node.
import type { JSX } from "preact";
import { useResource } from "../api";
import { fullName, plural } from "../format";
import { Card, Empty, ObjectLink, Page, Pill, Show, Since } from "../parts/basics";
import type { Attempt, Placement, Ref } from "../protocol";
import { href } from "../route";
import { PodList, chosenPod } from "./pods";

const SHOWN = 200;

export function Scheduler(): JSX.Element {
  const pod = chosenPod();
  return (
    <Page title="Scheduler" note="Why a Pod is where it is, or pending">
      <div class="side">
        <PodList view="scheduler" order={(tree) => (tree.ready === "ready" ? 1 : 0)} />
        <div class="side-main">
          {pod ? <Verdicts key={fullName(pod)} pod={pod} /> : <Card title="Pod"><Empty title="Choose a Pod">Pods that are not ready come first.</Empty></Card>}
        </div>
      </div>
    </Page>
  );
}

function Verdicts({ pod }: { pod: Ref }): JSX.Element {
  const placement = useResource<Placement>("scheduler", { namespace: pod.namespace, name: pod.name }, 5);
  return (
    <>
      <p class="side-title"><ObjectLink of={pod} /></p>
      <Show of={placement.value}>
        {({ node, attempts }) => (
          <>
            <div class={`verdict ${node ? "verdict-ok" : "verdict-bad"}`} role="status">
              <strong>{node ? "Placed" : "Pending"}</strong>
              <span>{node ? <>on <a href={href("nodes", { name: node })}>{node}</a></> : (attempts[0]?.message ?? "The scheduler has not tried yet.")}</span>
            </div>
            {attempts.length ? attempts.map((attempt, index) => <AttemptCard key={index} attempt={attempt} number={attempts.length - index} />)
              : <Card title="Attempts"><Empty title="No attempt is known">The scheduler of this process reports its attempts; another scheduler's are not visible here.</Empty></Card>}
          </>
        )}
      </Show>
    </>
  );
}

function AttemptCard({ attempt, number }: { attempt: Attempt; number: number }): JSX.Element {
  const nodes = [...attempt.nodes].sort((a, b) => (b.score ?? -1) - (a.score ?? -1) || a.node.localeCompare(b.node));
  return (
    <Card title={`Attempt ${number}`} note={attempt.message} action={<><Pill tone={attempt.result === "scheduled" ? "ok" : "warn"}>{attempt.result}</Pill> <Since at={attempt.at} /></>}>
      {attempt.counts.length > 0 && (
        <ul class="counts">{attempt.counts.map(({ reason, n }) => <li key={reason}><strong>{plural(n, "node")}</strong> {reason}</li>)}</ul>
      )}
      {nodes.length > 0 && (
        <div class="scroll-x" tabIndex={0} role="region" aria-label={`Verdicts of attempt ${number}`}>
          <table>
            <thead><tr><th>Node</th><th>Plugin</th><th>Verdict</th><th class="num">Score</th></tr></thead>
            <tbody>
              {nodes.slice(0, SHOWN).map((verdict, index) => (
                <tr key={index}>
                  <th scope="row">{verdict.node}</th><td>{verdict.plugin}</td><td class="wrap">{verdict.reason}</td>
                  <td class="num">{verdict.score ?? "–"}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </Card>
  );
}
