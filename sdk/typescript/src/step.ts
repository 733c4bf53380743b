import { refusePool, type Queryable } from "./database.js";
import { reportJson, type StepSource } from "./delivery.js";
import { InvalidBody, LeaseLost, Permanent } from "./errors.js";
import { types } from "./failure.js";
import { hide } from "./hide.js";
import { encode } from "./json.js";

/** Checks a value and gives it a type; it throws when the value does not fit. A schema of zod is one. */
export interface Parser<T> {
  parse(value: unknown): T;
}

/** What a handler gets: one delivery of one attempt of a step. */
export class Step<In = unknown> {
  /** The task's input, the same for all of its steps. */
  readonly input: In;
  readonly taskId: string;
  /** Name of the step in its template ("run" in a task that names only a handler), and its index when it is mapped. */
  readonly name: string;
  readonly index: number;
  /**
   * Attempts count from 1 and end with a result. The delivery counts how often this attempt reached a worker: above 1, an
   * earlier worker died or was too slow to extend its lease, and may have done part of the work.
   */
  readonly attempt: number;
  readonly delivery: number;
  readonly handler: string;
  readonly queue: string;
  /** The same for all attempts and deliveries of the step: put it into outgoing idempotency headers. */
  readonly token: string;
  readonly correlationId: string | undefined;
  /** The message's headers; the engine's own among them. */
  readonly headers: Readonly<Record<string, unknown>>;
  /** The results of the needed steps by name. Skipped steps have none. */
  readonly dependencies: Readonly<Record<string, unknown>>;
  /**
   * Aborted when the work is no longer wanted. Its reason tells why: Cancelled, LeaseLost, TimedOut or Stopping. Pass it to
   * fetch and the like.
   */
  readonly signal: AbortSignal;

  private readonly source: StepSource;

  constructor(source: StepSource, parser?: Parser<In>) {
    const body = source.body;
    this.source = source;
    hide(this, "source");
    this.taskId = body.task_id;
    this.name = body.step;
    this.index = body.index ?? 0;
    this.attempt = body.attempt;
    this.delivery = body.delivery;
    this.handler = body.handler;
    this.queue = source.queue;
    this.token = body.token ?? "";
    this.correlationId = body.correlation_id ?? undefined;
    this.headers = body.headers ?? {};
    this.dependencies = body.dependencies ?? {};
    this.signal = source.signal;
    this.input = read("input", body.input ?? null, parser);
  }

  /** The task's W3C trace context, when its request carried one. */
  get traceparent(): string | undefined {
    const value = this.headers["traceparent"];
    return typeof value === "string" ? value : undefined;
  }

  /** The result of a needed step. What is not there, or does not fit, fails the step for good. */
  dependency<T = unknown>(name: string, parser?: Parser<T>): T {
    if (!Object.hasOwn(this.dependencies, name)) {
      throw new Permanent(`reading dependency "${name}": step "${this.name}" needs no such step, or it was skipped`, {
        type: types.invalidInput,
      });
    }
    return read(`dependency "${name}"`, this.dependencies[name], parser);
  }

  /** The template's config for this step; undefined without one. */
  config<T = unknown>(parser?: Parser<T>): T | undefined {
    const value = this.source.body.config;
    return value === undefined || value === null ? undefined : read(`config of step "${this.name}"`, value, parser);
  }

  /**
   * Completes the step as part of the caller's transaction, which must be in the same database; client is the connection that
   * began it, never a pool, whose statements would commit for themselves. What else the transaction
   * wrote and the step's completion are committed together or not at all, exactly once. Call it once, last, then commit
   * and return; what the handler returns is not used then.
   *
   * Throws LeaseLost when the step is somebody else's by now, or has ended: roll back. When the transaction is not
   * committed and the handler returns all the same, the attempt fails with type transaction_not_committed.
   */
  async completeIn(client: Queryable, output?: unknown): Promise<void> {
    refusePool("completing step", client);
    const report = reportJson(this.source, { status: "complete", result: encodeResult(output) });
    this.source.enterTransaction(); // before the message is locked: a beat that cannot see it means nothing
    const { rows } = await client.query("select pawl.report_steps($1::text, $2::text::jsonb, $3::text)::text as answer", [
      this.queue,
      `[${report}]`,
      this.source.worker,
    ]);
    const answers = JSON.parse(rows[0].answer) as { accepted: boolean }[];
    if (answers[0]?.accepted !== true) throw new LeaseLost();
  }
}

function read<T>(what: string, value: unknown, parser?: Parser<T>): T {
  if (!parser) return value as T;
  try {
    return parser.parse(value);
  } catch (problem) {
    const text = problem instanceof Error ? problem.message : String(problem);
    throw new Permanent(`reading ${what}: ${text}`, { type: types.invalidInput, cause: problem });
  }
}

/** JSON text of a result, or a permanent failure of what the database would refuse. */
export function encodeResult(output: unknown): string {
  try {
    return encode(output);
  } catch (problem) {
    if (!(problem instanceof InvalidBody)) throw problem;
    throw new Permanent(`writing result: ${problem.message}`, { type: types.invalidResult });
  }
}
