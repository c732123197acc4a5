/**
 * The token that lets this page in.
 *
 * It comes behind the `#` of the link that `holdfast serve` prints, and is kept in the storage of this
 * origin. Unlike a cookie, that is out of reach for what is served on another port of the same host.
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

/** The token of a printed link, if that is what was opened; then out of the address it goes. */
export function takeFromAddress(): string | null {
  const found = new URLSearchParams(location.hash.slice(1)).get("token");
  if (found === null) return null;
  history.replaceState(history.state, "", location.pathname + location.search);
  return /^[\w-]+$/.test(found) ? found : null; // anything else fits in no header
}

/** Keep the token of a link, unless it is wrong: any site can lead here with one, and lock nobody out. */
export async function accept(found: string): Promise<void> {
  if (token() && token() !== found && !(await isRight(found))) return;
  remembered = found;
  try {
    localStorage.setItem(NAME, found);
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

async function isRight(found: string): Promise<boolean> {
  try {
    const headers = { Authorization: `Bearer ${found}` };
    return (await fetch("/api/health", { headers, credentials: "omit" })).ok;
  } catch {
    return false;
  }
}
