// The owner tree of all objects, filtered; only the visible rows are in the document.
import type { JSX } from "preact";
import { useMemo, useState } from "preact/hooks";
import { useResource } from "../api";
import { plural } from "../format";
import { Empty, Mark, Page, Pill, Show, Since } from "../parts/basics";
import { VirtualList } from "../parts/virtual";
import type { Objects as Answer, Tree } from "../protocol";
import { adjust, go, refParams, route } from "../route";

const ROW = 32;
const LIMIT = "20000";

interface Row { tree: Tree; level: number; open: boolean; position: number; size: number; parent: number }

function flatten(roots: Tree[], closed: ReadonlySet<string>): Row[] {
  const rows: Row[] = [];
  const walk = (trees: Tree[], level: number, parent: number): void => {
    trees.forEach((tree, index) => {
      const open = tree.children.length > 0 && !closed.has(tree.ref.uid);
      rows.push({ tree, level, open, position: index + 1, size: trees.length, parent });
      if (open) walk(tree.children, level + 1, rows.length - 1);
    });
  };
  walk(roots, 1, -1);
  return rows;
}

export function Objects(): JSX.Element {
  const { params } = route.value;
  const [kind, namespace, labels, q] = ["kind", "namespace", "labels", "q"].map((name) => params.get(name) ?? "") as [string, string, string, string];
  const objects = useResource<Answer>("objects", { kind, namespace, labels, q, limit: LIMIT });
  const data = objects.value.data;
  return (
    <Page title="Objects" note={data ? plural(data.total, "object") : undefined}>
      <form class="filters" role="search" aria-label="Filter objects" onSubmit={(event) => event.preventDefault()}>
        <Choice label="Kind" name="kind" value={kind} options={data?.kinds ?? []} />
        <Choice label="Namespace" name="namespace" value={namespace} options={data?.namespaces ?? []} />
        <Field label="Labels" name="labels" value={labels} placeholder="app=web,tier!=db" />
        <Field label="Text" name="q" value={q} placeholder="name or kind" />
        {(kind || namespace || labels || q) && <button type="button" class="button" onClick={() => adjust({ kind: "", namespace: "", labels: "", q: "" })}>Clear</button>}
      </form>
      <Show of={objects.value}>{(answer) => <TreeView roots={answer.roots} filtered={Boolean(kind || namespace || labels || q)} />}</Show>
    </Page>
  );
}

function Choice({ label, name, value, options }: { label: string; name: string; value: string; options: string[] }): JSX.Element {
  const all = value && !options.includes(value) ? [value, ...options] : options;
  return (
    <label class="field">
      <span>{label}</span>
      <select value={value} onChange={(event) => adjust({ [name]: event.currentTarget.value })}>
        <option value="">all</option>
        {all.map((option) => <option key={option} value={option}>{option}</option>)}
      </select>
    </label>
  );
}

function Field({ label, name, value, placeholder }: { label: string; name: string; value: string; placeholder: string }): JSX.Element {
  return (
    <label class="field">
      <span>{label}</span>
      <input type="text" value={value} placeholder={placeholder} spellcheck={false} onInput={(event) => adjust({ [name]: event.currentTarget.value })} />
    </label>
  );
}

function TreeView({ roots, filtered }: { roots: Tree[]; filtered: boolean }): JSX.Element {
  const [closed, setClosed] = useState<ReadonlySet<string>>(new Set());
  const [chosen, setChosen] = useState<string | null>(null); // a uid: rows move when objects come and go
  const rows = useMemo(() => flatten(roots, closed), [roots, closed]);
  const active = Math.max(0, rows.findIndex((row) => row.tree.ref.uid === chosen));
  if (!rows.length) return <Empty title={filtered ? "No object matches" : "There are no objects yet"}>{filtered ? "Change or clear the filters above." : undefined}</Empty>;

  const choose = (index: number): void => setChosen(rows[Math.min(Math.max(index, 0), rows.length - 1)]?.tree.ref.uid ?? null);
  const toggle = (row: Row, open: boolean): void => {
    const next = new Set(closed);
    if (open) next.delete(row.tree.ref.uid);
    else next.add(row.tree.ref.uid);
    setClosed(next);
  };
  const open = (row: Row): void => go("object", refParams(row.tree.ref));
  const onKeyDown = (event: KeyboardEvent): void => {
    const row = rows[active];
    if (!row) return;
    const actions: Record<string, () => void> = {
      ArrowDown: () => choose(chosen === null ? 0 : active + 1),
      ArrowUp: () => choose(active - 1),
      PageDown: () => choose(active + 15),
      PageUp: () => choose(active - 15),
      Home: () => choose(0),
      End: () => choose(rows.length - 1),
      ArrowRight: () => (row.tree.children.length && !row.open ? toggle(row, true) : row.open && choose(active + 1)),
      ArrowLeft: () => (row.open ? toggle(row, false) : row.parent >= 0 && choose(row.parent)),
      Enter: () => open(row),
    };
    const action = actions[event.key];
    if (!action) return;
    event.preventDefault();
    action();
  };
  return (
    <section class="card tree-card" aria-label="Owner tree">
      <VirtualList
        items={rows} row={ROW} active={chosen === null ? -1 : active} role="tree" rowRole="treeitem" label="Objects by owner" id="object"
        attributes={(row) => ({
          "aria-level": row.level, "aria-setsize": row.size, "aria-posinset": row.position,
          "aria-expanded": row.tree.children.length ? row.open : undefined,
          "aria-selected": row.tree.ref.uid === chosen,
          "aria-label": `${row.tree.ref.kind} ${row.tree.ref.name}, ${row.tree.deleting !== null ? "being deleted" : row.tree.ready}${row.tree.message ? `: ${row.tree.message}` : ""}`,
        })}
        onKeyDown={onKeyDown}
        onPick={(index) => rows[index] && open(rows[index])}
        render={(row) => <TreeRow row={row} toggle={() => toggle(row, !row.open)} />}
      />
    </section>
  );
}

function TreeRow({ row, toggle }: { row: Row; toggle: () => void }): JSX.Element {
  const { tree } = row;
  const fold = (event: MouseEvent): void => {
    event.stopPropagation();
    toggle();
  };
  return (
    <div class="tree-row" style={{ paddingLeft: `${(row.level - 1) * 20 + 8}px` }}>
      <span class="fold" aria-hidden="true" onClick={tree.children.length ? fold : undefined}>{tree.children.length ? (row.open ? "▾" : "▸") : ""}</span>
      <Mark ready={tree.ready} />
      <span class="kind">{tree.ref.kind}</span>
      <span class="name clip">{tree.ref.name}</span>
      {row.level === 1 && tree.ref.namespace && <span class="quiet clip">{tree.ref.namespace}</span>}
      {tree.deleting !== null && <Pill tone="warn">deleting</Pill>}
      <span class="grow clip quiet message">{tree.message}</span>
      <Since at={tree.created} />
    </div>
  );
}
