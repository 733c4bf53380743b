import { Cancelled, Failed, InvalidBody, PawlError, TimedOut } from "./errors.js";
import { clean } from "./json.js";

/** Types of failures that the worker itself finds. */
export const types = {
  invalidInput: "invalid_input",
  invalidResult: "invalid_result",
  unknownHandler: "unknown_handler",
  notCommitted: "transaction_not_committed",
} as const;

const maxText = 8 << 10; // bytes of an error's text in a result
const maxType = 100;

/** An error as a result has it. */
export interface StepError {
  type: string;
  message: string;
  retryable: boolean;
  /** In seconds. */
  retry_after?: number;
}

/** Makes of what a handler threw what is reported. reason is why its signal was aborted, if it was. */
export function failure(thrown: unknown, reason: unknown): Failure {
  try {
    return read(thrown, reason);
  } catch {
    // What reading it throws would end the process, and with the next delivery the next worker's.
    return { status: "failed", error: { type: "error", message: textless, retryable: true } };
  }
}

interface Failure {
  status: "failed" | "rejected";
  error: StepError;
}

const textless = "the handler threw something without a text";

function read(thrown: unknown, reason: unknown): Failure {
  const chain = causes(thrown);
  const verdicts = chain.filter((one) => one instanceof Failed);
  const error: StepError = {
    type: clean(String(typeOf(chain, reason)), maxType),
    message: clean(textOf(thrown), maxText),
    retryable: verdicts.every((one) => one.retryable),
  };
  const after = Math.max(0, ...verdicts.map((one) => one.afterMs)) / 1000;
  if (error.retryable && after > 0) error.retry_after = after;
  return { status: verdicts.some((one) => one.rejected) ? "rejected" : "failed", error };
}

/** The error and what caused it, outermost first. */
function causes(thrown: unknown): unknown[] {
  const chain: unknown[] = [];
  while (thrown !== undefined && thrown !== null && !chain.includes(thrown)) {
    chain.push(thrown);
    thrown = thrown instanceof Error ? thrown.cause : undefined;
  }
  return chain;
}

/** What the handler says, else why its signal was aborted, else the first class in the chain that says something. */
function typeOf(chain: unknown[], reason: unknown): string {
  for (const one of chain) if (one instanceof Failed && one.type) return one.type;
  const aborted = chain.some((one) => one === reason || (one instanceof Error && one.name === "AbortError"));
  if (reason instanceof Cancelled) return "cancelled";
  if (reason instanceof TimedOut && aborted) return "timeout";
  for (const one of chain) {
    if (!(one instanceof Error) || (one instanceof PawlError && !(one instanceof InvalidBody) && one.constructor.name in own)) continue;
    const name = one.name !== "Error" ? one.name : one.constructor.name;
    if (name && name !== "Error") return name;
  }
  return "error";
}

// Classes of ours that say what follows from an error, not what happened.
const own: Record<string, true> = { Failed: true, Permanent: true, Rejected: true, RetryAfter: true };

function textOf(thrown: unknown): string {
  try {
    return String(thrown instanceof Error ? thrown.message || thrown.name : thrown);
  } catch {
    return textless;
  }
}
