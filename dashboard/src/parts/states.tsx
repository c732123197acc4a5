/** Loading, empty and failed: what a page shows when there is nothing to show. */
import type { UseQueryResult } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { ApiError } from "../api/client";
import { linkRefusal } from "../api/token";
import { MissingPart } from "../lib/part";

export function Loading({ what }: { what: string }) {
  return (
    <div className="state" role="status">
      <span className="spinner" aria-hidden="true" />
      Loading {what}…
    </div>
  );
}

export function Empty({ title, children }: { title: string; children?: ReactNode }) {
  return (
    <div className="state state-empty">
      <p className="state-title">{title}</p>
      {children}
    </div>
  );
}

export function Failed({ error, retry }: { error: unknown; retry?: () => void }) {
  const told = error instanceof ApiError ? error : null;
  if (told?.status === 401) return <NotLetIn />;
  const hint = error instanceof MissingPart ? error.hint : told?.hint;
  return (
    <div className="state state-failed" role="alert">
      <p className="state-title">{error instanceof Error ? error.message : "Something went wrong."}</p>
      {hint && <p>{hint}</p>}
      <Faults error={told} />
      {retry && (
        <button type="button" onClick={retry}>
          Try again
        </button>
      )}
    </div>
  );
}

export function Faults({ error }: { error: ApiError | null }) {
  if (!error?.faults?.length) return null;
  return (
    <ul className="faults">
      {error.faults.map((fault) => (
        <li key={fault.where}>
          <code>{fault.where}</code>: {fault.what}
        </li>
      ))}
    </ul>
  );
}

function NotLetIn() {
  const refusal = linkRefusal();
  return (
    <div className="state state-failed" role="alert">
      <p className="state-title">This browser is not authorised yet.</p>
      {refusal ? (
        <p>
          {sentence(refusal.message)} {sentence(refusal.hint)}
        </p>
      ) : (
        <p>
          Open the link that <code>holdfast serve</code> printed in its terminal. A link works once; for
          another one run <code>holdfast serve --link</code>.
        </p>
      )}
    </div>
  );
}

function sentence(text: string): string {
  return text && `${text[0]?.toUpperCase()}${text.slice(1)}${text.endsWith(".") ? "" : "."}`;
}

/** What could not be asked again: it may have changed since. */
function Outdated({ error }: { error: unknown }) {
  return (
    <p className="notice warn" role="status">
      <strong>{error instanceof Error ? error.message : "Something went wrong."}</strong> What is shown may
      have changed since.
    </p>
  );
}

/** The answer to one question, or the state it is in. What is shown stays while it is asked again. */
export function Shown<T>({
  query,
  what,
  children,
}: {
  query: UseQueryResult<T>;
  what: string;
  children: (data: T) => ReactNode;
}) {
  const isRefused = query.error instanceof ApiError && query.error.status === 401;
  if (query.data !== undefined && !isRefused) {
    return (
      <>
        {query.isError && <Outdated error={query.error} />}
        {children(query.data)}
      </>
    );
  }
  if (query.isError) return <Failed error={query.error} retry={() => void query.refetch()} />;
  return <Loading what={what} />;
}
