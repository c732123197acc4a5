/** Ctrl-K: go to any workflow, thread, agent's session, snapshot or page by a few letters. */
import { useQuery } from "@tanstack/react-query";
import { type KeyboardEvent, useDeferredValue, useEffect, useId, useRef, useState } from "react";
import { useLocation } from "wouter";
import { found, type search } from "../api/queries";
import { agentName, folder, neutral, words } from "../lib/format";

interface Target {
  readonly kind: string;
  readonly title: string;
  readonly more: string;
  readonly href: string;
}

const PAGES: readonly Target[] = [
  { kind: "Page", title: "Workflows", more: "", href: "/" },
  { kind: "Page", title: "New workflow", more: "", href: "/new" },
  { kind: "Page", title: "Failed workflows", more: "", href: "/?status=failed" },
  { kind: "Page", title: "Workflows that wait for approval", more: "", href: "/?status=blocked" },
  { kind: "Page", title: "Agent sessions", more: "", href: "/sessions" },
  { kind: "Page", title: "Server", more: "", href: "/server" },
];

export default function CommandPalette({ onClose }: { onClose: () => void }) {
  const dialog = useRef<HTMLDialogElement>(null);
  const [text, setText] = useState("");
  const [chosen, setChosen] = useState(0);
  const [, go] = useLocation();
  const list = useId();
  const wanted = useDeferredValue(text.trim());
  const query = useQuery(found(wanted));
  useEffect(() => {
    const shown = dialog.current;
    shown?.showModal();
    return () => shown?.close();
  }, []);
  const targets = targetsOf(query.data, wanted);
  const at = Math.min(chosen, targets.length - 1);
  const [isConfirmed, setConfirmed] = useState(false);
  /** What is shown while a search runs is of the one before: Enter waits for what was asked. */
  const isAnswered = wanted === text.trim() && !query.isFetching;
  useEffect(() => {
    document.getElementById(`${list}-${at}`)?.scrollIntoView({ block: "nearest" });
  }, [list, at]);
  const open = (target: Target | undefined) => {
    if (!target) return;
    onClose();
    go(target.href);
  };
  useEffect(() => {
    if (!isConfirmed || !isAnswered) return;
    setConfirmed(false);
    open(targets[at]);
  });
  const keyed = (event: KeyboardEvent) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step && targets.length > 0) {
      event.preventDefault();
      setChosen((at + step + targets.length) % targets.length);
    } else if (event.key === "Enter") {
      event.preventDefault();
      setConfirmed(true);
    }
  };
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: Escape closes it, too
    <dialog
      ref={dialog}
      className="dialog palette"
      aria-label="Go to"
      onCancel={onClose}
      onClick={(event) => event.target === dialog.current && onClose()}
    >
      <input
        type="search"
        role="combobox"
        value={text}
        placeholder="Workflow, thread, session, snapshot or page"
        aria-label="Go to"
        aria-expanded="true"
        aria-controls={list}
        aria-activedescendant={targets.length > 0 ? `${list}-${at}` : undefined}
        autoComplete="off"
        onChange={(event) => {
          setText(event.target.value);
          setChosen(0);
          setConfirmed(false);
        }}
        onKeyDown={keyed}
      />
      <div id={list} role="listbox" aria-label="Found" className="palette-list">
        {targets.map((target, index) => (
          // biome-ignore lint/a11y/useKeyWithClickEvents: the input above has the keys
          // biome-ignore lint/a11y/useFocusableInteractive: the input above keeps the focus
          <div
            key={`${target.kind}-${target.href}`}
            id={`${list}-${index}`}
            role="option"
            aria-selected={index === at}
            className="palette-item"
            onClick={() => open(target)}
          >
            <span className="tag">{target.kind}</span>
            <span className="palette-title">{neutral(target.title)}</span>
            <span className="muted palette-more">{neutral(target.more)}</span>
          </div>
        ))}
      </div>
      <p className="muted" role="status">
        {query.isFetching ? "Searching…" : targets.length === 0 ? "Nothing found." : ""}
      </p>
    </dialog>
  );
}

type Found = Awaited<ReturnType<typeof search>>;

function targetsOf(data: Found | undefined, wanted: string): Target[] {
  const has = (...texts: (string | null | undefined)[]) =>
    wanted
      .toLowerCase()
      .split(/\s+/)
      .every((word) => texts.some((text) => text?.toLowerCase().includes(word)));
  const workflows = (data?.workflows ?? []).map((one) => ({
    kind: "Workflow",
    title: one.issue.title || one.issue.id,
    more: `${words(one.status ?? "pending")} · ${folder(one.worktree)}`,
    href: `/workflows/${one.id}`,
  }));
  const threads = (data?.threads ?? [])
    .filter((one) => !one.issue && has(one.title, one.branch, one.worktree, one.id))
    .slice(0, 6)
    .map((one) => ({
      kind: "Thread",
      title: one.title,
      more: `${one.status} · ${folder(one.worktree)}`,
      href: `/workflows/${one.workflow_id}/snapshots/${one.snapshot_id}`,
    }));
  const sessions = (data?.sessions ?? [])
    .filter((one) => has(one.title, one.session_id, one.agent))
    .slice(0, 6)
    .map((one) => ({
      kind: "Session",
      title: one.title ?? one.session_id,
      more: agentName(one.agent),
      href: `/sessions?session=${encodeURIComponent(one.session_id)}`,
    }));
  const snapshots = (data?.snapshots ?? []).slice(0, 6).map((one) => ({
    kind: "Snapshot",
    title: one.session_id,
    more: `session ${one.session_number}`,
    href: `/workflows/${one.workflow_id}/snapshots/${one.id}`,
  }));
  const pages = PAGES.filter((one) => has(one.title));
  return wanted ? [...workflows, ...threads, ...snapshots, ...sessions, ...pages] : [...pages, ...workflows];
}
