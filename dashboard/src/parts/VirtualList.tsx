/** A long list of which only the visible part is drawn. */
import { useVirtualizer } from "@tanstack/react-virtual";
import { type ReactNode, useEffect, useRef } from "react";

interface Properties<T> {
  items: readonly T[];
  rowHeight: number;
  label: string;
  keyOf: (item: T) => string | number;
  render: (item: T) => ReactNode;
  /** Keep the newest, at the end, in view for as long as nobody scrolls away from it. */
  follow?: boolean;
}

export function VirtualList<T>({ items, rowHeight, label, keyOf, render, follow = false }: Properties<T>) {
  const box = useRef<HTMLDivElement>(null);
  const atEnd = useRef(true);
  const virtual = useVirtualizer({
    count: items.length,
    getScrollElement: () => box.current,
    estimateSize: () => rowHeight,
    getItemKey: (index) => keyOf(items[index] as T),
    overscan: 12,
  });
  const total = items.length;
  useEffect(() => {
    if (follow && atEnd.current && total > 0) virtual.scrollToIndex(total - 1, { align: "end" });
  }, [follow, total, virtual]);
  const scrolled = () => {
    const { scrollTop, scrollHeight, clientHeight } = box.current as HTMLDivElement;
    atEnd.current = scrollHeight - scrollTop - clientHeight < 2 * rowHeight;
  };
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a box that scrolls must be reachable by keyboard
    <div ref={box} className="virtual" tabIndex={0} role="region" aria-label={label} onScroll={scrolled}>
      <ol className="virtual-body" style={{ height: virtual.getTotalSize() }}>
        {virtual.getVirtualItems().map((item) => (
          <li
            key={item.key}
            ref={virtual.measureElement}
            data-index={item.index}
            aria-setsize={total}
            aria-posinset={item.index + 1}
            className="virtual-row"
            style={{ transform: `translateY(${item.start}px)` }}
          >
            {render(items[item.index] as T)}
          </li>
        ))}
      </ol>
    </div>
  );
}
