import { useMemo, useState } from "react";
import { describe, type Line } from "../lib/describe";
import { count, moment, timeOfDay, ZONE } from "../lib/format";
import { useParam } from "../lib/use-param";
import type { ConnectionState } from "../live/connection";
import type { Stream } from "../live/stream";
import { Empty, Loading } from "./states";
import { VirtualList } from "./VirtualList";

interface Told extends Line {
  readonly seq: number;
  readonly at: string;
}

export function EventList({ stream, state }: { stream: Stream; state: ConnectionState }) {
  const [search, setSearch] = useParam("q");
  const [withUsage, setWithUsage] = useState(false);
  const told = useMemo(() => {
    const wanted = search.trim().toLowerCase();
    const found: Told[] = [];
    for (const event of stream.events) {
      if (!withUsage && event.entry.type === "usage_reported") continue;
      const line = describe(event);
      if (wanted && !`${line.title} ${line.detail ?? ""}`.toLowerCase().includes(wanted)) continue;
      found.push({ ...line, seq: event.seq, at: event.at });
    }
    return found;
  }, [stream.events, search, withUsage]);
  if (stream.events.length === 0) {
    return state === "live" ? <Empty title="No events yet." /> : <Loading what="events" />;
  }
  return (
    <div className="stack">
      <div className="row wrap">
        <input
          type="search"
          className="grow"
          value={search}
          placeholder="Search events"
          aria-label="Search events"
          onChange={(event) => setSearch(event.target.value)}
        />
        <label className="check">
          <input
            type="checkbox"
            checked={withUsage}
            onChange={(event) => setWithUsage(event.target.checked)}
          />
          Usage reports
        </label>
        <span className="muted">Times in {ZONE}</span>
      </div>
      {stream.dropped > 0 && (
        <p className="muted">
          The oldest {count(stream.dropped)} are not shown here; run <code>holdfast events</code> to see all.
        </p>
      )}
      {told.length === 0 ? (
        <Empty title="No matching events." />
      ) : (
        <VirtualList
          items={told}
          rowHeight={30}
          label="Events, oldest first"
          follow
          keyOf={(line) => line.seq}
          render={(line) => <EventLine line={line} />}
        />
      )}
    </div>
  );
}

function EventLine({ line }: { line: Told }) {
  return (
    <div className={`event tone-${line.tone}`} data-seq={line.seq}>
      <time dateTime={line.at} title={moment(line.at)}>
        {timeOfDay(line.at)}
      </time>
      <span className="event-title">{line.title}</span>
      {line.detail && <span className="event-detail">{line.detail}</span>}
    </div>
  );
}
