import { Stopping } from "./errors.js";
import { failure, types, type StepError } from "./failure.js";
import { hide } from "./hide.js";
import type { Lane } from "./lane.js";

/** A step that this worker has claimed, as pawl.claim_steps gives it. Fields not named here are a newer engine's, and harmless. */
export interface Claimed {
  msg_id: number;
  read_ct: number;
  task_id: string;
  step: string;
  index?: number;
  attempt: number;
  delivery: number;
  handler: string;
  input?: unknown;
  dependencies?: Record<string, unknown> | null;
  config?: unknown;
  token?: string;
  correlation_id?: string | null;
  lease_ms?: number;
  headers?: Record<string, unknown> | null;
}

/** The end of an attempt, as pawl.report_steps takes it. result is JSON text. */
export interface Report {
  status: "complete" | "failed" | "rejected";
  result?: string;
  error?: StepError;
}

/** What a step needs of its delivery, so that tests can do without a worker. */
export interface StepSource {
  readonly body: Claimed;
  readonly queue: string;
  readonly worker: string;
  readonly signal: AbortSignal;
  /** A transaction of the handler decides about the message from now on. */
  enterTransaction(): void;
}

/** One delivery: its lease, and the handler at work on it. */
export class Delivery implements StepSource {
  /** When the lease is to be extended, and when it was surely ours last, by performance.now(). beatAt 0: never again. */
  beatAt: number;
  leaseFrom: number;
  /** The handler has returned. */
  ended = false;
  /** step.completeIn was called: the message may be locked or gone. */
  inTransaction = false;
  /** Its report was set aside. */
  apart = false;
  private readonly controller = new AbortController();

  constructor(
    readonly body: Claimed,
    private readonly lane: Lane,
    asked: number,
    readonly claimedAt: number,
  ) {
    this.leaseFrom = asked;
    this.beatAt = asked + this.lease / 3;
    hide(this, "lane");
  }

  get queue(): string {
    return this.lane.queue;
  }

  get worker(): string {
    return this.lane.worker;
  }

  get signal(): AbortSignal {
    return this.controller.signal;
  }

  get lease(): number {
    return this.body.lease_ms ?? 30_000;
  }

  /** The attempt's timeout in milliseconds, as the engine put it into the message's headers; 0 is none. */
  get timeout(): number {
    const ms = this.body.headers?.["timeout_ms"];
    return typeof ms === "number" && ms > 0 ? ms : 0;
  }

  abort(reason: Error): void {
    if (!this.controller.signal.aborted) this.controller.abort(reason);
  }

  enterTransaction(): void {
    this.inTransaction = true;
  }

  /** Names the lease in calls. */
  fence(): { msg_id: number; read_ct: number } {
    return { msg_id: this.body.msg_id, read_ct: this.body.read_ct };
  }

  /** Fields for the log. */
  where(): object {
    const { task_id, step, attempt, delivery } = this.body;
    return { queue: this.queue, task_id, step, attempt, delivery };
  }

  completed(result: string): Outcome {
    if (!this.inTransaction) return new Outcome(this, { status: "complete", result });
    // When the transaction has committed the message is gone, and this report with it. It counts only otherwise.
    const message = "the handler returned, but the transaction given to completeIn was not committed";
    return new Outcome(this, { status: "failed", error: { type: types.notCommitted, message, retryable: true } }, { presumed: true });
  }

  failed(thrown: unknown): Outcome {
    const reason: unknown = this.signal.reason;
    return new Outcome(this, failure(thrown, reason), { giveBack: reason instanceof Stopping });
  }
}

/** A delivery whose handler has returned. */
export class Outcome {
  /** Instead of reporting: the worker stops, and the handler did not finish. */
  readonly giveBack: boolean;
  /** To have ended with its transaction: the report counts only when that did not commit. */
  readonly presumed: boolean;
  /** A failure stands in for a result that the database refuses. */
  replaced = false;
  /** Of one that was set aside: how many tries have failed, and when the next one is due. */
  tries = 0;
  retryAt = 0;

  constructor(
    readonly delivery: Delivery,
    public report: Report,
    how: { giveBack?: boolean; presumed?: boolean } = {},
  ) {
    this.giveBack = how.giveBack ?? false;
    this.presumed = how.presumed ?? false;
  }

  size(): number {
    return 200 + (this.report.result?.length ?? 0) + (this.report.error?.message.length ?? 0);
  }

  /** The report as JSON text. */
  json(): string {
    return reportJson(this.delivery, this.report);
  }
}

/** A report as JSON text; the result is text already. */
export function reportJson(delivery: { body: Claimed }, report: Report): string {
  const { msg_id, read_ct } = delivery.body;
  const rest = report.error ? `,"error":${JSON.stringify(report.error)}` : report.result !== undefined ? `,"result":${report.result}` : "";
  return `{"msg_id":${msg_id},"read_ct":${read_ct},"status":"${report.status}"${rest}}`;
}
