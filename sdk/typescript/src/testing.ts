/** For unit tests of handlers, without a database. */
import { Step } from "./step.js";

/** What a step is made of; everything has a default. */
export interface StepFields<In> {
  input?: In;
  dependencies?: Record<string, unknown>;
  config?: unknown;
  taskId?: string;
  name?: string;
  index?: number;
  attempt?: number;
  delivery?: number;
  handler?: string;
  queue?: string;
  token?: string;
  correlationId?: string;
  headers?: Record<string, unknown>;
  signal?: AbortSignal;
}

/** Makes a step as a worker would give it to a handler: `await ship(makeStep({ input: order }))`. */
export function makeStep<In = unknown>(fields: StepFields<In> = {}): Step<In> {
  const taskId = fields.taskId ?? "00000000-0000-7000-8000-000000000001";
  const name = fields.name ?? "run";
  return new Step<In>({
    queue: fields.queue ?? "test_queue",
    worker: "test",
    signal: fields.signal ?? new AbortController().signal,
    enterTransaction: () => {},
    body: {
      msg_id: 1,
      read_ct: fields.delivery ?? 1,
      delivery: fields.delivery ?? 1,
      task_id: taskId,
      step: name,
      index: fields.index,
      attempt: fields.attempt ?? 1,
      handler: fields.handler ?? "test",
      input: JSON.parse(JSON.stringify(fields.input ?? null)),
      dependencies: JSON.parse(JSON.stringify(fields.dependencies ?? {})),
      config: fields.config,
      token: fields.token ?? `${taskId}/${name}`,
      correlation_id: fields.correlationId,
      headers: fields.headers,
    },
  });
}

/** A client for step.completeIn that accepts every completion and keeps what it was given. */
export class AcceptingClient {
  /** Of the steps that were completed, in order. */
  readonly results: unknown[] = [];

  async query(_text: string, values: unknown[] = []): Promise<{ rows: any[] }> {
    const [report] = JSON.parse(String(values[1])) as { msg_id: number; result: unknown }[];
    this.results.push(report!.result);
    return { rows: [{ answer: JSON.stringify([{ msg_id: report!.msg_id, accepted: true }]) }] };
  }
}
