// Search over objects and controllers: `/` from anywhere.
import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { get } from "../api";
import { fullName } from "../format";
import type { Objects, Tree } from "../protocol";
import { controllerHref, objectHref } from "../route";
import { controllers } from "../state";

const SHOWN = 10;
const PAUSE = 150; // ms after the last key

interface Hit { href: string; kind: string; name: string }

function matches(trees: Tree[], text: string): Tree[] {
  return trees.flatMap((tree) => [
    ...(`${tree.ref.kind} ${fullName(tree.ref)}`.toLowerCase().includes(text) ? [tree] : []), ...matches(tree.children, text),
  ]);
}

async function find(text: string, abort: AbortSignal): Promise<Hit[]> {
  const lower = text.toLowerCase();
  const own = [...controllers.value.keys()].filter((name) => name.toLowerCase().includes(lower));
  const answer = await get<Objects>("objects", { q: text, limit: "50" }, abort);
  return [
    ...matches(answer.roots, lower).map(({ ref }) => ({ href: objectHref(ref), kind: ref.kind, name: fullName(ref) })),
    ...own.map((name) => ({ href: controllerHref(name), kind: "Controller", name })),
  ].slice(0, SHOWN);
}

export function Search(): JSX.Element {
  const [text, setText] = useState("");
  const [hits, setHits] = useState<Hit[] | null>(null);
  const [active, setActive] = useState(0);
  const input = useRef<HTMLInputElement>(null);
  useEffect(() => {
    if (!text) {
      setHits(null);
      return;
    }
    const abort = new AbortController();
    const timer = window.setTimeout(() => {
      find(text, abort.signal).then((found) => {
        setHits(found);
        setActive(0);
      }, () => undefined);
    }, PAUSE);
    return () => {
      clearTimeout(timer);
      abort.abort();
    };
  }, [text]);
  const close = (): void => {
    setText("");
    setHits(null);
    input.current?.blur();
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    if (event.key === "Escape") close();
    if (!hits?.length) return;
    if (event.key === "ArrowDown") setActive((active + 1) % hits.length);
    else if (event.key === "ArrowUp") setActive((active - 1 + hits.length) % hits.length);
    else if (event.key === "Enter") {
      location.hash = hits[active]!.href;
      close();
    } else return;
    event.preventDefault();
  };
  return (
    <div class="search">
      <input
        id="search" ref={input} type="text" role="combobox" aria-label="Search objects and controllers" aria-expanded={hits !== null} aria-controls="hits" aria-autocomplete="list"
        aria-activedescendant={hits?.length ? `hit-${active}` : undefined} placeholder="Search" value={text} spellcheck={false} autocomplete="off"
        onInput={(event) => setText(event.currentTarget.value)} onKeyDown={onKeyDown} onBlur={() => window.setTimeout(() => setHits(null), 150)}
      />
      <kbd aria-hidden="true">/</kbd>
      <ul id="hits" role="listbox" aria-label="Results" hidden={hits === null}>
        {hits?.map((hit, index) => (
          <li key={hit.href} id={`hit-${index}`} role="option" aria-selected={index === active}>
            <a href={hit.href} tabIndex={-1} onClick={close}><span class="kind">{hit.kind}</span> <span class="name">{hit.name}</span></a>
          </li>
        ))}
        {hits?.length === 0 && <li role="option" aria-selected="false" aria-disabled="true" class="quiet no-hit">Nothing matches</li>}
      </ul>
    </div>
  );
}
