// Rows of equal height, of which only the visible ones are in the document.
import type { AriaRole, ComponentChildren, JSX } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";

const MARGIN = 8; // rows beyond the edges, so that scrolling shows no gap

interface Props<T> {
  items: T[]; row: number; active: number; role: AriaRole; label: string; rowRole: AriaRole; id: string;
  render: (item: T, index: number) => ComponentChildren;
  attributes: (item: T, index: number) => Record<string, string | number | boolean | undefined>;
  onKeyDown: (event: KeyboardEvent) => void;
  onPick: (index: number, twice: boolean) => void;
}

export function VirtualList<T>(props: Props<T>): JSX.Element {
  const { items, row, active } = props;
  const box = useRef<HTMLDivElement>(null);
  const [range, setRange] = useState<[number, number]>([0, 60]);
  useEffect(() => {
    const element = box.current;
    if (!element) return;
    let frame = 0;
    const measure = (): void => {
      frame = 0;
      const first = Math.max(0, Math.floor(element.scrollTop / row) - MARGIN);
      const last = Math.ceil((element.scrollTop + element.clientHeight) / row) + MARGIN;
      setRange((before) => (before[0] === first && before[1] === last ? before : [first, last]));
    };
    const later = (): void => void (frame ||= requestAnimationFrame(measure));
    const observer = new ResizeObserver(later);
    observer.observe(element);
    element.addEventListener("scroll", later, { passive: true });
    return () => {
      observer.disconnect();
      element.removeEventListener("scroll", later);
      cancelAnimationFrame(frame);
    };
  }, [row]);
  useLayoutEffect(() => {
    const element = box.current;
    if (!element || active < 0) return;
    if (active * row < element.scrollTop) element.scrollTop = active * row;
    else if ((active + 1) * row > element.scrollTop + element.clientHeight) element.scrollTop = (active + 1) * row - element.clientHeight;
  }, [active, row]);
  const [first, last] = range;
  const visible = items.slice(first, last);
  const shown = active >= first && active < Math.min(last, items.length);
  return (
    <div
      class="virtual" ref={box} role={props.role} aria-label={props.label} tabIndex={0} onKeyDown={props.onKeyDown}
      aria-activedescendant={shown ? `${props.id}-${active}` : undefined}
    >
      <div class="virtual-all" role="presentation" style={{ height: `${items.length * row}px` }}>
        {visible.map((item, offset) => {
          const index = first + offset;
          return (
            <div
              key={index} id={`${props.id}-${index}`} role={props.rowRole} class={`virtual-row ${index === active ? "active" : ""}`}
              style={{ transform: `translateY(${index * row}px)`, height: `${row}px` }} {...props.attributes(item, index)}
              onClick={(event: MouseEvent) => props.onPick(index, event.detail > 1)}
            >
              {props.render(item, index)}
            </div>
          );
        })}
      </div>
    </div>
  );
}
