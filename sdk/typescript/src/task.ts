/** A task's public status. */
export type Status = "pending" | "running" | "completed" | "failed" | "cancelled" | "timed_out";

/** A task, as the database has it. */
export interface Task<Out = unknown> {
  taskId: string;
  namespace: string;
  template: string;
  version: string;
  /** One of the states of the engine; status is the simpler one. */
  state: string;
  status: Status;
  key: string | undefined;
  input: unknown;
  /** Of a completed task. */
  result: Out | undefined;
  /** Of a task that did not complete: {type, message, …}. */
  error: Record<string, unknown> | undefined;
  correlationId: string | undefined;
  tags: Record<string, string>;
  requestedAt: Date;
  finalizedAt: Date | undefined;
}

/** Columns of pawl.tasks for taskFrom, of a row called t. */
export const taskColumns = `t.task_id, t.namespace, t.template, t.version, t.state::text, pawl.public_status(t.state) as status, t.key,
  t.input::text, t.result::text, t.error::text, t.correlation_id, t.tags::text,
  extract(epoch from t.requested_at) * 1000 as requested_ms, extract(epoch from t.finalized_at) * 1000 as finalized_ms`;

/** Makes a task of a row. The database gives JSON as text, so that settings of the driver do not matter. */
export function taskFrom<Out>(row: any): Task<Out> {
  return {
    taskId: row.task_id,
    namespace: row.namespace,
    template: row.template,
    version: row.version,
    state: row.state,
    status: row.status,
    key: row.key ?? undefined,
    input: json(row.input),
    result: row.status === "completed" ? (json(row.result) as Out) : undefined,
    error: json(row.error) as Record<string, unknown> | undefined,
    correlationId: row.correlation_id ?? undefined,
    tags: (json(row.tags) ?? {}) as Record<string, string>,
    requestedAt: new Date(Number(row.requested_ms)),
    finalizedAt: row.finalized_ms === null ? undefined : new Date(Number(row.finalized_ms)),
  };
}

function json(text: string | null): unknown {
  return text === null ? undefined : JSON.parse(text);
}
