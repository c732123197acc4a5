/** A context as the agent will read it, with what it leaves out and what it costs to read. */
import { type ReactNode, useState } from "react";
import type { Carried, ContextResponse, Cost, Fidelity } from "../api/types";
import { count, counted, dollars, percent, words } from "../lib/format";
import { Wide } from "./bits";

export function ContextView({ answer }: { answer: ContextResponse }) {
  return (
    <>
      <ContextText text={answer.context} />
      <FidelityReport fidelity={answer.fidelity} />
    </>
  );
}

export function ContextText({ text, children }: { text: string; children?: ReactNode }) {
  const [copied, setCopied] = useState(false);
  const copy = () => {
    void navigator.clipboard.writeText(text).then(() => setCopied(true));
  };
  return (
    <section className="card" aria-label="The context as the agent will read it">
      <div className="row spread">
        <h2>What the agent will read</h2>
        <span className="row">
          {children}
          <button type="button" className="small" onClick={copy}>
            {copied ? "Copied" : "Copy"}
          </button>
        </span>
      </div>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a box that scrolls must be reachable by keyboard */}
      <pre className="context" tabIndex={0} role="region" aria-label="Context text">
        {text}
      </pre>
    </section>
  );
}

export function CostLine({ cost }: { cost: Cost }) {
  const price = cost.dollars == null ? null : `about ${dollars(cost.dollars)} with ${cost.model}`;
  return (
    <>
      about {counted(cost.tokens, "token")} to read{price ? `, ${price}` : ""}
      {cost.model && cost.dollars == null && `; the price of ${cost.model} is unknown`}
    </>
  );
}

export function FidelityReport({ fidelity }: { fidelity: Fidelity }) {
  const isWhole = fidelity.categories.every((one) => one.left_out === 0 && one.shortened === 0);
  return (
    <section className="card" aria-label="Fidelity report">
      <h2>What it includes</h2>
      <p className="muted">
        {count(fidelity.characters)} of {count(fidelity.budget)} characters (
        {percent(fidelity.characters / fidelity.budget)}), {counted(fidelity.redacted ?? 0, "secret")}{" "}
        removed. {isWhole ? "Nothing was left out." : "What was left out can be fetched as shown."}
      </p>
      {fidelity.categories.length > 0 && (
        <Wide label="What the context includes">
          <table className="table dense">
            <thead>
              <tr>
                <th scope="col">Part</th>
                <th scope="col" className="number">
                  Carried
                </th>
                <th scope="col" className="number">
                  Shortened
                </th>
                <th scope="col" className="number">
                  Left out
                </th>
                {!isWhole && <th scope="col">How to get the rest</th>}
              </tr>
            </thead>
            <tbody>
              {fidelity.categories.map((one) => (
                <CarriedRow key={one.category} one={one} withRest={!isWhole} />
              ))}
            </tbody>
          </table>
        </Wide>
      )}
    </section>
  );
}

function CarriedRow({ one, withRest }: { one: Carried; withRest: boolean }) {
  const isWhole = one.left_out === 0 && one.shortened === 0;
  return (
    <tr>
      <th scope="row">{words(one.category)}</th>
      <td className="number">{count(one.carried)}</td>
      <td className="number">{one.shortened ? count(one.shortened) : "–"}</td>
      <td className={one.left_out ? "number warn" : "number"}>{one.left_out ? count(one.left_out) : "–"}</td>
      {withRest && <td>{!isWhole && one.fetch && <code>{one.fetch}</code>}</td>}
    </tr>
  );
}
