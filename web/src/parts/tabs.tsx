// Tabs by the pattern of the ARIA practices: arrow keys move, the selected one is in the tab order.
import type { ComponentChildren, JSX } from "preact";
import { adjust, route } from "../route";

export interface Tab { id: string; label: string; count?: number; render: () => ComponentChildren }

export function Tabs({ label, tabs, param = "tab" }: { label: string; tabs: Tab[]; param?: string }): JSX.Element {
  const wanted = route.value.params.get(param);
  const index = Math.max(0, tabs.findIndex((tab) => tab.id === wanted));
  const current = tabs[index];
  const onKeyDown = (event: KeyboardEvent): void => {
    const step = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
    if (!step) return;
    const next = tabs[(index + step + tabs.length) % tabs.length];
    if (!next) return;
    adjust({ [param]: next.id });
    document.getElementById(`tab-${next.id}`)?.focus();
    event.preventDefault();
  };
  return (
    <div class="tabs">
      <div role="tablist" aria-label={label} onKeyDown={onKeyDown}>
        {tabs.map((tab) => (
          <button
            key={tab.id} type="button" role="tab" id={`tab-${tab.id}`} aria-controls="tab-panel" aria-selected={tab === current}
            tabIndex={tab === current ? 0 : -1} onClick={() => adjust({ [param]: tab.id })}
          >
            {tab.label}
            {tab.count !== undefined && tab.count > 0 && <span class="count">{tab.count}</span>}
          </button>
        ))}
      </div>
      <div role="tabpanel" id="tab-panel" aria-labelledby={`tab-${current?.id}`} tabIndex={0} key={current?.id}>{current?.render()}</div>
    </div>
  );
}
