/** The server's API, typed by its own document. */
import createClient from "openapi-fetch";
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

export const api = createClient<paths>({
  baseUrl: globalThis.location?.origin ?? "",
  credentials: "omit", // cookies would be those of other programs on this host
});
api.use({
  onRequest: ({ request }) => {
    request.headers.set("Authorization", authorization());
  },
});

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
