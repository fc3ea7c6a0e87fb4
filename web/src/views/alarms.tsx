// Alarms: what goes wrong in the loops, with the field, finalizer or controller behind it.
import type { JSX } from "preact";
import { Empty, ObjectLink, Page, Pill, Since } from "../parts/basics";
import type { Alarm } from "../protocol";
import { controllerHref, route } from "../route";
import { about, alarms } from "../state";

const TITLES: Record<string, string> = {
  "hot-loop": "Hot loop", "stuck-deletion": "Stuck deletion", conflicts: "Conflicts", throttled: "Throttled", webhook: "Webhook failure",
  lease: "Lease lost", backlog: "Backlog", "crash-loop": "Crash loop",
};

export function Alarms(): JSX.Element {
  const chosen = route.value.params.get("id");
  const order = [...alarms.value].sort((a, b) => Number(b.severity === "error") - Number(a.severity === "error") || b.at - a.at);
  const denied = about.value?.denied ?? [];
  return (
    <Page title="Alarms" note="Hot loops, stuck deletions, conflicts, throttling, webhooks, leases, backlogs and crash loops">
      {order.length ? <AlarmList of={order} chosen={chosen} />
        : <section class="card" aria-label="Alarms"><Empty title="No alarms">The loops come to rest, nothing fights over a field, and no deletion hangs.</Empty></section>}
      {denied.length > 0 && (
        <section class="card" aria-label="Not visible">
          <header class="card-head"><h2>Not visible to this page</h2><span class="quiet">and why</span></header>
          <ul class="denied">{denied.map(({ what, why }) => <li key={what}><code>{what}</code> <span class="quiet">{why}</span></li>)}</ul>
        </section>
      )}
    </Page>
  );
}

export function AlarmList({ of, chosen = null }: { of: Alarm[]; chosen?: string | null }): JSX.Element {
  return <ul class="alarms">{of.map((alarm) => <AlarmItem key={alarm.id} alarm={alarm} chosen={alarm.id === chosen} />)}</ul>;
}

function AlarmItem({ alarm, chosen }: { alarm: Alarm; chosen: boolean }): JSX.Element {
  return (
    <li class={`card alarm alarm-${alarm.severity} ${chosen ? "alarm-chosen" : ""}`}>
      <div class="alarm-head">
        <Pill tone={alarm.severity === "error" ? "bad" : "warn"}>{TITLES[alarm.type] ?? alarm.type}</Pill>
        <strong class="grow">{alarm.message}</strong>
        <Since at={alarm.at} />
      </div>
      {alarm.detail && <p class="quiet wrap">{alarm.detail}</p>}
      <div class="alarm-links">
        {alarm.ref && <ObjectLink of={alarm.ref} extra={alarm.type === "stuck-deletion" ? { tab: "deletion" } : { tab: "writes" }} />}
        {alarm.controller && <a href={controllerHref(alarm.controller)}>{alarm.controller}</a>}
      </div>
    </li>
  );
}
