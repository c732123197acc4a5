/**
 * The token that lets this page in.
 *
 * The link that `holdfast serve` prints has a code behind its `#` that works once; the token it is
 * exchanged for is kept in the storage of this origin. Unlike a cookie, that is out of reach for what is served on another port of the same host.
 */
const NAME = "holdfast-token";

/** For a browser that keeps nothing: until the page is left. */
let remembered = "";

export function token(): string {
  try {
    return localStorage.getItem(NAME) ?? remembered;
  } catch {
    return remembered;
  }
}

export function authorization(): string {
  return `Bearer ${token()}`;
}

/** A page cannot send headers with a WebSocket: the token goes with the protocols it offers. */
export function socketProtocols(): string[] {
  return token() ? ["holdfast", `holdfast.token.${token()}`] : ["holdfast"];
}

/** The code of a printed link, if that is what was opened; then out of the address it goes. */
export function takeFromAddress(): string | null {
  const found = new URLSearchParams(location.hash.slice(1)).get("code");
  if (found === null) return null;
  history.replaceState(history.state, "", location.pathname + location.search);
  return /^[\w-]+$/.test(found) ? found : null; // anything else fits in no header
}

/** Why the link that was opened let nobody in; null where it did, or none was opened. */
let refusal: { message: string; hint: string } | null = null;

export function linkRefusal(): { message: string; hint: string } | null {
  return refusal;
}

/** Exchange the code of a link. A wrong one changes nothing: any site can lead here with one. */
export async function accept(code: string): Promise<void> {
  refusal = null;
  try {
    const answer = await fetch("/api/login", {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ code }),
      credentials: "omit",
    });
    const told = await answer.json();
    if (answer.ok) keep(String(told.token));
    else refusal = { message: String(told.error.message), hint: String(told.error.hint ?? "") };
  } catch {
    refusal = { message: "the server cannot be reached", hint: "Open the link again when it runs." };
  }
}

function keep(given: string): void {
  remembered = given;
  try {
    localStorage.setItem(NAME, given);
  } catch {
    // remembered is all there is
  }
}

export function forget(): void {
  remembered = "";
  try {
    localStorage.removeItem(NAME);
  } catch {
    // nothing was kept
  }
}
