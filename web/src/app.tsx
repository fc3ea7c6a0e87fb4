// The frame around the views: navigation, search, the state of the connection, keys.
import type { ComponentType, JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { plural } from "./format";
import { Help, helpOpen } from "./parts/help";
import { Search } from "./parts/search";
import { go, href, route } from "./route";
import { about, alarms, connection } from "./state";
import { nextTheme, theme } from "./theme";
import { Alarms } from "./views/alarms";
import { Controllers, ControllerView } from "./views/controllers";
import { Loop } from "./views/loop";
import { Nodes } from "./views/nodes";
import { ObjectView } from "./views/object";
import { Objects } from "./views/objects";
import { Overview } from "./views/overview";
import { Pods } from "./views/pods";
import { Scheduler } from "./views/scheduler";

const VIEWS: Record<string, ComponentType> = {
  overview: Overview, loop: Loop, controllers: Controllers, controller: ControllerView, objects: Objects, object: ObjectView,
  pods: Pods, scheduler: Scheduler, nodes: Nodes, alarms: Alarms,
};
const MENU: { view: string; label: string; key: string; also?: string }[] = [
  { view: "overview", label: "Overview", key: "o" }, { view: "loop", label: "Loop", key: "l" },
  { view: "controllers", label: "Controllers", key: "c", also: "controller" },
  { view: "objects", label: "Objects", key: "b", also: "object" }, { view: "pods", label: "Pods", key: "p" },
  { view: "scheduler", label: "Scheduler", key: "s" }, { view: "nodes", label: "Nodes", key: "n" }, { view: "alarms", label: "Alarms", key: "a" },
];
const CHORD = 1200; // ms between `g` and the next key

export function App(): JSX.Element {
  const { view } = route.value;
  const View = VIEWS[view] ?? Overview;
  const main = useRef<HTMLElement>(null);
  const first = useRef(true);
  useKeys();
  useEffect(() => { // a new view begins at its heading, also for the keyboard
    document.title = `${MENU.find((item) => item.view === view || item.also === view)?.label ?? "Overview"} · Ostinato`;
    if (!first.current) main.current?.querySelector<HTMLElement>("h1")?.focus({ preventScroll: true });
    first.current = false;
    scrollTo(0, 0);
  }, [view]);
  return (
    <div class="frame">
      <a class="skip" href="#main" onClick={(event) => {
        event.preventDefault();
        main.current?.querySelector<HTMLElement>("h1")?.focus();
      }}>Skip to content</a>
      <Menu />
      <div class="body">
        <Top />
        <Banner />
        <main id="main" ref={main}>{connection.value === "unauthorized" ? <Unauthorized /> : <View />}</main>
      </div>
      <LiveAlarms />
      <Help />
    </div>
  );
}

function Menu(): JSX.Element {
  const { view } = route.value;
  const count = alarms.value.length;
  return (
    <nav class="menu" aria-label="Views">
      <a class="brand" href={href("overview")} aria-label="Ostinato, overview"><img src="/assets/icon.svg" alt="" width="24" height="24" /> Ostinato</a>
      <ul>
        {MENU.map((item) => (
          <li key={item.view}>
            <a href={href(item.view)} aria-current={view === item.view || view === item.also ? "page" : undefined}>
              {item.label}
              {item.view === "alarms" && count > 0 && <span class="badge" aria-label={plural(count, "alarm")}>{count}</span>}
            </a>
          </li>
        ))}
      </ul>
      <About />
    </nav>
  );
}

function About(): JSX.Element | null {
  const facts = about.value;
  if (!facts) return null;
  return (
    <p class="about quiet">
      {facts.mode === "plane" ? "Control plane" : "Operator"}<br />
      <span class="clip">{facts.cluster}</span><br />
      Ostinato {facts.version}<br />
      {facts.writes ? "writes permitted" : "read-only"}
    </p>
  );
}

const THEMES = { system: "System", light: "Light", dark: "Dark" };

function Top(): JSX.Element {
  return (
    <header class="top">
      <Search />
      <span class={`connection connection-${connection.value}`} role="status">
        <span class="connection-dot" aria-hidden="true" />
        {{ connecting: "Connecting", live: "Live", hidden: "Paused", lost: "Connection lost, retrying", unauthorized: "No access" }[connection.value]}
      </span>
      <button type="button" class="button button-quiet" onClick={nextTheme} aria-label={`Theme: ${THEMES[theme.value]}`}>{THEMES[theme.value]}</button>
      <button type="button" class="button button-quiet" onClick={() => (helpOpen.value = true)} aria-label="Help: keys">?</button>
    </header>
  );
}

function Banner(): JSX.Element | null {
  if (connection.value === "lost") {
    return <div class="banner banner-bad" role="alert">Connection lost, retrying. What you see is the last known state.</div>;
  }
  const denied = about.value?.denied ?? [];
  if (!denied.length) return null;
  return (
    <div class="banner">
      Not visible to this page: {denied.slice(0, 3).map(({ what }) => what).join(", ")}{denied.length > 3 && ` and ${denied.length - 3} more`}. <a href={href("alarms")}>Details</a>
    </div>
  );
}

function Unauthorized(): JSX.Element {
  return (
    <div class="empty empty-page">
      <h1 tabIndex={-1} class="empty-title">This browser has no access</h1>
      <p class="quiet">The address that the command printed works once. <code>ostinato page</code> prints a new one.</p>
    </div>
  );
}

/** Read new alarms out, politely. */
function LiveAlarms(): JSX.Element {
  const seen = useRef(new Set<string>());
  const fresh = alarms.value.filter((alarm) => !seen.current.has(alarm.id));
  useEffect(() => void (seen.current = new Set(alarms.value.map((alarm) => alarm.id))), [alarms.value]);
  return <div class="visually-hidden" aria-live="polite" id="announcements">{fresh.map((alarm) => `Alarm: ${alarm.message}. `).join("")}</div>;
}

function useKeys(): void {
  useEffect(() => {
    let chord = 0;
    const onKeyDown = (event: KeyboardEvent): void => {
      const target = event.target as HTMLElement;
      if (event.ctrlKey || event.metaKey || event.altKey || target.closest("input, textarea, select, .shell")) return;
      if (event.key === "/") document.getElementById("search")?.focus();
      else if (event.key === "?") helpOpen.value = true;
      else if (event.key === "g") {
        chord = event.timeStamp;
        return;
      } else if (event.timeStamp - chord < CHORD) {
        const item = MENU.find(({ key }) => key === event.key);
        if (item) go(item.view);
        chord = 0;
        return;
      } else return;
      event.preventDefault();
    };
    addEventListener("keydown", onKeyDown);
    return () => removeEventListener("keydown", onKeyDown);
  }, []);
}
