/** What a decision or an error rests on: the words themselves, out of the agent's own record. */
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { evidenceOf } from "../api/queries";
import type { Evidence } from "../api/types";
import { counted } from "../lib/format";
import { ForeignText } from "./bits";
import { Talk } from "./ConversationView";
import { Shown } from "./states";

export function EvidenceList({ id, evidence }: { id: string; evidence: readonly Evidence[] }) {
  return evidence.map((one) => (
    <EvidenceItem key={`${one.source} ${one.messages.join()}`} id={id} one={one} />
  ));
}

function EvidenceItem({ id, one }: { id: string; one: Evidence }) {
  const [isOpen, setOpen] = useState(false);
  return (
    <div className="stack evidence">
      {one.quote && <ForeignText title="Quoted" text={one.quote} />}
      <button
        type="button"
        className="quiet disclosure"
        aria-expanded={isOpen}
        onClick={() => setOpen(!isOpen)}
      >
        {isOpen ? "▾" : "▸"} Evidence: {counted(one.messages.length, "message")}
      </button>
      {isOpen && <Cited id={id} one={one} />}
    </div>
  );
}

function Cited({ id, one }: { id: string; one: Evidence }) {
  const query = useQuery(evidenceOf(id, one));
  return (
    <Shown query={query} what="evidence">
      {({ messages }) =>
        messages.length > 0 ? (
          <Talk messages={messages} />
        ) : (
          <p className="muted">The agent's own record does not have them any more.</p>
        )
      }
    </Shown>
  );
}
