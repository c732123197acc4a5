import { useEffect, useMemo, useRef, useSyncExternalStore } from "react";
import type { WorkflowEvent } from "../api/types";
import { EventConnection, type Following, socketUrl } from "./connection";
import { noteConnection } from "./status";

/** Follow events from a number on, for as long as the page shows: of one workflow, or of all. */
export function useEvents(workflowId: string | null, since: number | null): Following {
  const connection = useMemo(
    () => new EventConnection(since ?? 0, socketUrl(workflowId)),
    [workflowId, since],
  );
  const isWanted = since !== null;
  useEffect(() => {
    if (!isWanted) return;
    connection.open();
    const looked = () => document.visibilityState === "visible" && connection.hurry();
    window.addEventListener("online", connection.hurry);
    document.addEventListener("visibilitychange", looked);
    return () => {
      window.removeEventListener("online", connection.hurry);
      document.removeEventListener("visibilitychange", looked);
      connection.close();
    };
  }, [connection, isWanted]);
  const following = useSyncExternalStore(connection.subscribe, connection.current);
  useEffect(() => {
    noteConnection(isWanted ? following.state : null);
    return () => noteConnection(null);
  }, [following.state, isWanted]);
  return following;
}

export type OnNews = (news: readonly WorkflowEvent[], isGap: boolean) => void;

/** Calls back with what is new since the last call, at most once in so many milliseconds. */
export function useNews(following: Following, act: OnNews, milliseconds = 250): void {
  const latest = useRef({ following, act });
  const seen = useRef<{ position: number; gaps: number } | null>(null);
  const timer = useRef<number | null>(null);
  useEffect(() => {
    latest.current = { following, act };
    seen.current ??= { position: 0, gaps: 0 };
    const { stream, state } = following;
    const isOld = stream.position === seen.current.position && stream.gaps === seen.current.gaps;
    if (state !== "live" || isOld || timer.current !== null) return;
    timer.current = window.setTimeout(() => {
      timer.current = null;
      const heard = latest.current.following.stream;
      const { position, gaps } = seen.current ?? { position: 0, gaps: 0 };
      seen.current = { position: heard.position, gaps: heard.gaps };
      const start = heard.events.findLastIndex((event) => event.seq <= position) + 1;
      latest.current.act(heard.events.slice(start), heard.gaps !== gaps);
    }, milliseconds);
  }, [following, act, milliseconds]);
  useEffect(
    () => () => {
      if (timer.current !== null) window.clearTimeout(timer.current);
      timer.current = null;
    },
    [],
  );
}
