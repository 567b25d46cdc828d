import type { ProblemDocument } from "./types";

export type FieldError = NonNullable<ProblemDocument["errors"]>[number];

/** A refusal of the server (RFC 9457), or what stands for one when none came. */
export class ProblemError extends Error {
  override readonly name = "ProblemError";
  readonly problem: ProblemDocument;

  constructor(problem: ProblemDocument) {
    super(problem.detail ? `${problem.title}: ${problem.detail}` : problem.title);
    this.problem = problem;
  }

  /** HTTP status; 0 when the server did not answer at all. */
  get status(): number {
    return this.problem.status;
  }

  /** The stable end of the type, such as "outdated" of "/problems/outdated". */
  get kind(): string {
    return this.problem.type.replace(/^.*\//, "");
  }
}

/** Reads a problem out of an answer's body, whatever the body turns out to be. */
export function problemFromAnswer(status: number, body: unknown): ProblemError {
  if (isProblem(body)) {
    return new ProblemError({ ...body, status });
  }
  return new ProblemError({
    type: "about:blank",
    title: statusTitle(status),
    status,
    detail:
      "The answer was not a problem document; something between this page and holdfast may have sent it.",
  });
}

/** What stands for an answer that never came. */
export function noAnswer(): ProblemError {
  return new ProblemError({
    type: "about:blank",
    title: "holdfast does not answer",
    status: 0,
    detail:
      "Gateways keep serving the policy they hold, and leases still end by themselves. Slack buttons work again when the server does.",
  });
}

/** What is shown for anything that was thrown, faults of the console included. */
export function problemOf(error: unknown): ProblemDocument {
  if (error instanceof ProblemError) {
    return error.problem;
  }
  return {
    type: "about:blank",
    title: "The console failed",
    status: 0,
    detail: error instanceof Error ? error.message : String(error),
  };
}

export function statusOf(error: unknown): number {
  return error instanceof ProblemError ? error.status : 0;
}

function isProblem(body: unknown): body is ProblemDocument {
  return (
    typeof body === "object" &&
    body !== null &&
    typeof (body as { title?: unknown }).title === "string" &&
    typeof (body as { type?: unknown }).type === "string"
  );
}

function statusTitle(status: number): string {
  if (status === 401) return "Not authenticated";
  if (status === 403) return "Not allowed";
  if (status === 404) return "Not found";
  if (status >= 500) return `holdfast failed (${status})`;
  return `Refused (${status})`;
}
