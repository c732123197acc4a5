/** How full an agent's session is and what it has cost, by its own record. */
import type { AgentSessionUsage } from "../api/types";
import { count, dollars, short } from "../lib/format";
import { ContextGauge } from "./bits";

interface Told {
  usage: AgentSessionUsage | null;
  /** Whether its record was read: until then nothing is known, afterwards it cannot be told. */
  isRead: boolean;
}

export function SessionFullness({ usage, isRead }: Told) {
  if (!usage) return <span className="muted">{isRead ? "not recorded" : "reading…"}</span>;
  return (
    <span title={`${count(usage.context_tokens ?? 0)} of ${count(usage.context_window)} tokens`}>
      <ContextGauge share={usage.context_share} pausesAt={null} />
    </span>
  );
}

export function SessionCost({ usage, isRead }: Told) {
  if (!usage) return <span className="muted">{isRead ? "–" : "…"}</span>;
  const used = `${short(usage.tokens)} tokens${usage.model ? `, ${usage.model}` : ""}`;
  if (usage.cost_usd === null) return <span title={`${used}; no list price is known`}>{used}</span>;
  return (
    <span title={`${used}, at list prices`}>
      {usage.cost_is_partial && "at least "}
      {dollars(usage.cost_usd)}
    </span>
  );
}
