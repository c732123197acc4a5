import type { ReactNode } from "react";
import { Link } from "wouter";
import type { UndoneReport } from "../api/types";
import { neutral } from "../lib/format";
import { taskPath } from "../lib/paths";

/** Completed tasks whose files are not as they left them: restored, or gone on without, before anything runs. */
export function Undone({ id, undone, children }: { id: string; undone: UndoneReport; children?: ReactNode }) {
  return (
    <section className="notice warn stack" aria-label="Undone">
      {undone.facts.map((fact) => (
        <p key={fact}>
          <strong>{neutral(fact.charAt(0).toUpperCase() + fact.slice(1))}.</strong>
        </p>
      ))}
      {undone.tasks.length > 0 && (
        <p>
          Redo it on the page of{" "}
          {undone.tasks.map((task, index) => (
            <span key={task.id}>
              {index > 0 && ", "}
              <Link href={taskPath(id, task.id)} title={neutral(task.paths.join(", "))}>
                {neutral(task.id)}
              </Link>
            </span>
          ))}
          {undone.restore_with.length > 0 && ", or restore all of it:"}
        </p>
      )}
      {undone.restore_with.length > 0 && <pre>{undone.restore_with.join("\n")}</pre>}
      {children}
    </section>
  );
}
