/** The server's API, typed by its own document. */
import type { Client } from "openapi-fetch";
import { neutral, neutralAll } from "../lib/format";
import type { ErrorDetail, paths } from "./schema";
import { authorization } from "./token";

/** What the server said when it said no, or that nobody answered. */
export class ApiError extends Error {
  readonly status: number;
  readonly code: string;
  readonly hint: string | null;
  readonly faults: ErrorDetail["faults"];
  readonly confirm: ErrorDetail["confirm"];
  readonly undone: ErrorDetail["undone"];

  constructor(status: number, detail: Partial<ErrorDetail>) {
    super(neutral(detail.message ?? `The server answered with ${status}.`));
    this.name = "ApiError";
    this.status = status;
    this.code = detail.code ?? "unknown";
    this.hint = neutral(detail.hint ?? "") || null;
    this.faults = detail.faults ?? [];
    this.confirm = detail.confirm ?? null;
    this.undone = detail.undone ?? null;
  }

  /** Nobody answered: worth another try, unlike a clear no. */
  get isUnreachable(): boolean {
    return this.status === 0;
  }
}

interface Asked {
  params?: { path?: Record<string, string>; query?: Record<string, unknown> };
  body?: unknown;
  signal?: AbortSignal;
}

/** As openapi-fetch does it, as far as this API needs it: whole, it is 2 kB more of the first page. */
const asking =
  (method: string) =>
  async (path: string, { params, body, signal }: Asked = {}) => {
    const place = path.replace(/\{(\w+)\}/g, (_, name) => encodeURIComponent(params?.path?.[name] ?? ""));
    const query = new URLSearchParams();
    for (const [name, value] of Object.entries(params?.query ?? {}))
      for (const one of [value].flat()) if (one !== null && one !== undefined) query.append(name, `${one}`);
    const response = await fetch(`${place}${query.size > 0 ? `?${query}` : ""}`, {
      method,
      signal: signal ?? null,
      credentials: "omit", // cookies would be those of other programs on this host
      headers: {
        Authorization: authorization(),
        ...(body === undefined ? {} : { "Content-Type": "application/json" }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const text = await response.text();
    if (response.ok) return { data: text ? JSON.parse(text) : undefined, response };
    return { error: parsed(text), response };
  };

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text; // of somebody between the server and this page
  }
}

export const api = {
  GET: asking("GET"),
  POST: asking("POST"),
  PUT: asking("PUT"),
  DELETE: asking("DELETE"),
} as unknown as Pick<Client<paths>, "GET" | "POST" | "PUT" | "DELETE">;

interface Answer<T> {
  data?: T;
  error?: unknown;
  response: Response;
}

/** The data of an answer, or the server's own words as an `ApiError`. */
export async function answered<T>(call: Promise<Answer<T>>): Promise<T> {
  let answer: Answer<T>;
  try {
    answer = await call;
  } catch (problem) {
    if (problem instanceof DOMException && problem.name === "AbortError") throw problem;
    throw new ApiError(0, {
      code: "unreachable",
      message: "The server cannot be reached.",
      hint: "Is `holdfast serve` still running? This page tries again by itself.",
    });
  }
  if (!answer.response.ok) throw new ApiError(answer.response.status, detailOf(answer.error));
  return answer.data as T;
}

/** The same of what is only ever shown. What is sent back, as a task's id is, is made neutral where it is shown. */
export async function toShow<T>(call: Promise<Answer<T>>): Promise<T> {
  return neutralAll(await answered(call));
}

function detailOf(body: unknown): Partial<ErrorDetail> {
  const found = typeof body === "object" && body !== null && "error" in body ? body.error : null;
  return typeof found === "object" && found !== null ? (found as Partial<ErrorDetail>) : {};
}
