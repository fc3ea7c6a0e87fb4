// The keys, in a dialog: `?`.
import type { JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { signal } from "@preact/signals";

export const helpOpen = signal(false);

export const KEYS: [string, string][] = [
  ["/", "search objects and controllers"],
  ["?", "this help"],
  ["g then o, l, c, b, p, s, n, a", "overview, loop, controllers, objects, Pods, scheduler, nodes, alarms"],
  ["↑ ↓", "move in the tree, in results and in the grid of nodes"],
  ["→ ←", "unfold and fold, or go to the parent; move between tabs"],
  ["Enter", "open"],
  ["Esc", "close"],
];

export function Help(): JSX.Element {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    if (helpOpen.value) dialog.current?.showModal();
    else dialog.current?.close();
  }, [helpOpen.value]);
  return (
    <dialog ref={dialog} class="help" aria-labelledby="help-title" onClose={() => (helpOpen.value = false)}>
      <h2 id="help-title">Keys</h2>
      <dl>{KEYS.map(([key, meaning]) => <div key={key}><dt><kbd>{key}</kbd></dt><dd>{meaning}</dd></div>)}</dl>
      <button type="button" class="button" onClick={() => (helpOpen.value = false)}>Close</button>
    </dialog>
  );
}
