import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { Link, useLocation } from "wouter";
import { ApiError, answered, api } from "../api/client";
import { keys, projects, serverSettings } from "../api/queries";
import { useTitle } from "../lib/use-title";
import { Faults } from "../parts/states";
import { say } from "../parts/toasts";
import "../styles/details.css";

const EXAMPLE = `issue: {id: DEMO-1, title: Add a health endpoint}
driver: shell
tasks:
  - {id: test, description: Write the test, run: "echo writing the test; sleep 2"}
  - {id: code, description: Implement, depends_on: [test], run: "echo implementing; sleep 2"}
  - {id: docs, description: Describe it, depends_on: [test], run: "echo writing; sleep 1"}
  - {id: review, description: Review it, depends_on: [code, docs], run: "echo looks good"}
`;

export default function NewWorkflow() {
  useTitle("New workflow");
  const [plan, setPlan] = useState("");
  const [worktree, setWorktree] = useState("");
  const [, go] = useLocation();
  const client = useQueryClient();
  const settings = useQuery(serverSettings);
  const known = useQuery(projects);
  const create = useMutation({
    mutationFn: () =>
      answered(api.POST("/api/workflows", { body: { plan, worktree: worktree.trim() || null } })),
    onSuccess: (workflow) => {
      void client.invalidateQueries({ queryKey: keys.lists });
      say(`${workflow.issue.id} created; a worker will run it.`);
      go(`/workflows/${workflow.id}`);
    },
  });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    create.mutate();
  };
  const error = create.error instanceof ApiError ? create.error : null;
  return (
    <form className="narrow stack" onSubmit={submit}>
      <h1>New workflow</h1>
      <label>
        <span>Plan</span>
        <textarea
          className="code"
          rows={16}
          required
          spellCheck={false}
          value={plan}
          placeholder={EXAMPLE}
          aria-describedby="plan-hint"
          aria-invalid={error !== null}
          onChange={(event) => setPlan(event.target.value)}
        />
      </label>
      <div className="row spread wrap">
        <p id="plan-hint" className="muted">
          YAML, as in a plan file: an issue and tasks with what they depend on.
        </p>
        <span className="row">
          <FileButton onText={setPlan} />
          <button type="button" className="small" onClick={() => setPlan(EXAMPLE)}>
            Use the example
          </button>
        </span>
      </div>
      <label>
        <span>Folder to work in</span>
        <input
          list="known-projects"
          value={worktree}
          placeholder={settings.data?.project ?? "the server's project"}
          onChange={(event) => setWorktree(event.target.value)}
        />
        <datalist id="known-projects">
          {known.data?.projects.map((project) => (
            <option key={project} value={project} />
          ))}
        </datalist>
      </label>
      <p className="muted">Commands in the plan run on the server's machine, in that folder, as its user.</p>
      {create.isError && (
        <div className="notice bad" role="alert">
          <p>
            <strong>The server rejected the plan.</strong> {create.error.message}
          </p>
          {error?.hint && <p className="muted">{error.hint}</p>}
          <Faults error={error} />
        </div>
      )}
      <div className="row">
        <button type="submit" className="primary" disabled={create.isPending || plan.trim() === ""}>
          {create.isPending ? "Creating…" : "Create and run"}
        </button>
        <Link href="/" className="button">
          Cancel
        </Link>
      </div>
    </form>
  );
}

function FileButton({ onText }: { onText: (text: string) => void }) {
  return (
    <label className="button small">
      Open a file
      <input
        type="file"
        className="hidden"
        accept=".yaml,.yml,.json"
        onChange={(event) => void event.target.files?.[0]?.text().then(onText)}
      />
    </label>
  );
}
