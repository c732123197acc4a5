import { useQuery } from "@tanstack/react-query";
import { Fragment } from "react";
import { Link } from "wouter";
import { progressOf } from "../api/queries";
import { neutral } from "../lib/format";

/** The way to a page below a workflow's; `parts` are pages between, with their addresses. */
export function Crumbs({ id, parts = [] }: { id: string; parts?: readonly (readonly [string, string])[] }) {
  const { data } = useQuery(progressOf(id));
  const issue = data?.workflow.issue;
  return (
    <nav aria-label="Breadcrumb" className="crumbs clamped">
      <Link href="/">Workflows</Link> /{" "}
      <Link href={`/workflows/${id}`}>{neutral(issue?.title || issue?.id || "Workflow")}</Link>
      {parts.map(([name, href]) => (
        <Fragment key={href}>
          {" "}
          / <Link href={href}>{name}</Link>
        </Fragment>
      ))}
    </nav>
  );
}
